// The tapes' journals (journal.h): deaths go onto each volume that has copies of the dead, changes of
// policies onto at least one volume of each pool, so that a rebuild from tapes raises nobody and knows the
// policies.

#include <fmt/format.h>

#include <algorithm>

#include "archive/core.h"
#include "archive/policy.h"
#include "archive/tape_place.h"

namespace reelway::archive {

using base::Code;
using base::Result;

namespace {

constexpr std::uint64_t kDeathsMax = 10'000;  ///< in one file
constexpr std::uint64_t kFileMax = 64ull << 20;
constexpr base::Duration kRetry = std::chrono::minutes{15};

}  // namespace

async::Task<void> Manager::Core::load_policies() {
  CO_TRY(policies_, co_await db([](Catalog& catalog) { return catalog.policies(); }));
  CO_TRY(const auto changes, co_await db([](Catalog& catalog) { return catalog.policy_changes({}); }));
  policies_changed_ = changes.empty() ? base::TimePoint{} : changes.back().at;
  co_return Result<void>{};
}

// ---- writing ----

/// What the volume's journal lacks; the station is the caller's and its volume is mounted.
async::Task<void> Manager::Core::write_journal(Station& station) {
  const VolumeRow row = volumes_[station.barcode];
  CO_TRY(const auto dead,
         co_await db([&](Catalog& catalog) { return catalog.unjournalled(row.id, kDeathsMax); }));
  Journal journal;
  CO_TRY(journal.policies,
         co_await db([&](Catalog& catalog) { return catalog.policy_changes(row.policies_at); }));
  if (dead.empty() && journal.policies.empty()) co_return Result<void>{};
  for (const ObjectRow& object : dead) journal.deaths.push_back({object.name, object.identity.generation});
  const base::TimePoint policies_at = journal.policies.empty() ? row.policies_at : journal.policies.back().at;
  const std::string text = encode_journal(journal);
  tape::ltfs::Volume& volume = *station.volume;
  const std::string path = fmt::format("{}/{:08}", kJournalFolder, volume.next_number(kJournalFolder));
  Result<void> wrote =
      co_await volume.begin_file({.path = path, .displaced_path = {}, .modify_time = clock().now()});
  if (wrote.has_value()) wrote = co_await volume.append(base::as_bytes(text));
  if (wrote.has_value()) {
    auto finished = co_await volume.finish_file({});
    if (!finished.has_value()) wrote = finished.error();
  }
  // It is no loss when this fails: the list stays, and the batch tells what the volume's trouble is.
  if (wrote.has_value()) wrote = co_await settle_journal(station, dead, policies_at);
  if (!wrote.has_value()) {
    volume.abandon_file();
    remember_error(fmt::format("journal on {}: {}", station.barcode, base::to_string(wrote.error())));
  }
  co_return Result<void>{};
}

async::Task<void> Manager::Core::settle_journal(Station& station, const std::vector<ObjectRow>& dead,
                                                base::TimePoint policies_at) {
  CO_TRY(const auto receipt, co_await station.volume->write_manifest({}));
  CO_TRY_VOID(co_await station.volume->sync());
  VolumeRow row = volumes_[station.barcode];
  row.batches = std::max(row.batches, receipt.number);
  row.end_block = std::max(row.end_block, receipt.end_block);
  row.policies_at = policies_at;
  const std::int64_t id = row.id;
  CO_TRY_VOID(co_await put_volume(std::move(row)));
  co_return co_await db([&](Catalog& catalog) { return catalog.journalled(id, dead); });
}

bool Manager::Core::lacks_policies(const std::string& pool) const {
  bool written = false;
  for (const auto& [barcode, row] : volumes_) {
    if (row.pool != pool || row.uuid.empty()) continue;
    if (row.policies_at >= policies_changed_) return false;
    written = true;
  }
  return written;
}

/// One that can be written without a new cartridge being begun for it; a loaded one first.
std::optional<std::string> Manager::Core::journal_volume(const std::string& pool) {
  std::optional<std::string> found;
  for (const auto& [barcode, row] : volumes_) {
    if (row.pool != pool || row.state != VolumeState::active || !is_in_library(barcode)) continue;
    if (station_with(barcode) != nullptr) return barcode;
    if (!found) found = barcode;
  }
  return found;
}

/// Changes of policies that no batch has carried to tape.
async::Task<void> Manager::Core::journal_job() {
  const auto ended = co_await journal_policies();
  journalling_ = false;
  if (!ended.has_value() && !stopping_)
    remember_error("journal of policies: " + base::to_string(ended.error()));
  const std::vector<std::string> pools = pool_names();
  const bool left = std::any_of(pools.begin(), pools.end(),
                                [this](const std::string& pool) { return lacks_policies(pool); });
  next_journal_ = left ? clock().steady_now() + kRetry : base::SteadyPoint::max();
  co_return Result<void>{};
}

async::Task<void> Manager::Core::journal_policies() {
  for (const std::string& pool : pool_names()) {
    const auto barcode = lacks_policies(pool) ? journal_volume(pool) : std::nullopt;
    if (!barcode) continue;
    CO_TRY(Station* const station,
           co_await claim_station(*barcode, "archiving", fmt::format("writes policies to {}", *barcode)));
    auto wrote = co_await mount(*station, *barcode, true);
    const bool writable = wrote.has_value() && !station->volume->info().read_only;
    if (writable) wrote = co_await write_journal(*station);
    release(*station);
    if (writable) CO_TRY_VOID(wrote);  // a mount that fails is remembered there; the other pools go on
  }
  co_return Result<void>{};
}

// ---- reading ----

async::Task<void> Manager::Core::import_journal(tape::ltfs::Volume& volume, ImportView& view) {
  const tape::ltfs::Directory* folder = volume.index().find_directory(kJournalFolder);
  if (folder == nullptr) co_return Result<void>{};
  for (const auto& [name, file] : folder->files) {
    if (file->length > kFileMax) {
      add_problem(view, "a journal of more than 64 MiB: " + name);
      continue;
    }
    const auto bytes = co_await read_range(volume, *file, {0, file->length});
    auto journal = bytes.has_value() ? decode_journal(base::as_text(*bytes)) : Result<Journal>(bytes.error());
    if (!journal.has_value()) {
      add_problem(view, fmt::format("journal {}: {}", name, base::to_string(journal.error())));
      continue;
    }
    for (Death& death : journal->deaths) dead_.emplace(std::move(death.name), std::move(death.generation));
    for (PolicyChange& change : journal->policies) {
      PolicyChange& last = told_policies_[{change.policy.bucket, change.policy.prefix}];
      if (last.at < change.at) last = std::move(change);
    }
  }
  co_return Result<void>{};
}

/// Once all volumes were read: buries the dead, and takes over what the catalog does not know better.
async::Task<void> Manager::Core::settle_journals(ImportView& view) {
  std::vector<ObjectRow> buried;
  for (const auto& [name, generation] : std::exchange(dead_, {})) {
    buried.emplace_back();
    buried.back().name = name;
    buried.back().identity.generation = generation;
  }
  CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.remove(buried); }));
  for (const auto& [place, change] : std::exchange(told_policies_, {})) {
    const auto usable = change.removed ? Result<void>{} : check_policy(change.policy, pool_names());
    if (!usable.has_value()) {
      add_problem(view, fmt::format("the policy of {}/{} is not taken over: {}", place.first, place.second,
                                    usable.error().detail));
      continue;
    }
    CO_TRY(const bool taken,
           co_await db([&change](Catalog& catalog) { return catalog.take_policy(change); }));
    view.policies += taken && !change.removed ? 1 : 0;
  }
  co_return co_await load_policies();
}

}  // namespace reelway::archive
