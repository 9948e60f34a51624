// One tour: a cartridge is loaded, its copies are read in the planned order and land on disk, each checked
// against the recorded checksum.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "archive/core.h"
#include "base/checksum.h"
#include "object/metadata_codec.h"

namespace reelway::archive {

using base::Code;
using base::Result;
using object::RecallState;

namespace {

constexpr std::size_t kParcelsAhead = 2;
constexpr std::size_t kLandWidth = 16;  ///< small objects that land at once

constexpr base::Duration kDoubt = std::chrono::seconds{2};
constexpr base::Duration kDiskPause = std::chrono::seconds{5};  ///< after the disk refused a landing

/// SHA-256 from the mover; else the CRC64NVME of the PUT.
Result<object::Checksum> expected_checksum(const ObjectRow& row) {
  if (!row.sha256.empty()) {
    TRY(auto value, base::from_hex(row.sha256));
    return object::Checksum{.kind = base::ChecksumKind::sha256, .value = std::move(value)};
  }
  TRY(const auto info, object::decode_metadata(row.metadata));
  for (const object::Checksum& checksum : info.checksums) {
    if (checksum.kind == base::ChecksumKind::crc64nvme && checksum.composite_part_count == 0) return checksum;
  }
  return base::fail(Code::data_loss, "the catalog has no checksum of the object", base::Scope::object);
}

bool is_copys_fault(const base::Error& error) {
  return error.code == Code::checksum_mismatch || error.code == Code::data_loss;
}

}  // namespace

/// One copy on its way to disk, and to the readers that follow its recall. Gone without commit, it is void
/// for them.
class LandingRun {
 public:
  LandingRun(std::unique_ptr<object::RecallWriter> writer, std::shared_ptr<object::RecallFeed> feed)
      : writer_(std::move(writer)), feed_(std::move(feed)) {
    feed_->begin(writer_->file());
  }
  ~LandingRun() {
    if (!landed_) feed_->abandon();
  }
  LandingRun(const LandingRun&) = delete;
  LandingRun& operator=(const LandingRun&) = delete;

  async::Task<void> write(base::ByteView bytes) {
    CO_TRY_VOID(co_await writer_->write(bytes));
    written_ += bytes.size();
    feed_->advance(written_);
    co_return Result<void>{};
  }
  async::Task<object::Identity> commit(const object::Checksum& expected) {
    CO_TRY(auto identity, co_await writer_->commit(expected));
    landed_ = true;
    feed_->land();
    co_return identity;
  }

 private:
  std::unique_ptr<object::RecallWriter> writer_;
  std::shared_ptr<object::RecallFeed> feed_;
  std::uint64_t written_ = 0;
  bool landed_ = false;
};

/// Where slices become files. An object in parts keeps its run from one parcel to the next.
class Landing {
 public:
  Landing(object::Tiered& tiered, std::vector<std::shared_ptr<Recall>> recalls)
      : tiered_(tiered), recalls_(std::move(recalls)) {}

  /// What came of a slice: nothing yet, a landed file, or an error.
  using Outcome = std::optional<Result<object::Identity>>;

  net::awaitable<void> land(const TapeSlice& slice, Outcome& outcome) {
    if (slice.error) {
      run_.reset();
      outcome.emplace(*slice.error);
      co_return;
    }
    if (slice.first && slice.last) {
      auto landed = co_await land_whole(slice);
      outcome.emplace(std::move(landed));
      co_return;
    }
    auto landed = co_await land_part(slice);
    if (!landed.has_value()) {
      run_.reset();
      skipping_ = slice.entry;
      outcome.emplace(landed.error());
    } else if (*landed) {
      outcome.emplace(**landed);
    }
  }

 private:
  async::Task<std::unique_ptr<LandingRun>> begin(const Recall& recall) {
    CO_TRY(auto writer, co_await tiered_.begin_recall(recall.object.name, recall.object.identity.generation));
    co_return std::make_unique<LandingRun>(std::move(writer), recall.feed);
  }

  async::Task<object::Identity> land_whole(const TapeSlice& slice) {
    const Recall& recall = *recalls_[slice.entry];
    CO_TRY(const auto expected, expected_checksum(recall.object));
    CO_TRY(const auto run, co_await begin(recall));
    if (!slice.bytes.empty()) CO_TRY_VOID(co_await run->write(slice.bytes));
    co_return co_await run->commit(expected);
  }

  async::Task<std::optional<object::Identity>> land_part(const TapeSlice& slice) {
    const Recall& recall = *recalls_[slice.entry];
    if (skipping_ == slice.entry) co_return std::optional<object::Identity>{};
    if (slice.first) {
      CO_TRY(run_, co_await begin(recall));
    }
    CO_TRY_VOID(co_await run_->write(slice.bytes));
    if (!slice.last) co_return std::optional<object::Identity>{};
    CO_TRY(const auto expected, expected_checksum(recall.object));
    CO_TRY(auto identity, co_await run_->commit(expected));
    run_.reset();
    co_return std::optional(std::move(identity));
  }

  object::Tiered& tiered_;
  std::vector<std::shared_ptr<Recall>> recalls_;
  std::unique_ptr<LandingRun> run_;
  std::optional<std::size_t> skipping_;  ///< its later parts come from tape all the same
};

async::Task<void> Manager::Core::tour_job(Tour tour) {
  auto ran = co_await run_tour(tour);
  if (!ran.has_value())
    remember_error(fmt::format("recall from {}: {}", tour.barcode, base::to_string(ran.error())));
  // What was not reached goes back into the queue.
  std::vector<Ending> cancelled;
  for (const auto& recall : tour.recalls) {
    const bool open = recall->running && recall->request.state == RecallState::queued;
    recall->running = false;
    if (open && recall->cancelled)
      cancelled.push_back({.recall = recall,
                           .state = RecallState::failed,
                           .explanation = "cancelled",
                           .identity = {},
                           .disk = {}});
  }
  CO_TRY_VOID(co_await finish_recalls(std::move(cancelled)));
  release(*tour.station);
  co_return Result<void>{};
}

async::Task<void> Manager::Core::run_tour(Tour& tour) {
  Station& station = *tour.station;
  CO_TRY_VOID(co_await mount(station, tour.barcode, false));
  station.state = "recalling";
  async::Channel<TapeParcel> parcels(kParcelsAhead);
  std::vector<async::Task<void>> both;
  both.push_back(
      read_copies({.volume = *station.volume,
                   .buffers = env_.buffers,
                   .copies = tour.copies,
                   .stopping = [this] { return stopping_; },
                   .yields = [&](std::size_t next) { return tour.tiers[next] > station.yield_to; }},
                  parcels));
  both.push_back(land_all(tour, parcels));
  const auto results = co_await join_all(std::move(both));
  if (!results[0].has_value()) note_drive_error(station, results[0].error());
  co_return results[1];
}

async::Task<void> Manager::Core::land_all(Tour& tour, async::Channel<TapeParcel>& parcels) {
  Landing landing(tiered_, tour.recalls);
  for (;;) {
    auto parcel = co_await parcels.receive();
    if (!parcel.has_value()) co_return Result<void>{};
    std::vector<Landing::Outcome> outcomes(parcel->slices.size());
    const std::function<net::awaitable<void>(std::size_t)> work = [&](std::size_t i) {
      return landing.land(parcel->slices[i], outcomes[i]);
    };
    co_await fan_out(outcomes.size(), kLandWidth, work);
    auto settled = co_await settle_landed(tour, *parcel, outcomes);
    if (!settled.has_value()) {
      parcels.close();
      co_return settled;
    }
  }
}

/// One commit for a parcel's objects.
async::Task<void> Manager::Core::settle_landed(
    Tour& tour, const TapeParcel& parcel, std::vector<std::optional<Result<object::Identity>>>& outcomes) {
  std::vector<Ending> endings;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const TapeSlice& slice = parcel.slices[i];
    tour.station->bytes_read += slice.bytes.size();
    tour.station->head_block = tour.copies[slice.entry].end_block;
    if (!outcomes[i]) continue;
    tour.station->done += 1;
    const auto& recall = tour.recalls[slice.entry];
    if (outcomes[i]->has_value()) {
      endings.push_back({.recall = recall,
                         .state = RecallState::done,
                         .explanation = {},
                         .identity = **outcomes[i],
                         .disk = Disk::resident});
      env_.meter.count("reelway_recalls_total");
      continue;
    }
    const base::Error error = outcomes[i]->error();
    if (is_copys_fault(error)) {
      CO_TRY_VOID(co_await copy_failed(recall, tour.copies[slice.entry], error));
    } else if (error.code == Code::precondition_failed || error.code == Code::not_found) {
      CO_TRY_VOID(co_await settle_changed(recall, error, endings));
    } else {
      // The disk's trouble (full, busy): the recall stays queued and is tried again.
      remember_error(fmt::format("recall of {}/{}: {}", recall->object.name.bucket, recall->object.name.key,
                                 base::to_string(error)));
      recall->request.explanation = "tried again soon: " + error.detail;
      recall->not_before = clock().steady_now() + kDiskPause;
    }
  }
  co_return co_await finish_recalls(std::move(endings));
}

/// The key is not the recorded stub any more.
async::Task<void> Manager::Core::settle_changed(std::shared_ptr<Recall> recall, const base::Error& error,
                                                std::vector<Ending>& endings) {
  CO_TRY_VOID(co_await absorb_notes());
  const std::string& generation = recall->object.identity.generation;
  const auto there = co_await entry_of(recall->object.name);
  const bool landed = there.has_value() && there->info.residency == object::Residency::resident &&
                      there->info.generation == generation;
  Ending ending{
      .recall = recall, .state = RecallState::failed, .explanation = {}, .identity = {}, .disk = {}};
  if (landed) {  // before a crash that kept the catalog from knowing
    ending.state = RecallState::done;
    ending.identity = there->identity;
    ending.disk = Disk::resident;
  } else if (recall->replaced || (!there.has_value() && there.error().code == Code::not_found)) {
    recall->replaced = true;
    ending.explanation = "the object was deleted or replaced";
  } else if (there.has_value() && !there->info.generation.empty() && there->info.generation != generation &&
             !std::exchange(recall->doubted, true)) {
    // Stored anew: whoever did it may not have told us yet.
    recall->not_before = clock().steady_now() + kDoubt;
    co_return Result<void>{};
  } else {
    report_conflict(recall->object.name, generation, error.detail);
    ending.explanation = "the key is not the recorded stub any more: " + error.detail;
    ending.disk = Disk::conflict;
  }
  endings.push_back(std::move(ending));
  co_return Result<void>{};
}

/// Another copy is read instead; the pool gets a new one from disk once the object has landed.
async::Task<void> Manager::Core::copy_failed(std::shared_ptr<Recall> recall, const CopyRow& copy,
                                             const base::Error& error) {
  CO_TRY_VOID(co_await mark_damaged(copy, error));
  std::erase_if(recall->copies, [&](const CopyRow& at) { return at.id == copy.id; });
  recall->running = false;
  if (!recall->copies.empty()) co_return Result<void>{};
  emit("reelway:DataLoss", recall->object.name, recall->object.identity.generation,
       "no copy of the object can be read");
  std::vector<Ending> endings;
  endings.push_back({.recall = recall,
                     .state = RecallState::failed,
                     .explanation = "no copy can be read: " + error.detail,
                     .identity = {},
                     .disk = Disk::lost});
  co_return co_await finish_recalls(std::move(endings));
}

async::Task<void> Manager::Core::finish_recalls(std::vector<Ending> endings) {
  if (endings.empty()) co_return Result<void>{};
  std::vector<DiskChange> changes;
  std::vector<RequestRow> requests;
  for (Ending& ending : endings) {
    RequestRow& request = ending.recall->request;
    request.state = ending.state;
    request.explanation = ending.explanation;
    if (ending.state == RecallState::done && !request.for_reader) request.expiry = pin_until(request.days);
    requests.push_back(request);
    if (ending.disk)
      changes.push_back(
          {.object = ending.recall->object.id, .disk = *ending.disk, .identity = ending.identity});
  }
  CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.finish_recalls(changes, requests); }));
  for (const Ending& ending : endings) {
    const auto& recall = ending.recall;
    recall->running = false;
    recall->feed->end(base::fail(
        Code::data_loss, ending.state == RecallState::done ? "the object is on disk" : ending.explanation,
        base::Scope::object, base::Retry::later));
    const auto at = recalls_.find(recall->object.name);
    if (at != recalls_.end() && at->second == recall) recalls_.erase(at);
    if (ending.state == RecallState::done) {
      if (!recall->request.for_reader)
        pins_[recall->object.name] = {recall->object.identity.generation, recall->request.expiry,
                                      recall->request};
      emit("s3:ObjectRestore:Completed", recall->object.name, recall->object.identity.generation, {});
    }
    post_restore(recall->object.name);
    for (const auto& waiter : recall->waiters) waiter->wake();
  }
  co_return Result<void>{};
}

}  // namespace reelway::archive
