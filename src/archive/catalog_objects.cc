// Catalog: objects and their copies.

#include <fmt/format.h>

#include <algorithm>

#include "archive/catalog_writer.h"
#include "base/encoding.h"

namespace reelway::archive {

using base::Result;
using catalog_detail::collect;
using catalog_detail::collect_by_id;
using catalog_detail::CopyFields;
using catalog_detail::execute_by_id;
using catalog_detail::from_db;
using catalog_detail::guarded;
using catalog_detail::kSelectObject;
using catalog_detail::ObjectFields;
using catalog_detail::ObjectWriter;
using catalog_detail::prefix_end;
using catalog_detail::split_pools;
using catalog_detail::time_from_db;
using catalog_detail::to_db;
using catalog_detail::transacted;
using soci::into;
using soci::use;

namespace catalog_detail {

void ObjectFields::bind(soci::statement& statement) {
  for (auto* number : {&id}) statement.exchange(into(*number));
  for (auto* text : {&bucket, &key, &generation}) statement.exchange(into(*text));
  for (auto* number : {&size, &inode, &mtime, &ctime}) statement.exchange(into(*number));
  for (auto* text : {&sha256, &metadata}) statement.exchange(into(*text));
  statement.exchange(into(disk));
  statement.exchange(into(missing));
  for (auto* number : {&policy, &noted}) statement.exchange(into(*number));
}

ObjectRow ObjectFields::row() const {
  ObjectRow row{.id = id,
                .name = {bucket, key},
                .identity = {.generation = generation,
                             .inode = from_db(inode),
                             .size = from_db(size),
                             .mtime = time_from_db(mtime),
                             .ctime = time_from_db(ctime)},
                .sha256 = sha256,
                .metadata = base::from_base64(metadata).value_or(base::Bytes{}),
                .disk = static_cast<Disk>(disk),
                .missing = split_pools(missing),
                .policy = policy,
                .noted = time_from_db(noted)};
  return row;
}

void CopyFields::bind(soci::statement& statement) {
  for (auto* number : {&id, &object, &volume}) statement.exchange(into(*number));
  statement.exchange(into(path));
  statement.exchange(into(bundled));
  for (auto* number : {&offset, &length, &block, &end_block, &batch}) statement.exchange(into(*number));
  for (auto* flag : {&verified, &damaged}) statement.exchange(into(*flag));
}

CopyRow CopyFields::row() const {
  return {.id = id,
          .object = object,
          .volume = volume,
          .path = path,
          .bundled = bundled != 0,
          .offset = from_db(offset),
          .length = from_db(length),
          .block = from_db(block),
          .end_block = from_db(end_block),
          .batch = from_db(batch),
          .verified = verified != 0,
          .damaged = damaged != 0};
}

}  // namespace catalog_detail

namespace {

bool same_content(const object::Identity& a, const object::Identity& b) {
  return a.generation == b.generation && a.size == b.size &&
         (!a.generation.empty() || (a.mtime == b.mtime && a.inode == b.inode));
}

void note_one(ObjectWriter& writer, const ObjectRow& seen) {
  auto current = writer.current(seen.name);
  if (current && same_content(current->identity, seen.identity)) {
    ObjectRow row = *current;
    // What was archived stays recorded: evict compares with it, and a file that was touched since is hashed
    // again before it may go.
    const bool keep = row.disk == seen.disk && row.identity.inode != 0;
    if (!keep) row.identity = seen.identity;
    if (!seen.metadata.empty()) row.metadata = seen.metadata;
    row.disk = seen.disk;
    if (seen.policy == 0)
      row.missing.clear();
    else if (row.policy != seen.policy || row.disk != current->disk)
      row.missing = writer.missing_of(row.id, seen.missing);
    row.policy = seen.policy;
    writer.update(row);
    return;
  }
  if (seen.policy == 0 && !current) return;
  if (current) writer.bury(current->id);
  auto known =
      seen.identity.generation.empty() ? std::nullopt : writer.version(seen.name, seen.identity.generation);
  if (known) {
    ObjectRow row = seen;
    row.id = known->id;
    row.sha256 = known->sha256;
    row.missing = writer.missing_of(row.id, seen.missing);
    writer.update(row);
  } else if (seen.disk == Disk::resident) {
    writer.insert(seen);
  }
}

}  // namespace

Result<void> Catalog::note(const std::vector<ObjectRow>& seen) {
  return transacted(state_->sql, "note", [&]() -> Result<void> {
    ObjectWriter writer(state_->sql);
    for (const ObjectRow& row : seen) note_one(writer, row);
    return {};
  });
}

Result<std::optional<ObjectRow>> Catalog::find(const object::ObjectName& name) {
  return guarded(
      "find", [&]() -> Result<std::optional<ObjectRow>> { return ObjectWriter(state_->sql).current(name); });
}

Result<std::optional<ObjectRow>> Catalog::find(const object::ObjectName& name,
                                               const std::string& generation) {
  return guarded("find", [&]() -> Result<std::optional<ObjectRow>> {
    return ObjectWriter(state_->sql).version(name, generation);
  });
}

Result<std::optional<ObjectRow>> Catalog::find_stub(const std::string& bucket,
                                                    const std::string& generation) {
  return guarded("find_stub", [&]() -> Result<std::optional<ObjectRow>> {
    auto rows = collect<ObjectFields>(
        state_->sql, kSelectObject + "o.generation = :generation AND o.bucket = :bucket AND o.disk = 2",
        [&](soci::statement& statement) {
          statement.exchange(use(generation));
          statement.exchange(use(bucket));
        });
    if (rows.empty()) return std::nullopt;
    return std::move(rows.front());
  });
}

Result<void> Catalog::move_object(std::int64_t object, const object::ObjectName& to) {
  return transacted(state_->sql, "move_object", [&]() -> Result<void> {
    const long long id = object;
    state_->sql << "UPDATE objects SET key = :key WHERE id = :id AND bucket = :bucket", use(to.key), use(id),
        use(to.bucket);
    return {};
  });
}

Result<std::vector<ObjectRow>> Catalog::objects(const std::vector<std::int64_t>& ids) {
  return guarded("objects", [&]() -> Result<std::vector<ObjectRow>> {
    return collect_by_id<ObjectFields>(state_->sql, kSelectObject + "o.id = :id", ids);
  });
}

Result<std::vector<ObjectRow>> Catalog::under(const std::string& bucket, const std::string& prefix,
                                              const std::string& start_after, std::size_t count_max) {
  const std::string end = prefix_end(prefix);
  std::string query =
      kSelectObject + "o.disk <> 5 AND o.bucket = :bucket AND o.key >= :prefix AND o.key > :after";
  if (!end.empty()) query += " AND o.key < :end";
  query += fmt::format(" ORDER BY o.bucket, o.key LIMIT {}", count_max);
  return guarded("under", [&]() -> Result<std::vector<ObjectRow>> {
    return collect<ObjectFields>(state_->sql, query, [&](soci::statement& statement) {
      for (const std::string* text : {&bucket, &prefix, &start_after}) statement.exchange(use(*text));
      if (!end.empty()) statement.exchange(use(end));
    });
  });
}

Result<std::vector<ObjectRow>> Catalog::all(const std::string& after_bucket, const std::string& after_key,
                                            std::size_t count_max) {
  const std::string query =
      fmt::format("{} o.disk <> 5 AND (o.bucket, o.key) > (:bucket, :key) ORDER BY o.bucket, o.key LIMIT {}",
                  kSelectObject, count_max);
  return guarded("all", [&]() -> Result<std::vector<ObjectRow>> {
    return collect<ObjectFields>(state_->sql, query, [&](soci::statement& statement) {
      statement.exchange(use(after_bucket));
      statement.exchange(use(after_key));
    });
  });
}

Result<std::uint64_t> Catalog::count_with_copies(const std::string& bucket) {
  return guarded("count_with_copies", [&]() -> Result<std::uint64_t> {
    long long count = 0;
    state_->sql << "SELECT COUNT(*) FROM objects o WHERE o.bucket = :bucket AND o.disk <> 5 AND EXISTS"
                   " (SELECT 1 FROM copies c WHERE c.object = o.id)",
        use(bucket), into(count);
    return from_db(count);
  });
}

Result<void> Catalog::remove(const std::vector<ObjectRow>& objects) {
  return transacted(state_->sql, "remove", [&]() -> Result<void> {
    ObjectWriter writer(state_->sql);
    for (const ObjectRow& object : objects) {
      const auto current = writer.current(object.name);
      if (current && current->identity.generation == object.identity.generation) writer.bury(current->id);
    }
    return {};
  });
}

Result<std::vector<ObjectRow>> Catalog::evicting() {
  return guarded("evicting", [&]() -> Result<std::vector<ObjectRow>> {
    return collect<ObjectFields>(state_->sql, kSelectObject + "o.disk = 1 ORDER BY o.id",
                                 [](soci::statement&) {});
  });
}

void catalog_detail::write_disk_changes(soci::session& sql, const std::vector<DiskChange>& changes) {
  long long id = 0, inode = 0, mtime = 0, ctime = 0;
  int disk = 0;
  soci::statement plain =
      (sql.prepare << "UPDATE objects SET disk = :disk WHERE id = :id AND disk <> 5", use(disk), use(id));
  soci::statement full =
      (sql.prepare << "UPDATE objects SET disk = :disk, inode = :inode, mtime = :mtime, ctime = :ctime"
                      " WHERE id = :id AND disk <> 5",
       use(disk), use(inode), use(mtime), use(ctime), use(id));
  for (const DiskChange& change : changes) {
    id = change.object;
    disk = static_cast<int>(change.disk);
    if (change.identity) {
      inode = to_db(change.identity->inode);
      mtime = to_db(change.identity->mtime);
      ctime = to_db(change.identity->ctime);
      full.execute(true);
    } else {
      plain.execute(true);
    }
  }
}

Result<void> Catalog::set_disk(const std::vector<DiskChange>& changes) {
  return transacted(state_->sql, "set_disk", [&]() -> Result<void> {
    catalog_detail::write_disk_changes(state_->sql, changes);
    return {};
  });
}

namespace {

struct GroupFields {
  long long count = 0, bytes = 0, oldest = 0;
  std::string missing;
  void bind(soci::statement& statement) {
    statement.exchange(into(missing));
    for (auto* number : {&count, &bytes, &oldest}) statement.exchange(into(*number));
  }
  WaitingGroup row() const {
    return {.policy = 0,
            .missing = missing,
            .pools = split_pools(missing),
            .count = from_db(count),
            .bytes = from_db(bytes),
            .oldest = time_from_db(oldest)};
  }
};

}  // namespace

Result<std::vector<WaitingGroup>> Catalog::waiting(std::int64_t policy, base::TimePoint born_before) {
  const long long id = policy;
  const long long born = to_db(born_before);
  return guarded("waiting", [&]() -> Result<std::vector<WaitingGroup>> {
    auto groups =
        collect<GroupFields>(state_->sql,
                             "SELECT missing, COUNT(*), COALESCE(SUM(size), 0), MIN(noted) FROM objects"
                             " WHERE policy = :policy AND missing <> '' AND disk = 0 AND mtime <= :born "
                             "GROUP BY missing ORDER BY missing",
                             [&](soci::statement& statement) {
                               statement.exchange(use(id));
                               statement.exchange(use(born));
                             });
    for (WaitingGroup& group : groups) group.policy = policy;
    return groups;
  });
}

Result<std::vector<ObjectRow>> Catalog::take_waiting(const TakeRequest& request) {
  const long long policy = request.policy;
  const long long born = to_db(request.born_before);
  const long long now = to_db(request.now);
  const std::string end = prefix_end(request.prefix);
  std::string query = kSelectObject +
                      "o.policy = :policy AND o.missing = :missing AND o.missing <> '' AND o.disk = 0 AND "
                      "o.mtime <= :born AND o.noted <= :now";
  if (!request.bucket.empty()) query += " AND o.bucket = :bucket AND o.key >= :prefix";
  if (!request.bucket.empty() && !end.empty()) query += " AND o.key < :end";
  query += fmt::format(" ORDER BY o.bucket, o.key LIMIT {}", request.count_max);
  return guarded("take_waiting", [&]() -> Result<std::vector<ObjectRow>> {
    auto rows = collect<ObjectFields>(state_->sql, query, [&](soci::statement& statement) {
      statement.exchange(use(policy));
      statement.exchange(use(request.missing));
      statement.exchange(use(born));
      statement.exchange(use(now));
      if (!request.bucket.empty()) {
        statement.exchange(use(request.bucket));
        statement.exchange(use(request.prefix));
        if (!end.empty()) statement.exchange(use(end));
      }
    });
    std::uint64_t bytes = 0;
    const auto first_too_many = std::find_if(rows.begin(), rows.end(), [&](const ObjectRow& row) {
      const bool fits = bytes == 0 || bytes + row.identity.size <= request.bytes_max;
      bytes += row.identity.size;
      return !fits;
    });
    rows.erase(first_too_many, rows.end());
    return rows;
  });
}

Result<void> Catalog::postpone(const std::vector<std::int64_t>& objects, base::TimePoint until) {
  return transacted(state_->sql, "postpone", [&]() -> Result<void> {
    execute_by_id(state_->sql, fmt::format("UPDATE objects SET noted = {} WHERE id = :id", to_db(until)),
                  objects);
    return {};
  });
}

}  // namespace reelway::archive
