// Reading copies back and comparing them with the checksums that the catalog has.

#include <fmt/format.h>

#include <algorithm>

#include "archive/core.h"
#include "base/checksum.h"

namespace reelway::archive {

using base::Code;
using base::Result;

namespace {

constexpr base::Duration kPoll = std::chrono::milliseconds{200};     ///< for a drive
constexpr base::Duration kReadBackPause = std::chrono::minutes{15};  ///< after one that was cut short
constexpr base::Duration kRepairPause = std::chrono::seconds{2};
constexpr base::Duration kRecallPatience = std::chrono::minutes{1};  ///< then it is waited for again
constexpr int kRepairAttempts = 10;                                  ///< for each object
constexpr int kIdleRoundsMax = 30;
constexpr std::size_t kPage = 1000;
constexpr std::uint64_t kRepairBytes = 10ull << 30;  ///< that lie on disk at a time
constexpr std::size_t kParcelsAhead = 2;

struct Verification {
  std::vector<CopyRow> copies;
  std::map<std::int64_t, std::string> sha256;  ///< by object
  std::vector<std::int64_t> good;
  std::vector<std::pair<CopyRow, base::Error>> bad;
  std::unique_ptr<base::Hasher> hasher;  ///< of the copy that comes in parts
};

/// On the hashing pool.
Result<void> check_slice(Verification& state, const TapeSlice& slice) {
  const CopyRow& copy = state.copies[slice.entry];
  if (slice.error) {
    state.hasher.reset();
    state.bad.emplace_back(copy, *slice.error);
    return {};
  }
  if (slice.first) state.hasher = base::make_hasher(base::ChecksumKind::sha256);
  if (!state.hasher) return {};
  state.hasher->update(slice.bytes);
  if (!slice.last) return {};
  if (base::to_hex(state.hasher->digest()) == state.sha256[copy.object])
    state.good.push_back(copy.id);
  else
    state.bad.emplace_back(copy, base::fail(Code::checksum_mismatch, "the copy does not have its SHA-256",
                                            base::Scope::object, base::Retry::elsewhere));
  state.hasher.reset();
  return {};
}

async::Task<void> check_all(Verification& state, async::Channel<TapeParcel>& parcels,
                            async::BlockingPool* pool, Station& station) {
  for (;;) {
    auto parcel = co_await parcels.receive();
    if (!parcel.has_value()) co_return Result<void>{};
    auto check = [&state, &parcel]() -> Result<void> {
      for (const TapeSlice& slice : parcel->slices) TRY_VOID(check_slice(state, slice));
      return {};
    };
    auto checked = co_await on_pool(pool, check);
    if (!checked.has_value()) {
      parcels.close();
      co_return checked;
    }
    for (const TapeSlice& slice : parcel->slices) {
      station.bytes_read += slice.bytes.size();
      station.done += slice.last ? 1 : 0;
    }
  }
}

}  // namespace

async::Task<void> Manager::Core::verify_copies(Station& station, std::vector<CopyRow> copies) {
  if (copies.empty()) co_return Result<void>{};
  std::sort(copies.begin(), copies.end(), [](const CopyRow& a, const CopyRow& b) {
    return std::tie(a.block, a.path, a.offset, a.id) < std::tie(b.block, b.path, b.offset, b.id);
  });
  station.done = 0;
  station.total = copies.size();
  Verification state{.copies = std::move(copies), .sha256 = {}, .good = {}, .bad = {}, .hasher = {}};
  std::vector<std::int64_t> ids;
  for (const CopyRow& copy : state.copies) ids.push_back(copy.object);
  CO_TRY(const auto objects, co_await db([&](Catalog& catalog) { return catalog.objects(ids); }));
  for (const ObjectRow& object : objects) state.sha256[object.id] = object.sha256;
  async::Channel<TapeParcel> parcels(kParcelsAhead);
  std::vector<async::Task<void>> both;
  both.push_back(read_copies({.volume = *station.volume,
                              .buffers = env_.buffers,
                              .copies = state.copies,
                              .stopping = [this] { return stopping_; }},
                             parcels));
  both.push_back(check_all(state, parcels, env_.hash_pool, station));
  const auto results = co_await join_all(std::move(both));
  CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.set_verified(state.good); }));
  for (const auto& [copy, error] : state.bad) CO_TRY_VOID(co_await mark_damaged(copy, error));
  if (!results[0].has_value()) {
    note_drive_error(station, results[0].error());
    next_read_back_ = std::min(next_read_back_, clock().steady_now() + kReadBackPause);
  }
  co_return Result<void>{};
}

async::Task<void> Manager::Core::mark_damaged(const CopyRow& copy, const base::Error& error) {
  const VolumeRow* volume = volume_by_id(copy.volume);
  remember_error(fmt::format("damaged copy on {}, block {}: {}", volume == nullptr ? "?" : volume->barcode,
                             copy.block, base::to_string(error)));
  env_.meter.count("reelway_archive_damaged_copies_total");
  co_return co_await db([&](Catalog& catalog) { return catalog.set_damaged(copy.id); });
}

// ---- volumes, one after the other ----

async::Task<void> Manager::Core::verify_job(Station& station, std::int64_t volume, std::string barcode,
                                            CopiesOf copies_of, std::shared_ptr<async::Waiter> end) {
  auto copies = co_await copies_of(volume);
  Result<void> done = copies.has_value() ? Result<void>{} : Result<void>(copies.error());
  if (copies.has_value() && !copies->empty() && (co_await mount(station, barcode, false)).has_value()) {
    station.state = "verifying";
    done = co_await verify_copies(station, std::move(*copies));
  }
  if (!done.has_value()) remember_error(base::to_string(done.error()));
  release(station);
  end->wake();
  co_return Result<void>{};
}

/// One volume after the other, so that a drive stays free for readers.
async::Task<void> Manager::Core::read_volumes(std::set<std::int64_t> volumes, CopiesOf copies_of) {
  for (const std::int64_t volume : volumes) {
    const VolumeRow* row = volume_by_id(volume);
    if (row == nullptr) continue;
    const std::string barcode = row->barcode;
    CO_TRY(Station* const station,
           co_await claim_station(barcode, "verifying", fmt::format("reads copies on {} back", barcode)));
    const auto end = std::make_shared<async::Waiter>();
    if (!start_job("verification", verify_job(*station, volume, barcode, copies_of, end))) {
      release(*station);
      co_return base::fail(Code::closed, "the archive is stopping");
    }
    CO_TRY_VOID(co_await end->wait());
  }
  co_return Result<void>{};
}

/// Reads what was never read, where its cartridge is here and trusted; returns how many copies that were.
async::Task<std::uint64_t> Manager::Core::read_back(UnreadQuery query) {
  CO_TRY(const auto copies, co_await db([&query](Catalog& catalog) { return catalog.unread(query); }));
  std::set<std::int64_t> volumes;
  std::uint64_t count = 0;
  for (const CopyRow& copy : copies) {
    const VolumeRow* volume = volume_by_id(copy.volume);
    const bool here =
        volume != nullptr && volume->state != VolumeState::foreign && is_in_library(volume->barcode);
    if (!here) continue;
    volumes.insert(copy.volume);
    ++count;
  }
  // Asked again when the drive is ours: a batch may have read its own copies meanwhile.
  const CopiesOf unread = [this, query](std::int64_t volume) {
    UnreadQuery of_volume = query;
    of_volume.volume = volume;
    return db([of_volume](Catalog& catalog) { return catalog.unread(of_volume); });
  };
  CO_TRY_VOID(co_await read_volumes(std::move(volumes), unread));
  co_return count;
}

/// What a crash, a stop or a drive's failure cut short between commit and read-back.
async::Task<void> Manager::Core::read_back_job() {
  next_read_back_ = base::SteadyPoint::max();
  const auto ended = co_await read_back({});
  const auto left = co_await db([](Catalog& catalog) { return catalog.unread({}); });
  reading_back_ = false;
  if (!ended.has_value() && !stopping_) remember_error("read-back: " + base::to_string(ended.error()));
  if (!ended.has_value() || !left.has_value() || !left->empty())
    next_read_back_ = std::min(next_read_back_, clock().steady_now() + kReadBackPause);
  wake();
  co_return Result<void>{};
}

// ---- the command ----

namespace {

async::Task<std::vector<CopyRow>> take_from(std::map<std::int64_t, std::vector<CopyRow>>& by_volume,
                                            std::int64_t volume) {
  co_return std::move(by_volume[volume]);
}

}  // namespace

async::Task<StatusView> Manager::Core::verify(std::string bucket, std::string prefix) {
  std::map<std::int64_t, std::vector<CopyRow>> by_volume;
  std::string after;
  for (bool more = true; more;) {
    CO_TRY(const auto rows,
           co_await db([&](Catalog& catalog) { return catalog.under(bucket, prefix, after, kPage); }));
    more = rows.size() == kPage;
    std::vector<std::int64_t> ids;
    for (const ObjectRow& row : rows) ids.push_back(row.id);
    CO_TRY(const auto copies, co_await db([&](Catalog& catalog) { return catalog.copies(ids); }));
    for (const CopyRow& copy : copies) {
      if (!copy.damaged) by_volume[copy.volume].push_back(copy);
    }
    if (!rows.empty()) after = rows.back().name.key;
  }
  std::set<std::int64_t> volumes;
  for (const auto& [volume, copies] : by_volume) volumes.insert(volume);
  const CopiesOf of_volume = [&by_volume](std::int64_t volume) { return take_from(by_volume, volume); };
  CO_TRY_VOID(co_await read_volumes(std::move(volumes), of_volume));
  CO_TRY_VOID(co_await repair(bucket, prefix));
  wake();
  co_return co_await status_view();
}

// ---- repairing ----

namespace {

/// So that what lies on disk at a time stays bounded.
std::vector<std::vector<ObjectRow>> in_portions(std::vector<ObjectRow> rows) {
  std::vector<std::vector<ObjectRow>> portions;
  std::uint64_t bytes = kRepairBytes;
  for (ObjectRow& row : rows) {
    if (bytes >= kRepairBytes) {
      portions.emplace_back();
      bytes = 0;
    }
    bytes += row.identity.size;
    portions.back().push_back(std::move(row));
  }
  return portions;
}

}  // namespace

/// A pool that lost its good copy gets a new one: from disk, or by way of the disk from the other copy. What
/// else waits under the prefix goes along.
async::Task<void> Manager::Core::repair(const std::string& bucket, const std::string& prefix) {
  const auto force = std::make_shared<Force>(Force{.bucket = bucket, .prefix = prefix});
  std::string after;
  for (bool more = true; more && !stopping_;) {
    CO_TRY(const auto rows,
           co_await db([&](Catalog& catalog) { return catalog.under(bucket, prefix, after, kPage); }));
    more = rows.size() == kPage;
    if (!rows.empty()) after = rows.back().name.key;
    CO_TRY(auto wanting, co_await needing_repair(rows));
    auto portions = in_portions(std::move(wanting));
    for (std::vector<ObjectRow>& portion : portions) {
      forces_.push_back(force);
      auto repaired = co_await repair_some(std::move(portion));
      std::erase(forces_, force);
      CO_TRY_VOID(repaired);
    }
  }
  if (stopping_) co_return base::fail(Code::closed, "the archive is stopping");
  co_return Result<void>{};
}

async::Task<std::vector<ObjectRow>> Manager::Core::needing_repair(const std::vector<ObjectRow>& rows) {
  std::vector<ObjectRow> wanting;
  std::vector<std::int64_t> ids;
  for (const ObjectRow& row : rows) {
    if (!row.missing.empty() && (row.disk == Disk::evicted || row.disk == Disk::resident))
      ids.push_back(row.id);
  }
  CO_TRY(const auto copies, co_await db([&](Catalog& catalog) { return catalog.copies(ids); }));
  std::set<std::int64_t> damaged;
  for (const CopyRow& copy : copies) {
    if (copy.damaged) damaged.insert(copy.object);
  }
  for (const ObjectRow& row : rows) {
    if (damaged.contains(row.id)) wanting.push_back(row);
  }
  co_return wanting;
}

/// Those that were evicted are recalled first and evicted again afterwards.
async::Task<void> Manager::Core::repair_some(std::vector<ObjectRow> rows) {
  std::vector<ObjectRow> evicted;
  for (const ObjectRow& row : rows) {
    if (row.disk == Disk::evicted) evicted.push_back(row);
  }
  CO_TRY_VOID(co_await enqueue_all(evicted, 0));
  wake();
  for (const ObjectRow& row : evicted) {
    for (bool waits = true; waits && !stopping_;) {
      const auto ended = co_await wait(row.name, row.identity.generation, kRecallPatience);
      waits = !ended.has_value() && ended.error().code == Code::deadline_exceeded;
    }
  }
  std::vector<std::int64_t> ids;
  for (const ObjectRow& row : rows) ids.push_back(row.id);
  CO_TRY_VOID(co_await wait_for_copies(ids));
  std::vector<std::int64_t> again;
  for (const ObjectRow& row : evicted) again.push_back(row.id);
  CO_TRY(auto landed, co_await db([&](Catalog& catalog) { return catalog.objects(again); }));
  std::erase_if(landed, [&](const ObjectRow& row) {
    return row.disk != Disk::resident || pins_.contains(row.name);  // somebody asked for it meanwhile
  });
  co_return co_await evict_again(std::move(landed));
}

/// Until each of them that is on disk has its copies, read back, or has failed often enough.
async::Task<void> Manager::Core::wait_for_copies(const std::vector<std::int64_t>& ids) {
  std::map<std::int64_t, int> before = failures_;
  for (int idle_rounds = 0; !stopping_;) {
    CO_TRY(auto rows, co_await db([&](Catalog& catalog) { return catalog.objects(ids); }));
    std::erase_if(rows, [&](const ObjectRow& row) {
      const bool written = row.missing.empty() && !in_batch_.contains(row.id);
      return row.disk != Disk::resident || written || failures_[row.id] - before[row.id] >= kRepairAttempts;
    });
    if (rows.empty()) co_return Result<void>{};
    const auto waiter = std::make_shared<async::Waiter>();
    batch_waiters_.push_back(waiter);
    wake();
    co_await wait_until(env_.timer, waiter, clock().steady_now() + kRepairPause);
    std::erase(batch_waiters_, waiter);
    idle_rounds = batches_.empty() ? idle_rounds + 1 : 0;
    if (idle_rounds > kIdleRoundsMax)
      co_return base::fail(Code::unavailable,
                           last_errors_.empty() ? "nothing can be repaired now" : last_errors_.front(),
                           base::Scope::library, base::Retry::later);
  }
  co_return base::fail(Code::closed, "the archive is stopping");
}

/// Waits for the drive that has the cartridge, or for an idle one. The caller releases it.
async::Task<Station*> Manager::Core::claim_station(std::string barcode, std::string state,
                                                   std::string activity) {
  while (!stopping_) {
    Station* found = station_with(barcode);
    if (found == nullptr) {
      for (const auto& station : stations_) {
        if (!is_idle(*station)) continue;
        if (found == nullptr || (station->barcode.empty() && !found->barcode.empty())) found = station.get();
      }
    }
    if (found != nullptr && is_idle(*found)) {
      take(*found, std::move(state), std::move(activity));
      co_return found;
    }
    CO_TRY_VOID(co_await env_.timer.sleep_for(kPoll));
  }
  co_return base::fail(Code::closed, "the archive is stopping");
}

}  // namespace reelway::archive
