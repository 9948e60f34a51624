// Drives and what is in them: loading, mounting, formatting, unmounting, and choosing volumes to write.

#include <fmt/format.h>

#include <algorithm>

#include "archive/core.h"
#include "archive/trust.h"

namespace reelway::archive {

using base::Code;
using base::Result;

namespace {
constexpr base::Duration kDriveRest =
    std::chrono::seconds{60};  ///< a drive that failed is left alone so long
constexpr std::string_view kBatches = "/.reelway/batches";
}  // namespace

bool Manager::Core::is_idle(const Station& station) const {
  return !station.busy && station.failed_until <= clock().steady_now();
}

void Manager::Core::take(Station& station, std::string state, std::string activity) {
  station.busy = true;
  station.state = std::move(state);
  station.activity = std::move(activity);
  station.done = 0;
  station.total = 0;
}

void Manager::Core::release(Station& station) {
  station.busy = false;
  station.reading = false;
  station.idle_since = clock().steady_now();
  const bool failed = station.failed_until > clock().steady_now();
  station.state = failed ? "failed" : station.barcode.empty() ? "empty" : "idle";
  if (!failed) station.activity.clear();
  wake();
}

void Manager::Core::note_drive_error(Station& station, const base::Error& error) {
  remember_error(fmt::format("drive {}{}{}: {}", station.number, station.barcode.empty() ? "" : " with ",
                             station.barcode, base::to_string(error)));
  station.volume.reset();
  station.activity = error.detail;
  if (error.scope == base::Scope::drive || error.scope == base::Scope::library ||
      error.code == Code::unavailable) {
    station.failed_until = clock().steady_now() + kDriveRest;
  }
}

bool Manager::Core::is_in_library(const std::string& barcode) const {
  const tape::LibraryView& view = env_.library.view();
  return std::any_of(view.slots.begin(), view.slots.end(),
                     [&](const auto& slot) { return slot.barcode == barcode; }) ||
         std::any_of(view.bays.begin(), view.bays.end(),
                     [&](const auto& bay) { return bay.barcode == barcode; });
}

Station* Manager::Core::station_with(const std::string& barcode) {
  const auto at = std::find_if(stations_.begin(), stations_.end(),
                               [&](const auto& station) { return station->barcode == barcode; });
  return at == stations_.end() ? nullptr : at->get();
}

const VolumeRow* Manager::Core::volume_by_id(std::int64_t id) const {
  const auto at = std::find_if(volumes_.begin(), volumes_.end(),
                               [&](const auto& volume) { return volume.second.id == id; });
  return at == volumes_.end() ? nullptr : &at->second;
}

async::Task<void> Manager::Core::put_volume(VolumeRow row) {
  CO_TRY(auto stored, co_await db([&](Catalog& catalog) { return catalog.put_volume(row); }));
  const std::string barcode = stored.barcode;
  volumes_[barcode] = std::move(stored);
  co_return Result<void>{};
}

// ---- mounting ----

/// The station is the caller's (busy). Does nothing when the volume is mounted there already.
async::Task<void> Manager::Core::mount(Station& station, std::string barcode, bool for_writing) {
  if (station.barcode == barcode && station.volume != nullptr) co_return Result<void>{};
  auto mounted = co_await mount_fresh(station, barcode, for_writing);
  if (!mounted.has_value()) note_drive_error(station, mounted.error());
  co_return mounted;
}

async::Task<void> Manager::Core::mount_fresh(Station& station, const std::string& barcode, bool for_writing) {
  if (station.barcode != barcode) CO_TRY_VOID(co_await dismount(station));
  ++robot_jobs_;
  robot_ = fmt::format("moves {} to drive {}", barcode, station.number);
  const std::string state = station.state;
  station.state = "loading";
  const auto loaded = co_await env_.library.load(barcode, station.number);
  station.state = state;
  if (--robot_jobs_ == 0) robot_ = "idle";
  CO_TRY_VOID(loaded);
  station.barcode = barcode;
  station.head_block = 0;
  tape::Drive& drive = env_.library.drive(station.number);
  const tape::ltfs::Environment environment{.clock = clock(), .rng = env_.rng, .log = env_.log};
  auto volume = co_await tape::ltfs::Volume::mount(drive, environment, {});
  const bool blank = !volume.has_value() && volume.error().code == Code::not_found &&
                     volume.error().scope == base::Scope::cartridge;
  const bool known = volumes_.contains(barcode) && !volumes_[barcode].uuid.empty();
  if (blank && known) co_return co_await refuse(barcode, {"it is blank, the catalog has a volume on it"});
  if (blank && for_writing) {
    // The catalog notes the intent first. A cartridge that it has as blank from before, and that mount finds
    // without a volume, was being formatted by us when the power went: it may be formatted over. Anything
    // else that is not blank is somebody's.
    const bool begun = volumes_.contains(barcode) && volumes_[barcode].state == VolumeState::blank;
    VolumeRow row = volumes_[barcode];
    row.barcode = barcode;
    row.pool = pool_of_[barcode];
    CO_TRY_VOID(co_await put_volume(std::move(row)));
    tape::ltfs::FormatOptions format{.barcode = barcode,
                                     .volume_name = barcode,
                                     .media_pool = pool_of_[barcode],
                                     .block_bytes = options_.tape_block_bytes,
                                     .overwrite = begun};
    volume = co_await tape::ltfs::Volume::format(drive, environment, std::move(format), {});
  }
  if (!volume.has_value()) {
    const bool foreign =
        volume.error().code == Code::unsupported || volume.error().code == Code::already_exists;
    const bool unreadable = foreign || (!blank && volume.error().scope == base::Scope::cartridge);
    if (unreadable) {
      VolumeRow row = volumes_[barcode];
      row.barcode = barcode;
      row.pool = pool_of_[barcode];
      row.state = foreign ? VolumeState::foreign : VolumeState::damaged;
      CO_TRY_VOID(co_await put_volume(std::move(row)));
    }
    co_return volume.error();
  }
  station.volume = std::move(*volume);
  co_return co_await trust(station, barcode);
}

/// A volume is believed only when it is the one that the catalog knows, and what it has and the catalog has
/// not is imported first. Nothing was written to it until then.
async::Task<void> Manager::Core::trust(Station& station, const std::string& barcode) {
  const tape::ltfs::VolumeInfo info = station.volume->info();
  VolumeRow row = volumes_[barcode];
  row.barcode = barcode;
  const bool formatted_here = row.id != 0 && row.state == VolumeState::blank;
  std::vector<std::string> reasons =
      marks_that_differ(row, {.label = info.serial, .uuid = info.uuid, .medium_serial = info.medium_serial});
  if (reasons.empty() && row.uuid.empty() && !formatted_here && !importing_)
    reasons.emplace_back("it holds an LTFS volume that the catalog does not know");
  if (!reasons.empty()) {
    station.volume.reset();
    co_return co_await refuse(barcode, std::move(reasons));
  }
  row.uuid = info.uuid;
  row.serial = info.serial;
  row.medium_serial = info.medium_serial;
  row.pool = pool_of_[barcode];
  row.block_bytes = info.block_bytes;
  if (row.state == VolumeState::blank || row.state == VolumeState::foreign) row.state = VolumeState::active;
  CO_TRY(const tape::Capacity capacity, co_await station.volume->capacity());
  row.capacity_bytes = capacity.maximum;
  row.bytes = capacity.maximum - std::min(capacity.maximum, capacity.remaining);
  CO_TRY_VOID(co_await put_volume(row));
  if (!importing_ && station.volume->next_number(kBatches) - 1 > row.batches) {
    ImportView view;
    CO_TRY_VOID(co_await import_volume(station, view));
    CO_TRY_VOID(co_await settle_journals(view));
    next_read_back_ = clock().steady_now();
    env_.log.write(base::LogLevel::info, "archive",
                   fmt::format("{} was ahead of the catalog: {} copies taken over", barcode, view.copies));
  }
  co_return Result<void>{};
}

/// From now on nothing is written to it and nothing is read from it, until an import finds the right one.
async::Task<void> Manager::Core::refuse(const std::string& barcode, std::vector<std::string> reasons) {
  VolumeRow row = volumes_[barcode];
  row.barcode = barcode;
  row.pool = pool_of_[barcode];
  row.state = VolumeState::foreign;
  CO_TRY_VOID(co_await put_volume(std::move(row)));
  co_return base::fail(
      Code::unsupported,
      fmt::format("cartridge {} is not trusted: {}; nothing is written to it and nothing is read from it. If "
                  "it was swapped, put the right one back; then, or if this one belongs here, run `reelway "
                  "tape import`",
                  barcode, fmt::join(reasons, "; ")),
      base::Scope::cartridge);
}

/// Index, unmount, unload. The station is the caller's.
async::Task<void> Manager::Core::dismount(Station& station) {
  Result<void> outcome;
  if (station.volume != nullptr) {
    const VolumeRow& row = volumes_[station.barcode];
    const bool takes_policies = !importing_ && row.state == VolumeState::active && lacks_policies(row.pool) &&
                                !station.volume->info().read_only;
    if (takes_policies) {
      const auto wrote = co_await write_journal(station);
      if (!wrote.has_value()) remember_error(base::to_string(wrote.error()));
    }
    outcome = co_await station.volume->unmount();
    station.volume.reset();
    if (!outcome.has_value())
      remember_error(fmt::format("unmounting {}: {}", station.barcode, base::to_string(outcome.error())));
  }
  if (station.barcode.empty()) co_return Result<void>{};
  ++robot_jobs_;
  robot_ = fmt::format("puts {} away from drive {}", station.barcode, station.number);
  station.state = "unloading";
  auto unloaded = co_await env_.library.unload(station.number);
  if (--robot_jobs_ == 0) robot_ = "idle";
  CO_TRY_VOID(unloaded);
  station.barcode.clear();
  station.head_block = 0;
  co_return Result<void>{};
}

async::Task<void> Manager::Core::unload_job(Station& station) {
  auto ended = co_await dismount(station);
  if (!ended.has_value()) note_drive_error(station, ended.error());
  release(station);
  co_return Result<void>{};
}

async::Task<void> Manager::Core::refresh_job() {
  auto looked = co_await env_.library.refresh();
  refreshing_ = false;
  if (!looked.has_value()) remember_error("inventory: " + base::to_string(looked.error()));
  for (std::size_t i = 0; looked.has_value() && i < stations_.size(); ++i) {
    // A hand may have taken a cartridge out of an idle drive, or put one in.
    if (!stations_[i]->busy && stations_[i]->volume == nullptr) {
      stations_[i]->barcode = env_.library.view().bays[i].barcode;
      if (is_idle(*stations_[i])) stations_[i]->state = stations_[i]->barcode.empty() ? "empty" : "idle";
    }
  }
  wake();
  co_return Result<void>{};
}

// ---- which volume is written next ----

/// Fills one volume before the next: those in use first (loaded ones before others), then fresh ones in the
/// pool's order.
std::optional<std::string> Manager::Core::choose_volume(const std::string& pool,
                                                        const std::set<std::string>& not_these) {
  const auto listed = options_.pools.find(pool);
  if (listed == options_.pools.end()) return std::nullopt;
  std::optional<std::string> best;
  int best_rank = 3;
  for (const std::string& barcode : listed->second) {
    if (not_these.contains(barcode) || !is_in_library(barcode)) continue;
    const Station* station = station_with(barcode);
    if (station != nullptr && !is_idle(*station)) continue;
    const auto row = volumes_.find(barcode);
    const VolumeState state = row == volumes_.end() ? VolumeState::blank : row->second.state;
    if (state != VolumeState::blank && state != VolumeState::active) continue;
    const int rank = state == VolumeState::blank ? 2 : station != nullptr ? 0 : 1;
    if (rank < best_rank) {
      best = barcode;
      best_rank = rank;
    }
  }
  return best;
}

}  // namespace reelway::archive
