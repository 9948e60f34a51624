// What is on disk, compared with what the catalog knows.

#include <fmt/format.h>

#include <algorithm>

#include "archive/core.h"
#include "archive/policy.h"
#include "object/metadata_codec.h"

namespace reelway::archive {

using base::Result;

namespace {
constexpr std::size_t kPage = 1000;
}

ObjectRow Manager::Core::row_of(const object::TierEntry& entry) const {
  const PolicyRow* policy = policy_of(policies_, entry.info.name);
  ObjectRow row{.id = 0,
                .name = entry.info.name,
                .identity = entry.identity,
                .sha256 = {},
                .metadata = object::encode_metadata(entry.info),
                .disk = entry.info.residency == object::Residency::evicted ? Disk::evicted : Disk::resident,
                .missing = {},
                .policy = 0,
                .noted = clock().now()};
  row.identity.generation = entry.info.generation;
  row.identity.size = entry.info.size;
  if (policy != nullptr) {
    row.policy = policy->id;
    row.missing = policy->policy.pools;
  }
  return row;
}

async::Task<object::TierEntry> Manager::Core::entry_of(object::ObjectName name) {
  CO_TRY(auto page, co_await tiered_.scan(name.bucket, name.key, {}, 1));
  if (page.empty() || page.front().info.name != name) co_return object::object_not_found(name);
  co_return std::move(page.front());
}

async::Task<void> Manager::Core::rescan_job() {
  auto scanned = co_await scan_all();
  scanning_ = false;
  if (!scanned.has_value()) remember_error("the scan ended early: " + base::to_string(scanned.error()));
  wake();
  co_return Result<void>{};
}

async::Task<void> Manager::Core::scan_all() {
  CO_TRY(const auto buckets, co_await env_.store.list_buckets());
  for (const object::BucketInfo& bucket : buckets) {
    if (stopping_) break;
    CO_TRY_VOID(co_await scan(bucket.name, {}));
  }
  co_return Result<void>{};
}

async::Task<void> Manager::Core::scan(std::string bucket, std::string prefix) {
  std::string after;
  for (bool more = true; more && !stopping_;) {
    CO_TRY(const auto page, co_await tiered_.scan(bucket, prefix, after, kPage));
    more = page.size() == kPage;
    CO_TRY(const auto known,
           co_await db([&](Catalog& catalog) { return catalog.under(bucket, prefix, after, 4 * kPage); }));
    std::vector<ObjectRow> seen;
    for (const object::TierEntry& entry : page) {
      auto row = std::lower_bound(
          known.begin(), known.end(), entry.info.name,
          [](const ObjectRow& at, const object::ObjectName& name) { return at.name < name; });
      if (row != known.end() && row->name != entry.info.name) row = known.end();
      if (entry.info.residency == object::Residency::evicted && row == known.end()) {
        CO_TRY_VOID(co_await follow_moved_stub(entry));
        continue;
      }
      ObjectRow fresh = row_of(entry);
      // Nothing new: most of a rescan writes nothing.
      const bool same = row != known.end() && row->identity.generation == fresh.identity.generation &&
                        row->identity.size == fresh.identity.size && row->disk == fresh.disk &&
                        row->policy == fresh.policy && !fresh.identity.generation.empty();
      if (!same && !(row != known.end() && row->disk == Disk::evicting)) seen.push_back(std::move(fresh));
    }
    if (!seen.empty()) CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.note(seen); }));
    // Rows of this stretch of keys that are not on disk.
    const std::string last = more ? page.back().info.name.key : std::string{};
    std::vector<ObjectRow> stretch;
    for (const ObjectRow& row : known) {
      if (!more || row.name.key <= last) stretch.push_back(row);
    }
    CO_TRY_VOID(co_await remove_vanished(bucket, page, stretch));
    if (more) after = last;
  }
  co_return Result<void>{};
}

async::Task<void> Manager::Core::remove_vanished(const std::string& bucket,
                                                 const std::vector<object::TierEntry>& page,
                                                 const std::vector<ObjectRow>& known) {
  std::vector<ObjectRow> gone;
  for (const ObjectRow& row : known) {
    const bool there =
        std::binary_search(page.begin(), page.end(), row.name.key, [](const auto& a, const auto& b) {
          if constexpr (std::is_same_v<std::decay_t<decltype(a)>, std::string>)
            return a < b.info.name.key;
          else
            return a.info.name.key < b;
        });
    if (there || row.disk == Disk::lost || row.disk == Disk::conflict) continue;
    // It may have come while we looked.
    auto head = co_await env_.store.head({.name = row.name, .conditions = {}});
    if (!head.has_value() && object::is_object_not_found(head.error())) gone.push_back(row);
  }
  if (gone.empty()) co_return Result<void>{};
  env_.log.write(base::LogLevel::info, "archive",
                 fmt::format("{} objects of {} are gone from disk", gone.size(), bucket));
  co_return co_await db([&](Catalog& catalog) { return catalog.remove(gone); });
}

async::Task<bool> Manager::Core::follow_moved_stub(const object::TierEntry& entry) {
  // Rule 4: same inode, old name gone, same bucket. Anything else under a foreign key is a conflict.
  CO_TRY(const auto moved, co_await db([&](Catalog& catalog) {
           return catalog.find_stub(entry.info.name.bucket, entry.info.generation);
         }));
  const bool same_stub =
      moved && moved->identity.inode == entry.identity.inode && moved->disk == Disk::evicted;
  if (same_stub) {
    auto head = co_await env_.store.head({.name = moved->name, .conditions = {}});
    if (!head.has_value() && object::is_object_not_found(head.error())) {
      CO_TRY_VOID(
          co_await db([&](Catalog& catalog) { return catalog.move_object(moved->id, entry.info.name); }));
      co_return true;
    }
  }
  emit("reelway:Conflict", entry.info.name, entry.info.generation,
       "a stub that stands for no object of this key");
  co_return false;
}

}  // namespace reelway::archive
