// Evictions, by command and when a restored copy's days are over (rule 3: the archive's half; object::Tiered
// keeps the disk's).

#include <fmt/format.h>

#include <algorithm>

#include "archive/core.h"
#include "archive/policy.h"
#include "base/checksum.h"

namespace reelway::archive {

using base::Code;
using base::Result;

namespace {
constexpr std::size_t kPage = 1000;
constexpr std::size_t kEvictWidth = 16;
constexpr std::size_t kSkippedKept = 100;
constexpr std::size_t kRehashBytes = 1 << 20;
}  // namespace

struct Manager::Core::EvictTally {
  EvictOutcome outcome;
  void skip(const object::ObjectName& name, const std::string& reason) {
    ++outcome.skipped_count;
    if (outcome.skipped.size() < kSkippedKept)
      outcome.skipped.push_back(fmt::format("{}/{}: {}", name.bucket, name.key, reason));
  }
};

async::Task<EvictOutcome> Manager::Core::evict(std::string bucket, std::string prefix) {
  CO_TRY(const object::BucketInfo there, co_await env_.store.head_bucket(bucket));
  CO_TRY_VOID(co_await absorb_notes());
  EvictTally tally;
  std::string after;
  for (bool more = true; more && !stopping_;) {
    CO_TRY(auto rows,
           co_await db([&](Catalog& catalog) { return catalog.under(bucket, prefix, after, kPage); }));
    more = rows.size() == kPage;
    if (!rows.empty()) after = rows.back().name.key;
    const base::TimePoint now = clock().now();
    std::erase_if(rows, [&](const ObjectRow& row) {
      if (row.disk != Disk::resident) return true;
      const auto pin = pins_.find(row.name);
      const bool pinned = pin != pins_.end() && pin->second.expiry > now;
      if (pinned) tally.skip(row.name, "restored until " + base::to_iso8601(pin->second.expiry));
      return pinned;
    });
    CO_TRY_VOID(co_await evict_rows(std::move(rows), tally));
  }
  co_return std::move(tally.outcome);
}

/// What a repair had to bring to disk.
async::Task<void> Manager::Core::evict_again(std::vector<ObjectRow> rows) {
  EvictTally tally;
  CO_TRY_VOID(co_await evict_rows(std::move(rows), tally));
  for (const std::string& reason : tally.outcome.skipped)
    env_.log.write(base::LogLevel::info, "archive", "stays on disk after its repair: " + reason);
  co_return Result<void>{};
}

std::vector<CopyRow> Manager::Core::on_trusted(std::vector<CopyRow> copies) const {
  std::erase_if(copies, [this](const CopyRow& copy) {
    const VolumeRow* volume = volume_by_id(copy.volume);
    return volume == nullptr || volume->state == VolumeState::foreign;
  });
  return copies;
}

/// Those that the policy lets go: noted as evicting first, so that a crash in between is found again, then
/// one by one.
async::Task<void> Manager::Core::evict_rows(std::vector<ObjectRow> rows, EvictTally& tally) {
  std::vector<std::int64_t> ids;
  for (const ObjectRow& row : rows) ids.push_back(row.id);
  CO_TRY(const auto copies, co_await db([&](Catalog& catalog) { return catalog.copies(ids); }));
  std::map<std::int64_t, std::vector<CopyRow>> by_object;
  for (const CopyRow& copy : copies) by_object[copy.object].push_back(copy);
  std::erase_if(rows, [&](const ObjectRow& row) {
    const PolicyRow* policy = policy_of(policies_, row.name);
    const Result<void> allowed =
        policy == nullptr ? Result<void>(base::fail(Code::precondition_failed, "no policy archives it"))
        : in_batch_.contains(row.id) ? Result<void>(base::fail(Code::busy, "it is being archived"))
                                     : check_evictable(policy->policy, row, on_trusted(by_object[row.id]));
    if (!allowed.has_value()) tally.skip(row.name, allowed.error().detail);
    return !allowed.has_value();
  });
  if (rows.empty()) co_return Result<void>{};
  std::vector<DiskChange> changes;
  for (const ObjectRow& row : rows)
    changes.push_back({.object = row.id, .disk = Disk::evicting, .identity = {}});
  CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.set_disk(changes); }));
  std::vector<Result<void>> results(rows.size());
  const std::function<net::awaitable<void>(std::size_t)> work = [&](std::size_t i) {
    return evict_one(rows[i], changes[i], results[i]);
  };
  co_await fan_out(rows.size(), kEvictWidth, work);
  CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.set_disk(changes); }));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (results[i].has_value()) {
      ++tally.outcome.evicted;
      tally.outcome.bytes += rows[i].identity.size;
      pins_.erase(rows[i].name);
      post_restore(rows[i].name);
    } else {
      tally.skip(rows[i].name, results[i].error().detail);
    }
  }
  env_.meter.count("reelway_evictions_total", static_cast<double>(tally.outcome.evicted));
  co_return Result<void>{};
}

net::awaitable<void> Manager::Core::evict_one(const ObjectRow& row, DiskChange& change,
                                              Result<void>& result) {
  object::Identity archived = row.identity;
  auto evicted = co_await tiered_.evict(row.name, archived);
  if (!evicted.has_value() && evicted.error().code == Code::precondition_failed) {
    // Touched since, perhaps only in its mode or owner: the same bytes may still go.
    auto confirmed = co_await reconfirm(row);
    if (confirmed.has_value()) {
      archived = *confirmed;
      evicted = co_await tiered_.evict(row.name, archived);
    } else if (confirmed.error().code == Code::busy) {
      evicted = confirmed.error();  // the same bytes or not: nobody can tell yet
    }
  }
  if (evicted.has_value()) {
    change.disk = Disk::evicted;
    change.identity = *evicted;
    co_return;
  }
  change.disk = Disk::resident;
  change.identity = archived;
  result = evicted.error();
}

/// The file's identity now, if its bytes still are those that were archived.
async::Task<object::Identity> Manager::Core::reconfirm(const ObjectRow& row) {
  CO_TRY(auto reader, co_await tiered_.open_for_archive(row.name));
  if (reader->identity().generation != row.identity.generation || reader->info().size != row.identity.size ||
      row.sha256.empty()) {
    co_return base::fail(Code::precondition_failed, "another content than was archived", base::Scope::object);
  }
  const auto hasher = base::make_hasher(base::ChecksumKind::sha256);
  std::vector<std::byte> memory(kRehashBytes);
  for (;;) {
    CO_TRY(const std::size_t count, co_await reader->read(memory));
    if (count == 0) break;
    const base::ByteView bytes = base::ByteView(memory).first(count);
    auto hash = [&hasher, bytes]() -> Result<void> {
      hasher->update(bytes);
      return {};
    };
    CO_TRY_VOID(co_await on_pool(env_.hash_pool, hash));
  }
  if (base::to_hex(hasher->digest()) != row.sha256)
    co_return base::fail(Code::precondition_failed, "another content than was archived", base::Scope::object);
  co_return co_await reader->confirm_unchanged();
}

/// After Tiered::recover: what was being evicted when the process ended is a stub or a file now.
async::Task<void> Manager::Core::settle_interrupted() {
  CO_TRY(const auto rows, co_await db([](Catalog& catalog) { return catalog.evicting(); }));
  std::vector<DiskChange> changes;
  for (const ObjectRow& row : rows) {
    const auto entry = co_await entry_of(row.name);
    DiskChange change{.object = row.id, .disk = Disk::lost, .identity = {}};
    if (entry.has_value() && entry->info.generation == row.identity.generation) {
      const bool stub = entry->info.residency == object::Residency::evicted;
      change.disk = stub ? Disk::evicted : Disk::resident;
      // A file that was exchanged back keeps its archived identity: evict hashes it again when its ctime has
      // changed.
      if (stub) change.identity = entry->identity;
    } else if (entry.has_value()) {
      change.disk = Disk::removed;
    } else if (object::is_object_not_found(entry.error())) {
      change.disk = Disk::evicted;  // the scan tells a delete from a lost disk
    } else {
      co_return entry.error();
    }
    changes.push_back(std::move(change));
  }
  co_return co_await db([&](Catalog& catalog) { return catalog.set_disk(changes); });
}

async::Task<void> Manager::Core::expire_pins_job() {
  const base::TimePoint now = clock().now();
  std::vector<object::ObjectName> names;
  for (const auto& [name, pin] : pins_) {
    if (pin.expiry <= now && names.size() < kPage) names.push_back(name);
  }
  EvictTally tally;
  std::vector<ObjectRow> rows;
  std::vector<RequestRow> ended;
  for (const object::ObjectName& name : names) {
    auto found = co_await db([&](Catalog& catalog) { return catalog.find(name); });
    if (!found.has_value()) break;  // the pins stay, and are looked at again
    std::optional<ObjectRow> row = std::move(*found);
    const auto pin = pins_.find(name);
    if (pin == pins_.end()) continue;
    ended.push_back(pin->second.request);
    ended.back().expiry = {};
    pins_.erase(pin);
    post_restore(name);
    if (row && row->disk == Disk::resident) rows.push_back(std::move(*row));
  }
  auto evicted = co_await evict_rows(std::move(rows), tally);
  auto noted = co_await db([&](Catalog& catalog) { return catalog.put_requests(ended); });
  for (const std::string& reason : tally.outcome.skipped)
    env_.log.write(base::LogLevel::info, "archive", "stays on disk past its days: " + reason);
  expiring_ = false;
  CO_TRY_VOID(evicted);
  co_return noted;
}

}  // namespace reelway::archive
