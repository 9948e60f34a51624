// Archiving: batches by policy, written to one volume of each pool, committed, read back. Repairs take the
// same way: a damaged copy makes its pool missing again.

#include <fmt/format.h>

#include <algorithm>

#include "archive/batch_writer.h"
#include "archive/core.h"
#include "archive/policy.h"

namespace reelway::archive {

using base::Code;
using base::Result;

namespace {

constexpr base::Duration kBusyPause =
    std::chrono::seconds{2};  ///< somebody holds the object open, or it changed a moment ago
constexpr base::Duration kFailedPause = std::chrono::minutes{15};  ///< the disk cannot read it
constexpr int kForcedAttempts = 10;                                ///< of archive_now, for each object
constexpr int kReadBackRounds = 5;  ///< of archive_now: a copy that fails is written again and read again

/// What stays free for manifests, indexes and the flush behind early warning.
std::uint64_t usable_room(const tape::Capacity& capacity) {
  const std::uint64_t reserve = capacity.maximum / 50 + (8 << 20);
  return capacity.remaining > reserve ? capacity.remaining - reserve : 0;
}

}  // namespace

// ---- choosing what to write ----

async::Task<void> Manager::Core::start_batches() {
  if (stopping_ || importing_) co_return Result<void>{};
  const std::vector<PolicyRow> policies = policies_;  // it may change while we wait
  bool any = false;
  for (const PolicyRow& policy : policies) {
    const base::TimePoint now = clock().now();
    const base::TimePoint born_before = now - std::chrono::seconds{policy.policy.minimum_age_s};
    const auto force = std::find_if(forces_.begin(), forces_.end(),
                                    [&](const auto& at) { return at->bucket == policy.policy.bucket; });
    const bool forced = force != forces_.end();
    const base::TimePoint born = forced ? base::TimePoint::max() : born_before;
    CO_TRY(const auto groups,
           co_await db([&](Catalog& catalog) { return catalog.waiting(policy.id, born); }));
    any = any || !groups.empty();
    objects_wait_ = objects_wait_ || any;
    for (const WaitingGroup& group : groups) {
      const bool due = is_batch_due(policy.policy, group, now);
      if (!due && !forced) continue;
      TakeRequest request{.policy = policy.id,
                          .missing = group.missing,
                          .bucket = {},
                          .prefix = {},
                          .born_before = born,
                          .now = now,
                          .count_max = static_cast<std::size_t>(policy.policy.batch_count),
                          .bytes_max = policy.policy.batch_bytes};
      if (!due) {
        request.bucket = (*force)->bucket;
        request.prefix = (*force)->prefix;
      }
      const bool idle = std::any_of(stations_.begin(), stations_.end(),
                                    [&](const auto& station) { return is_idle(*station); });
      if (!idle) co_return Result<void>{};
      CO_TRY(auto rows, co_await db([&](Catalog& catalog) { return catalog.take_waiting(request); }));
      std::erase_if(rows, [&](const ObjectRow& row) { return in_batch_.contains(row.id); });
      if (!rows.empty()) start_batch(policy, group, std::move(rows));
    }
  }
  objects_wait_ = any;
  co_return Result<void>{};
}

bool Manager::Core::start_batch(const PolicyRow& policy, const WaitingGroup& group,
                                std::vector<ObjectRow> rows) {
  BatchJob job{.number = next_batch_++,
               .policy = policy,
               .missing = group.missing,
               .rows = std::move(rows),
               .seats = {}};
  std::set<std::string> chosen;
  for (const std::string& pool : group.pools) {
    const auto barcode = choose_volume(pool, chosen);
    if (!barcode) {
      const std::string message = fmt::format("pool {} has no volume that can be written", pool);
      const bool known = !last_errors_.empty() && last_errors_.front().ends_with(message);
      const bool all_busy =
          std::any_of(stations_.begin(), stations_.end(), [](const auto& station) { return station->busy; });
      if (!known && !all_busy) remember_error(message);
      continue;
    }
    Station* station = station_with(*barcode);
    for (const auto& at : stations_) {
      if (station != nullptr) break;
      const bool takes_part = std::any_of(job.seats.begin(), job.seats.end(),
                                          [&](const auto& seat) { return seat.station == at.get(); });
      if (is_idle(*at) && !takes_part && at->barcode.empty()) station = at.get();
    }
    for (const auto& at : stations_) {
      if (station != nullptr) break;
      const bool takes_part = std::any_of(job.seats.begin(), job.seats.end(),
                                          [&](const auto& seat) { return seat.station == at.get(); });
      if (is_idle(*at) && !takes_part) station = at.get();
    }
    if (station == nullptr) continue;  // the next batch brings this copy
    chosen.insert(*barcode);
    take(*station, "archiving", fmt::format("archives {} objects to {}", job.rows.size(), *barcode));
    station->total = job.rows.size();
    job.seats.push_back({.station = station, .barcode = *barcode});
  }
  if (job.seats.empty()) return false;
  std::vector<Station*> taken;
  for (const auto& seat : job.seats) taken.push_back(seat.station);
  std::vector<std::int64_t> ids;
  for (const ObjectRow& row : job.rows) ids.push_back(row.id);
  in_batch_.insert(ids.begin(), ids.end());
  const std::uint64_t number = job.number;
  batches_.insert(number);
  if (start_job("archive batch", batch_job(std::move(job)))) return true;
  batches_.erase(number);
  for (Station* station : taken) release(*station);
  for (const std::int64_t id : ids) in_batch_.erase(id);
  return false;
}

// ---- one batch ----

async::Task<void> Manager::Core::batch_job(BatchJob job) {
  std::vector<std::int64_t> ids;
  for (const ObjectRow& row : job.rows) ids.push_back(row.id);
  auto ran = co_await run_batch(job);
  if (!ran.has_value()) remember_error("a batch ended early: " + base::to_string(ran.error()));
  for (const std::int64_t id : ids) in_batch_.erase(id);
  batches_.erase(job.number);
  for (const auto& seat : job.seats) release(*seat.station);
  for (const auto& waiter : std::exchange(batch_waiters_, {})) waiter->wake();
  co_return Result<void>{};
}

async::Task<void> Manager::Core::seat(BatchJob::Seat& seat, bool& imported) {
  const std::uint64_t known = volumes_.contains(seat.barcode) ? volumes_[seat.barcode].batches : 0;
  CO_TRY_VOID(co_await mount(*seat.station, seat.barcode, true));
  imported = imported || volumes_[seat.barcode].batches != known;
  seat.mounted = true;
  if (!seat.station->volume->info().read_only) co_return Result<void>{};
  seat.mounted = false;
  VolumeRow row = volumes_[seat.barcode];
  row.state = VolumeState::full;
  remember_error(fmt::format("{} is write-protected", seat.barcode));
  co_return co_await put_volume(std::move(row));
}

/// After an import the catalog may already have copies of what was to be written.
async::Task<void> Manager::Core::drop_settled(BatchJob& job) {
  std::vector<std::int64_t> ids;
  for (const ObjectRow& row : job.rows) ids.push_back(row.id);
  CO_TRY(job.rows, co_await db([&](Catalog& catalog) { return catalog.objects(ids); }));
  std::erase_if(job.rows, [&](const ObjectRow& row) {
    return row.disk != Disk::resident || std::any_of(job.seats.begin(), job.seats.end(), [&](const auto& at) {
             return std::find(row.missing.begin(), row.missing.end(), pool_of_[at.barcode]) ==
                    row.missing.end();
           });
  });
  co_return Result<void>{};
}

async::Task<void> Manager::Core::run_batch(BatchJob& job) {
  bool imported = false;
  std::vector<async::Task<void>> mounts;
  for (auto& at : job.seats) mounts.push_back(seat(at, imported));
  const auto mounted = co_await join_all(std::move(mounts));
  (void)mounted;  // each failure is remembered by mount()
  if (imported) CO_TRY_VOID(co_await drop_settled(job));
  std::vector<BatchTarget> targets(job.seats.size());
  std::vector<BatchTarget*> live;
  for (std::size_t i = 0; i < job.seats.size(); ++i) {
    auto& at = job.seats[i];
    if (!at.mounted) continue;
    CO_TRY_VOID(co_await write_journal(*at.station));
    auto capacity = co_await at.station->volume->capacity();
    if (!capacity.has_value()) {
      note_drive_error(*at.station, capacity.error());
      continue;
    }
    targets[i].volume = at.station->volume.get();
    targets[i].barcode = at.barcode;
    targets[i].room_bytes = usable_room(*capacity);
    live.push_back(&targets[i]);
  }
  if (live.empty() || job.rows.empty()) co_return Result<void>{};

  const Progress progress = [this, &job](std::size_t objects, std::uint64_t) {
    for (const auto& at : job.seats) at.station->done = objects;
    return !stopping_;
  };
  BatchWriter writer(
      {.tiered = tiered_, .buffers = env_.buffers, .hash_pool = env_.hash_pool},
      {.bundle_below_bytes = job.policy.policy.bundle_below_bytes, .bundle_bytes = options_.bundle_bytes},
      job.rows, live, progress);
  const Result<void> wrote = co_await writer.run();
  std::vector<async::Task<void>> ends;
  for (std::size_t i = 0; i < job.seats.size(); ++i) {
    if (targets[i].volume == nullptr) continue;
    if (!wrote.has_value() && !targets[i].error) targets[i].error = wrote.error();
    ends.push_back(end_target(job, i, targets[i]));
  }
  const auto ended = co_await join_all(std::move(ends));
  for (const auto& result : ended) {
    if (!result.has_value()) remember_error(base::to_string(result.error()));
  }
  std::vector<std::pair<ObjectRow, base::Error>> failed;
  for (const FailedObject& object : writer.failed())
    failed.emplace_back(writer.row(object.entry), object.error);
  CO_TRY_VOID(co_await handle_failures(failed));
  co_return wrote;
}

/// The catalog's commit, rule 2's last step; then the index checkpoint and the read-back.
async::Task<void> Manager::Core::end_target(BatchJob& job, std::size_t at, BatchTarget& target) {
  Station& station = *job.seats[at].station;
  VolumeRow row = volumes_[target.barcode];
  if (target.full) row.state = VolumeState::full;
  if (target.error) {
    const base::Error error = *target.error;
    if (error.code == Code::no_space)
      row.state = VolumeState::full;
    else if (error.scope == base::Scope::cartridge)
      row.state = VolumeState::damaged;
    CO_TRY_VOID(co_await put_volume(std::move(row)));
    note_drive_error(station, error);
    co_return Result<void>{};
  }
  station.bytes_written += target.bytes;
  row.batches = std::max(row.batches, target.receipt.number);
  row.end_block = std::max(row.end_block, target.receipt.end_block);
  row.bytes += target.bytes;
  station.head_block = row.end_block;
  const BatchCommit commit{
      .volume = row, .copies = std::move(target.copies), .displaced = std::move(target.displaced)};
  CO_TRY_VOID(co_await db([&commit](Catalog& catalog) { return catalog.commit_batch(commit); }));
  volumes_[target.barcode] = row;
  env_.meter.count("reelway_archive_copies_total", static_cast<double>(commit.copies.size()));
  env_.meter.count("reelway_archive_bytes_total", static_cast<double>(target.bytes));
  auto checkpoint = co_await station.volume->checkpoint_if_due();
  if (!checkpoint.has_value()) {
    note_drive_error(station, checkpoint.error());
    co_return Result<void>{};
  }
  if (job.policy.policy.verify != "read-back" || commit.copies.empty()) co_return Result<void>{};
  station.state = "verifying";
  station.activity = fmt::format("reads {} objects back from {}", commit.copies.size(), target.barcode);
  const std::int64_t id = row.id;
  const std::uint64_t batch = target.receipt.number;
  CO_TRY(auto copies,
         co_await db([id, batch](Catalog& catalog) { return catalog.copies_of_batch(id, batch); }));
  std::erase_if(copies, [](const CopyRow& copy) { return copy.verified || copy.damaged; });
  co_return co_await verify_copies(station, std::move(copies));
}

async::Task<void> Manager::Core::handle_failures(
    const std::vector<std::pair<ObjectRow, base::Error>>& failed) {
  std::vector<std::int64_t> soon;
  std::vector<std::int64_t> later;
  std::vector<object::ObjectName> changed;
  std::vector<ObjectRow> gone;
  for (const auto& [row, error] : failed) {
    ++failures_[row.id];
    const std::string what = fmt::format("{}/{}: {}", row.name.bucket, row.name.key, base::to_string(error));
    switch (error.code) {
      case Code::not_found:
        gone.push_back(row);
        break;
      case Code::precondition_failed:
        changed.push_back(row.name);
        [[fallthrough]];
      case Code::busy:
        env_.log.write(base::LogLevel::info, "archive", what);
        soon.push_back(row.id);
        break;
      case Code::data_loss:
        emit("reelway:DataLoss", row.name, row.identity.generation, error.detail);
        [[fallthrough]];
      default:
        remember_error(what);
        later.push_back(row.id);
    }
  }
  // Whether what has a copy elsewhere was deleted or lost is for a scan to tell.
  CO_TRY(const auto on_tape, co_await with_copies(gone));
  for (const ObjectRow& row : gone) {
    if (!on_tape.contains(row.id)) continue;
    later.push_back(row.id);
    next_rescan_ = clock().steady_now();
  }
  std::erase_if(gone, [&](const ObjectRow& row) { return on_tape.contains(row.id); });
  const base::TimePoint now = clock().now();
  CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.postpone(soon, now + kBusyPause); }));
  CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.postpone(later, now + kFailedPause); }));
  CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.remove(gone); }));
  co_return co_await note_changed(changed);
}

/// What changed past us while it was read is another version now: it is noted as it is, or its old row would
/// wait for a file that does not come back.
async::Task<void> Manager::Core::note_changed(const std::vector<object::ObjectName>& names) {
  std::vector<ObjectRow> seen;
  for (const object::ObjectName& name : names) {
    const auto entry = co_await entry_of(name);
    if (!entry.has_value() || entry->info.residency != object::Residency::resident) continue;
    seen.push_back(row_of(*entry));
    seen.back().noted += kBusyPause;
  }
  co_return co_await db([&seen](Catalog& catalog) { return catalog.note(seen); });
}

// ---- archive_now ----

async::Task<StatusView> Manager::Core::archive_now(std::string bucket, std::string prefix) {
  CO_TRY_VOID(co_await absorb_notes());
  CO_TRY_VOID(co_await scan(bucket, prefix));
  const auto force = std::make_shared<Force>(Force{.bucket = bucket, .prefix = prefix});
  forces_.push_back(force);
  auto worked = co_await archive_and_read(bucket, prefix);
  std::erase(forces_, force);
  CO_TRY_VOID(worked);
  co_return co_await status_view();
}

/// A copy that fails its read-back is written again, and read again. Copies on cartridges that are not here
/// are left unread.
async::Task<void> Manager::Core::archive_and_read(const std::string& bucket, const std::string& prefix) {
  const UnreadQuery unread{.bucket = bucket, .prefix = prefix, .with_imported = true};
  for (int round = 0; round < kReadBackRounds; ++round) {
    CO_TRY_VOID(co_await work_off(bucket, prefix));
    CO_TRY(const std::uint64_t count, co_await read_back(unread));
    if (count == 0) co_return Result<void>{};
  }
  co_return base::fail(
      Code::unavailable,
      "copies could not be read back: " +
          (last_errors_.empty() ? std::string("they are unread still") : last_errors_.front()),
      base::Scope::library, base::Retry::later);
}

/// Until nothing under the prefix waits and the batches have ended, or what waits has failed often enough.
async::Task<void> Manager::Core::work_off(const std::string& bucket, const std::string& prefix) {
  std::map<std::int64_t, int> before = failures_;
  int idle_rounds = 0;
  std::optional<std::set<std::uint64_t>> ending;  // batches that still read back and tidy up
  while (!stopping_) {
    CO_TRY(auto waiting, co_await waiting_under(bucket, prefix));
    std::erase_if(
        waiting, [&](const ObjectRow& row) { return failures_[row.id] - before[row.id] >= kForcedAttempts; });
    if (waiting.empty()) {
      if (!ending) ending = batches_;
      std::erase_if(*ending, [&](std::uint64_t number) { return !batches_.contains(number); });
      if (ending->empty()) co_return Result<void>{};
    }
    const auto waiter = std::make_shared<async::Waiter>();
    batch_waiters_.push_back(waiter);
    const bool active = !batches_.empty();
    wake();
    co_await wait_until(env_.timer, waiter, clock().steady_now() + kBusyPause);
    std::erase(batch_waiters_, waiter);
    // No volume can be written, or no drive works: say so instead of waiting for ever.
    idle_rounds = active || !batches_.empty() ? 0 : idle_rounds + 1;
    if (idle_rounds > 30) {
      co_return base::fail(Code::unavailable,
                           last_errors_.empty() ? "nothing can be archived now" : last_errors_.front(),
                           base::Scope::library, base::Retry::later);
    }
  }
  co_return base::fail(Code::closed, "the archive is stopping");
}

async::Task<std::vector<ObjectRow>> Manager::Core::waiting_under(const std::string& bucket,
                                                                 const std::string& prefix) {
  std::vector<ObjectRow> waiting;
  const std::vector<PolicyRow> policies = policies_;  // it may change while we wait
  for (const PolicyRow& policy : policies) {
    if (policy.policy.bucket != bucket) continue;
    CO_TRY(const auto groups,
           co_await db([&](Catalog& catalog) { return catalog.waiting(policy.id, base::TimePoint::max()); }));
    for (const WaitingGroup& group : groups) {
      TakeRequest request{.policy = policy.id,
                          .missing = group.missing,
                          .bucket = bucket,
                          .prefix = prefix,
                          .born_before = base::TimePoint::max(),
                          .now = base::TimePoint::max(),
                          .count_max = 100'000,
                          .bytes_max = ~std::uint64_t{0}};
      CO_TRY(const auto rows, co_await db([&](Catalog& catalog) { return catalog.take_waiting(request); }));
      waiting.insert(waiting.end(), rows.begin(), rows.end());
    }
  }
  co_return waiting;
}

}  // namespace reelway::archive
