// Reading copies back and comparing them with the checksums that the catalog has.

#include <fmt/format.h>

#include <algorithm>

#include "archive/core.h"
#include "base/checksum.h"

namespace reelway::archive {

using base::Code;
using base::Result;

namespace {

constexpr base::Duration kPoll = std::chrono::milliseconds{200};  ///< for a drive
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
  if (!results[0].has_value()) note_drive_error(station, results[0].error());
  co_return Result<void>{};
}

async::Task<void> Manager::Core::mark_damaged(const CopyRow& copy, const base::Error& error) {
  const VolumeRow* volume = volume_by_id(copy.volume);
  remember_error(fmt::format("damaged copy on {}, block {}: {}", volume == nullptr ? "?" : volume->barcode,
                             copy.block, base::to_string(error)));
  env_.meter.count("reelway_archive_damaged_copies_total");
  co_return co_await db([&](Catalog& catalog) { return catalog.set_damaged(copy.id); });
}

// ---- the command ----

async::Task<void> Manager::Core::verify_job(Station& station, std::string barcode,
                                            std::vector<CopyRow> copies, std::shared_ptr<async::Waiter> end) {
  auto mounted = co_await mount(station, barcode, false);
  if (mounted.has_value()) {
    station.state = "verifying";
    auto verified = co_await verify_copies(station, std::move(copies));
    if (!verified.has_value()) remember_error(base::to_string(verified.error()));
  }
  release(station);
  end->wake();
  co_return Result<void>{};
}

/// One volume after the other, so that a drive stays free for readers.
async::Task<StatusView> Manager::Core::verify(std::string bucket, std::string prefix) {
  std::map<std::int64_t, std::vector<CopyRow>> by_volume;
  std::string after;
  for (bool more = true; more;) {
    CO_TRY(const auto rows,
           co_await db([&](Catalog& catalog) { return catalog.under(bucket, prefix, after, 1000); }));
    more = rows.size() == 1000;
    std::vector<std::int64_t> ids;
    for (const ObjectRow& row : rows) ids.push_back(row.id);
    CO_TRY(const auto copies, co_await db([&](Catalog& catalog) { return catalog.copies(ids); }));
    for (const CopyRow& copy : copies) {
      if (!copy.damaged) by_volume[copy.volume].push_back(copy);
    }
    if (!rows.empty()) after = rows.back().name.key;
  }
  for (auto& [volume, copies] : by_volume) {
    const VolumeRow* row = volume_by_id(volume);
    if (row == nullptr) continue;
    CO_TRY(Station* const station,
           co_await claim_station(row->barcode, "verifying",
                                  fmt::format("verifies {} copies on {}", copies.size(), row->barcode)));
    const auto end = std::make_shared<async::Waiter>();
    if (!start_job("verification", verify_job(*station, row->barcode, std::move(copies), end))) {
      release(*station);
      co_return base::fail(Code::closed, "the archive is stopping");
    }
    CO_TRY_VOID(co_await end->wait());
  }
  wake();
  co_return co_await status_view();
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
