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

// Archived objects that vanished past us are believed to be deleted unless more are missing than both of
// these, ...
constexpr std::uint64_t kMissingMax = 100;
constexpr std::uint64_t kMissingPercentMax = 10;
// ... or than this in a bucket where nothing is left.
constexpr std::uint64_t kMissingOfEmptyMax = 10;

constexpr std::size_t kConflictsNamed = 1000;  ///< between two imports

/// Rule 4: what POSIX has put where the stub of an archived object belongs: a file without a generation or
/// with an old one, or another object's stub. An overwrite through us whose note is late, or was lost in a
/// crash, has a younger generation.
bool is_in_a_stubs_place(const ObjectRow& row, const ObjectRow& fresh) {
  const bool stub_belongs = row.disk == Disk::evicted || row.disk == Disk::lost || row.disk == Disk::conflict;
  if (!stub_belongs) return false;
  return fresh.disk == Disk::evicted ? fresh.identity.generation != row.identity.generation
                                     : fresh.identity.generation < row.identity.generation;
}

}  // namespace

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

/// What a scan has seen of a bucket or a prefix.
struct Manager::Core::ScanTally {
  std::uint64_t entries = 0;
  std::uint64_t still_lost = 0;         ///< rows that an earlier scan found missing, and that still are
  std::vector<std::int64_t> not_there;  ///< ids of rows without an entry on disk, to be looked at again
};

async::Task<void> Manager::Core::scan(std::string bucket, std::string prefix) {
  ScanTally tally;
  std::string after;
  for (bool more = true; more && !stopping_;) {
    CO_TRY(const auto page, co_await tiered_.scan(bucket, prefix, after, kPage));
    more = page.size() == kPage;
    const std::string last = more ? page.back().info.name.key : std::string{};
    tally.entries += page.size();
    // What is known of this stretch of keys may be many more rows than the page has entries.
    std::size_t from = 0;
    for (bool known_more = true; known_more && !stopping_;) {
      CO_TRY(auto known,
             co_await db([&](Catalog& catalog) { return catalog.under(bucket, prefix, after, kPage); }));
      known_more = known.size() == kPage && (!more || known.back().name.key < last);
      const std::string until = known_more ? known.back().name.key : last;
      const bool bounded = known_more || more;
      if (bounded) std::erase_if(known, [&](const ObjectRow& row) { return row.name.key > until; });
      std::size_t to = from;
      while (to < page.size() && (!bounded || page[to].info.name.key <= until)) ++to;
      CO_TRY_VOID(co_await compare(std::span(page).subspan(from, to - from), known, tally));
      from = to;
      after = until;
    }
  }
  if (stopping_) co_return Result<void>{};
  co_return co_await settle_vanished(bucket, prefix, tally);
}

/// A stretch of keys: what is on disk, and what the catalog has there; both in order.
async::Task<void> Manager::Core::compare(std::span<const object::TierEntry> page,
                                         const std::vector<ObjectRow>& known, ScanTally& tally) {
  std::vector<ObjectRow> seen;
  std::vector<const ObjectRow*> conflicts;
  auto row = known.begin();
  const auto skip_to = [&](const std::string* key) {
    for (; row != known.end() && (key == nullptr || row->name.key < *key); ++row) {
      if (row->disk == Disk::lost)
        ++tally.still_lost;
      else
        tally.not_there.push_back(row->id);
    }
  };
  for (const object::TierEntry& entry : page) {
    skip_to(&entry.info.name.key);
    const ObjectRow* at = nullptr;
    if (row != known.end() && row->name == entry.info.name) at = &*row++;
    if (at == nullptr && entry.info.residency == object::Residency::evicted) {
      CO_TRY_VOID(co_await follow_moved_stub(entry));
      continue;
    }
    if (at != nullptr && at->disk == Disk::evicting) continue;
    ObjectRow fresh = row_of(entry);
    if (at != nullptr && is_in_a_stubs_place(*at, fresh)) {
      if (at->disk != Disk::conflict) conflicts.push_back(at);
      continue;
    }
    // Nothing new: most of a rescan writes nothing.
    const bool same = at != nullptr && at->identity.generation == fresh.identity.generation &&
                      at->identity.size == fresh.identity.size && at->disk == fresh.disk &&
                      at->policy == fresh.policy && !fresh.identity.generation.empty();
    if (!same) seen.push_back(std::move(fresh));
  }
  skip_to(nullptr);
  if (!seen.empty()) CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.note(seen); }));
  co_return co_await note_conflicts(conflicts);
}

async::Task<void> Manager::Core::note_conflicts(const std::vector<const ObjectRow*>& rows) {
  if (rows.empty()) co_return Result<void>{};
  std::vector<DiskChange> changes;
  for (const ObjectRow* row : rows)
    changes.push_back({.object = row->id, .disk = Disk::conflict, .identity = {}});
  CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.set_disk(changes); }));
  for (const ObjectRow* row : rows)
    report_conflict(row->name, row->identity.generation,
                    "what lies at the key is not the stub of the archived object");
  co_return Result<void>{};
}

async::Task<std::vector<ObjectRow>> Manager::Core::missing_on_disk(std::vector<std::int64_t> ids) {
  CO_TRY(auto rows, co_await db([&](Catalog& catalog) { return catalog.objects(ids); }));
  std::vector<ObjectRow> missing;
  for (ObjectRow& row : rows) {
    if (row.disk == Disk::removed || row.disk == Disk::lost || row.disk == Disk::evicting) continue;
    // It may have come, or been followed to another key, while we looked.
    const auto head = co_await env_.store.head({.name = row.name, .conditions = {}});
    if (!head.has_value() && object::is_object_not_found(head.error())) missing.push_back(std::move(row));
  }
  co_return missing;
}

/// Rows whose keys are empty. What has no copy on tape is forgotten. What has is a delete by POSIX, unless so
/// much is missing that the disk may have been lost or swapped: then nothing is given up, because deaths are
/// written to the tapes too. Only a scan of the whole bucket can tell.
async::Task<void> Manager::Core::settle_vanished(const std::string& bucket, const std::string& prefix,
                                                 const ScanTally& tally) {
  if (tally.not_there.empty()) co_return Result<void>{};
  CO_TRY_VOID(co_await absorb_notes());  // deletes that went through us
  std::vector<ObjectRow> gone;
  std::vector<std::int64_t> archived;
  std::vector<DiskChange> lost;
  for (std::size_t from = 0; from < tally.not_there.size(); from += kPage) {
    const auto begin = tally.not_there.begin() + static_cast<std::ptrdiff_t>(from);
    const auto end =
        tally.not_there.begin() + static_cast<std::ptrdiff_t>(std::min(from + kPage, tally.not_there.size()));
    CO_TRY(auto missing, co_await missing_on_disk({begin, end}));
    CO_TRY(const auto on_tape, co_await with_copies(missing));
    for (ObjectRow& row : missing) {
      if (row.disk == Disk::conflict)
        lost.push_back({.object = row.id, .disk = Disk::lost, .identity = {}});
      else if (on_tape.contains(row.id))
        archived.push_back(row.id);
      else
        gone.push_back(std::move(row));
    }
  }
  CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.set_disk(lost); }));
  CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.remove(gone); }));
  if (archived.empty()) co_return Result<void>{};
  if (!prefix.empty()) {
    next_rescan_ = clock().steady_now();
    wake();
    co_return Result<void>{};
  }
  CO_TRY(const auto moved, co_await moved_elsewhere(bucket, archived));
  std::vector<std::int64_t> followed(moved.begin(), moved.end());
  CO_TRY_VOID(co_await give_up(followed));
  std::erase_if(archived, [&](std::int64_t id) { return moved.contains(id); });
  if (archived.empty()) co_return Result<void>{};
  CO_TRY(const std::uint64_t known,
         co_await db([&](Catalog& catalog) { return catalog.count_with_copies(bucket); }));
  const std::uint64_t missing = archived.size() + tally.still_lost;
  const bool too_many = missing > kMissingMax && missing * 100 > known * kMissingPercentMax;
  const bool nothing_left = tally.entries == 0 && missing > kMissingOfEmptyMax;
  if (too_many || nothing_left) co_return co_await keep_missing(bucket, archived, missing, known);
  env_.log.write(base::LogLevel::info, "archive",
                 fmt::format("{} archived objects of {} are gone from disk", archived.size(), bucket));
  co_return co_await give_up(archived);
}

/// Rows whose objects are gone from where they were, if they still are.
async::Task<void> Manager::Core::give_up(const std::vector<std::int64_t>& ids) {
  for (std::size_t from = 0; from < ids.size(); from += kPage) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(from);
    const auto end = ids.begin() + static_cast<std::ptrdiff_t>(std::min(from + kPage, ids.size()));
    CO_TRY(const auto rows, co_await missing_on_disk({begin, end}));
    CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.remove(rows); }));
  }
  co_return Result<void>{};
}

/// Files that mv gave another key of the bucket: the same inode, size and time. There they are new objects,
/// as every file that POSIX made; stubs were followed by compare(). The bucket is walked once more, which is
/// what a false alarm of a lost disk would cost a person too.
async::Task<std::set<std::int64_t>> Manager::Core::moved_elsewhere(const std::string& bucket,
                                                                   const std::vector<std::int64_t>& ids) {
  std::map<std::uint64_t, ObjectRow> by_inode;
  for (std::size_t from = 0; from < ids.size(); from += kPage) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(from);
    const auto end = ids.begin() + static_cast<std::ptrdiff_t>(std::min(from + kPage, ids.size()));
    CO_TRY(auto rows, co_await missing_on_disk({begin, end}));
    for (ObjectRow& row : rows) {
      if (row.disk == Disk::resident) by_inode[row.identity.inode] = std::move(row);
    }
  }
  std::set<std::int64_t> moved;
  std::string after;
  for (bool more = !by_inode.empty(); more && !stopping_;) {
    CO_TRY(const auto page, co_await tiered_.scan(bucket, {}, after, kPage));
    more = page.size() == kPage;
    if (!page.empty()) after = page.back().info.name.key;
    for (const object::TierEntry& entry : page) {
      const auto at = by_inode.find(entry.identity.inode);
      const bool same = at != by_inode.end() && entry.info.residency == object::Residency::resident &&
                        entry.identity.size == at->second.identity.size &&
                        entry.identity.mtime == at->second.identity.mtime;
      if (same) moved.insert(at->second.id);
    }
  }
  co_return moved;
}

async::Task<std::set<std::int64_t>> Manager::Core::with_copies(const std::vector<ObjectRow>& rows) {
  std::vector<std::int64_t> ids;
  for (const ObjectRow& row : rows) ids.push_back(row.id);
  CO_TRY(const auto copies, co_await db([&](Catalog& catalog) { return catalog.copies(ids); }));
  std::set<std::int64_t> found;
  for (const CopyRow& copy : copies) found.insert(copy.object);
  co_return found;
}

async::Task<void> Manager::Core::keep_missing(const std::string& bucket, const std::vector<std::int64_t>& ids,
                                              std::uint64_t missing, std::uint64_t known) {
  std::vector<DiskChange> changes;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    changes.push_back({.object = ids[i], .disk = Disk::lost, .identity = {}});
    if (changes.size() < kPage && i + 1 < ids.size()) continue;
    CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.set_disk(changes); }));
    changes.clear();
  }
  const std::string message = fmt::format(
      "bucket {}: {} of {} archived objects are missing on disk; nothing is given up: look at the disk, then "
      "run `reelway tape import` to make their stubs again, and delete through S3 what is not wanted",
      bucket, missing, known);
  remember_error(message);
  emit("reelway:ObjectsMissing", {.bucket = bucket, .key = {}}, {}, message);
  co_return Result<void>{};
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
  report_conflict(entry.info.name, entry.info.generation, "a stub that stands for no object of this key");
  co_return false;
}

void Manager::Core::report_conflict(const object::ObjectName& name, const std::string& generation,
                                    const std::string& detail) {
  if (conflicts_told_.size() > kConflictsNamed || !conflicts_told_.emplace(name, generation).second) return;
  if (conflicts_told_.size() > kConflictsNamed) {
    remember_error("there are more conflicts than are named here: `reelway archive why` tells of each");
    return;
  }
  emit("reelway:Conflict", name, generation, detail);
  remember_error(fmt::format("conflict at {}/{}: {}", name.bucket, name.key, detail));
}

}  // namespace reelway::archive
