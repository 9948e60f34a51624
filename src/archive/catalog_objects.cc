// Catalog: objects and their copies.

#include <algorithm>

#include <fmt/format.h>

#include "archive/catalog_state.h"
#include "base/encoding.h"

namespace reelway::archive {

using base::Code;
using base::Result;
using catalog_detail::collect;
using catalog_detail::CopyFields;
using catalog_detail::from_db;
using catalog_detail::guarded;
using catalog_detail::join_pools;
using catalog_detail::ObjectFields;
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
                .identity = {.generation = generation, .inode = from_db(inode), .size = from_db(size), .mtime = time_from_db(mtime),
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
  return {.id = id, .object = object, .volume = volume, .path = path, .bundled = bundled != 0, .offset = from_db(offset),
          .length = from_db(length), .block = from_db(block), .end_block = from_db(end_block), .batch = from_db(batch),
          .verified = verified != 0, .damaged = damaged != 0};
}

}  // namespace catalog_detail

namespace {

const std::string kSelectObject = fmt::format("SELECT {} FROM objects o WHERE ", ObjectFields::kColumns);

/// The statements that write one object, prepared once per transaction.
class ObjectWriter {
 public:
  explicit ObjectWriter(soci::session& sql) : sql_(sql) {}

  void insert(const ObjectRow& row) {
    fill(row);
    if (!insert_) {
      insert_.emplace((sql_.prepare << "INSERT INTO objects (bucket, key, generation, size, inode, mtime, ctime, sha256, metadata, disk, missing, policy, noted)"
                       " VALUES (:bucket, :key, :generation, :size, :inode, :mtime, :ctime, :sha256, :metadata, :disk, :missing, :policy, :noted)",
                       use(f_.bucket), use(f_.key), use(f_.generation), use(f_.size), use(f_.inode), use(f_.mtime), use(f_.ctime), use(f_.sha256),
                       use(f_.metadata), use(f_.disk), use(f_.missing), use(f_.policy), use(f_.noted)));
    }
    insert_->execute(true);
  }

  void update(const ObjectRow& row) {
    fill(row);
    if (!update_) {
      update_.emplace((sql_.prepare << "UPDATE objects SET generation = :generation, size = :size, inode = :inode, mtime = :mtime, ctime = :ctime,"
                       " sha256 = :sha256, metadata = :metadata, disk = :disk, missing = :missing, policy = :policy, noted = :noted WHERE id = :id",
                       use(f_.generation), use(f_.size), use(f_.inode), use(f_.mtime), use(f_.ctime), use(f_.sha256), use(f_.metadata),
                       use(f_.disk), use(f_.missing), use(f_.policy), use(f_.noted), use(f_.id)));
    }
    update_->execute(true);
  }

  /// The row that is not removed.
  std::optional<ObjectRow> current(const object::ObjectName& name) {
    find_bucket_ = name.bucket;
    find_key_ = name.key;
    if (!current_) {
      current_.emplace(sql_);
      found_.bind(*current_);
      current_->exchange(use(find_bucket_));
      current_->exchange(use(find_key_));
      current_->alloc();
      current_->prepare(kSelectObject + "o.bucket = :bucket AND o.key = :key AND o.disk <> 5");
      current_->define_and_bind();
    }
    current_->execute();
    std::optional<ObjectRow> row;
    while (current_->fetch()) row = found_.row();
    return row;
  }

  std::optional<ObjectRow> version(const object::ObjectName& name, const std::string& generation) {
    auto rows = collect<ObjectFields>(sql_, kSelectObject + "o.generation = :generation AND o.bucket = :bucket AND o.key = :key",
                                      [&](soci::statement& statement) {
                                        statement.exchange(use(generation));
                                        statement.exchange(use(name.bucket));
                                        statement.exchange(use(name.key));
                                      });
    if (rows.empty()) return std::nullopt;
    return std::move(rows.back());
  }

  /// Its copies become waste; each volume that has one will be told; recalls of it end.
  void bury(std::int64_t id) {
    const long long object = id;
    sql_ << "UPDATE objects SET disk = 5, missing = '' WHERE id = :id", use(object);
    sql_ << "INSERT INTO journal (volume, object) SELECT DISTINCT volume, object FROM copies WHERE object = :id ON CONFLICT DO NOTHING", use(object);
    sql_ << "UPDATE requests SET state = 4, expiry = 0, explanation = 'the object was deleted or replaced' WHERE object = :id AND state < 3",
        use(object);
    sql_ << "UPDATE requests SET expiry = 0 WHERE object = :id AND expiry > 0", use(object);
  }

  /// Pools of the policy's list that lack a counted copy.
  std::vector<std::string> missing_of(std::int64_t id, std::vector<std::string> pools) {
    const long long object = id;
    soci::rowset<std::string> have = (sql_.prepare << "SELECT DISTINCT v.pool FROM copies c JOIN volumes v ON v.id = c.volume"
                                                      " WHERE c.object = :id AND c.damaged = 0", use(object));
    for (const std::string& pool : have) std::erase(pools, pool);
    return pools;
  }

 private:
  void fill(const ObjectRow& row) {
    f_.id = row.id;
    f_.bucket = row.name.bucket;
    f_.key = row.name.key;
    f_.generation = row.identity.generation;
    f_.size = to_db(row.identity.size);
    f_.inode = to_db(row.identity.inode);
    f_.mtime = to_db(row.identity.mtime);
    f_.ctime = to_db(row.identity.ctime);
    f_.sha256 = row.sha256;
    f_.metadata = base::to_base64(row.metadata);
    f_.disk = static_cast<int>(row.disk);
    f_.missing = join_pools(row.missing);
    f_.policy = row.policy;
    f_.noted = to_db(row.noted);
  }

  soci::session& sql_;
  ObjectFields f_;
  ObjectFields found_;
  std::string find_bucket_, find_key_;
  std::optional<soci::statement> insert_, update_, current_;
};

bool same_content(const object::Identity& a, const object::Identity& b) {
  return a.generation == b.generation && a.size == b.size && (!a.generation.empty() || (a.mtime == b.mtime && a.inode == b.inode));
}

void note_one(ObjectWriter& writer, const ObjectRow& seen) {
  auto current = writer.current(seen.name);
  if (current && same_content(current->identity, seen.identity)) {
    ObjectRow row = *current;
    // What was archived stays recorded: evict compares with it, and a file that was touched since is hashed again before it may go.
    const bool keep = row.disk == seen.disk && row.identity.inode != 0;
    if (!keep) row.identity = seen.identity;
    if (!seen.metadata.empty()) row.metadata = seen.metadata;
    row.disk = seen.disk;
    if (seen.policy == 0) row.missing.clear();
    else if (row.policy != seen.policy || row.disk != current->disk) row.missing = writer.missing_of(row.id, seen.missing);
    row.policy = seen.policy;
    writer.update(row);
    return;
  }
  if (seen.policy == 0 && !current) return;
  if (current) writer.bury(current->id);
  auto known = seen.identity.generation.empty() ? std::nullopt : writer.version(seen.name, seen.identity.generation);
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
  return guarded("find", [&]() -> Result<std::optional<ObjectRow>> { return ObjectWriter(state_->sql).current(name); });
}

Result<std::optional<ObjectRow>> Catalog::find(const object::ObjectName& name, const std::string& generation) {
  return guarded("find", [&]() -> Result<std::optional<ObjectRow>> { return ObjectWriter(state_->sql).version(name, generation); });
}

namespace {

/// Runs one query per id with one prepared statement.
template <class Fields>
auto collect_by_id(soci::session& sql, const std::string& query, const std::vector<std::int64_t>& ids) {
  Fields fields;
  std::vector<decltype(fields.row())> rows;
  long long id = 0;
  soci::statement statement(sql);
  fields.bind(statement);
  statement.exchange(use(id));
  statement.alloc();
  statement.prepare(query);
  statement.define_and_bind();
  for (const std::int64_t wanted : ids) {
    id = wanted;
    statement.execute();
    while (statement.fetch()) rows.push_back(fields.row());
  }
  return rows;
}

void execute_by_id(soci::session& sql, const std::string& query, const std::vector<std::int64_t>& ids) {
  long long id = 0;
  soci::statement statement = (sql.prepare << query, use(id));
  for (const std::int64_t wanted : ids) {
    id = wanted;
    statement.execute(true);
  }
}

}  // namespace

Result<std::optional<ObjectRow>> Catalog::find_stub(const std::string& bucket, const std::string& generation) {
  return guarded("find_stub", [&]() -> Result<std::optional<ObjectRow>> {
    auto rows = collect<ObjectFields>(state_->sql, kSelectObject + "o.generation = :generation AND o.bucket = :bucket AND o.disk = 2",
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
    state_->sql << "UPDATE objects SET key = :key WHERE id = :id AND bucket = :bucket", use(to.key), use(id), use(to.bucket);
    return {};
  });
}

Result<std::vector<ObjectRow>> Catalog::objects(const std::vector<std::int64_t>& ids) {
  return guarded("objects", [&]() -> Result<std::vector<ObjectRow>> {
    return collect_by_id<ObjectFields>(state_->sql, kSelectObject + "o.id = :id", ids);
  });
}

Result<std::vector<ObjectRow>> Catalog::under(const std::string& bucket, const std::string& prefix, const std::string& start_after,
                                              std::size_t count_max) {
  const std::string end = prefix_end(prefix);
  std::string query = kSelectObject + "o.disk <> 5 AND o.bucket = :bucket AND o.key >= :prefix AND o.key > :after";
  if (!end.empty()) query += " AND o.key < :end";
  query += fmt::format(" ORDER BY o.bucket, o.key LIMIT {}", count_max);
  return guarded("under", [&]() -> Result<std::vector<ObjectRow>> {
    return collect<ObjectFields>(state_->sql, query, [&](soci::statement& statement) {
      for (const std::string* text : {&bucket, &prefix, &start_after}) statement.exchange(use(*text));
      if (!end.empty()) statement.exchange(use(end));
    });
  });
}

Result<std::vector<ObjectRow>> Catalog::all(const std::string& after_bucket, const std::string& after_key, std::size_t count_max) {
  const std::string query = fmt::format("{} o.disk <> 5 AND (o.bucket, o.key) > (:bucket, :key) ORDER BY o.bucket, o.key LIMIT {}", kSelectObject, count_max);
  return guarded("all", [&]() -> Result<std::vector<ObjectRow>> {
    return collect<ObjectFields>(state_->sql, query, [&](soci::statement& statement) {
      statement.exchange(use(after_bucket));
      statement.exchange(use(after_key));
    });
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
    return collect<ObjectFields>(state_->sql, kSelectObject + "o.disk = 1 ORDER BY o.id", [](soci::statement&) {});
  });
}

Result<void> Catalog::set_disk(const std::vector<DiskChange>& changes) {
  return transacted(state_->sql, "set_disk", [&]() -> Result<void> {
    long long id = 0, inode = 0, mtime = 0, ctime = 0;
    int disk = 0;
    soci::statement plain = (state_->sql.prepare << "UPDATE objects SET disk = :disk WHERE id = :id AND disk <> 5", use(disk), use(id));
    soci::statement full = (state_->sql.prepare << "UPDATE objects SET disk = :disk, inode = :inode, mtime = :mtime, ctime = :ctime"
                            " WHERE id = :id AND disk <> 5", use(disk), use(inode), use(mtime), use(ctime), use(id));
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
    return {.policy = 0, .missing = missing, .pools = split_pools(missing), .count = from_db(count), .bytes = from_db(bytes),
            .oldest = time_from_db(oldest)};
  }
};

}  // namespace

Result<std::vector<WaitingGroup>> Catalog::waiting(std::int64_t policy, base::TimePoint born_before) {
  const long long id = policy;
  const long long born = to_db(born_before);
  return guarded("waiting", [&]() -> Result<std::vector<WaitingGroup>> {
    auto groups = collect<GroupFields>(
        state_->sql, "SELECT missing, COUNT(*), COALESCE(SUM(size), 0), MIN(noted) FROM objects"
        " WHERE policy = :policy AND missing <> '' AND disk = 0 AND mtime <= :born GROUP BY missing ORDER BY missing", [&](soci::statement& statement) {
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
  std::string query = kSelectObject + "o.policy = :policy AND o.missing = :missing AND o.missing <> '' AND o.disk = 0 AND o.mtime <= :born AND o.noted <= :now";
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
    execute_by_id(state_->sql, fmt::format("UPDATE objects SET noted = {} WHERE id = :id", to_db(until)), objects);
    return {};
  });
}

namespace {

/// The object's row with what the mover learnt; its id. Rows of objects that were replaced meanwhile are found all the same.
std::int64_t settle_object(ObjectWriter& writer, soci::session& sql, const CommittedCopy& committed, const std::string& pool) {
  const ObjectRow& learnt = committed.object;
  std::optional<ObjectRow> row;
  if (learnt.id != 0) {
    auto rows = collect_by_id<ObjectFields>(sql, kSelectObject + "o.id = :id", {learnt.id});
    if (!rows.empty()) row = std::move(rows.front());
  } else {
    row = writer.version(learnt.name, learnt.identity.generation);
  }
  if (!row) {
    ObjectRow fresh = learnt;
    const auto current = writer.current(learnt.name);
    if (current && fresh.disk != Disk::removed) {
      // ULIDs sort by time: the younger version is the object.
      if (current->identity.generation < fresh.identity.generation && current->disk == Disk::lost) writer.bury(current->id);
      else fresh.disk = Disk::removed;
    }
    writer.insert(fresh);
    row = writer.version(learnt.name, learnt.identity.generation);
    return row->id;
  }
  if (row->disk == Disk::resident) {
    if (learnt.id != 0) row->identity = learnt.identity;
    if (!committed.copy.damaged) std::erase(row->missing, pool);
  }
  if (!learnt.sha256.empty()) row->sha256 = learnt.sha256;
  if (!learnt.metadata.empty()) row->metadata = learnt.metadata;
  writer.update(*row);
  return row->id;
}

/// Inserts a copy unless the catalog has it already.
class CopyWriter {
 public:
  CopyWriter(soci::session& sql, std::int64_t volume) : sql_(sql) { f_.volume = volume; }
  void insert(std::int64_t object, const CopyRow& copy) {
    f_.object = object;
    f_.path = copy.path;
    f_.bundled = copy.bundled ? 1 : 0;
    f_.offset = to_db(copy.offset);
    f_.length = to_db(copy.length);
    f_.block = to_db(copy.block);
    f_.end_block = to_db(copy.end_block);
    f_.batch = to_db(copy.batch);
    f_.verified = copy.verified ? 1 : 0;
    if (!statement_) {
      statement_.emplace((sql_.prepare << "INSERT INTO copies (object, volume, path, bundled, file_offset, length, block, end_block, batch, verified, damaged)"
                          " SELECT :object, :volume, :path, :bundled, :offset, :length, :block, :end_block, :batch, :verified, 0"
                          " WHERE NOT EXISTS (SELECT 1 FROM copies WHERE object = :object2 AND volume = :volume2 AND path = :path2 AND file_offset = :offset2)",
                          use(f_.object), use(f_.volume), use(f_.path), use(f_.bundled), use(f_.offset), use(f_.length), use(f_.block),
                          use(f_.end_block), use(f_.batch), use(f_.verified), use(f_.object), use(f_.volume), use(f_.path), use(f_.offset)));
    }
    statement_->execute(true);
  }

 private:
  soci::session& sql_;
  CopyFields f_;
  std::optional<soci::statement> statement_;
};

}  // namespace

Result<void> Catalog::commit_batch(const BatchCommit& batch) {
  TRY(const VolumeRow volume, batch.volume.id == 0 ? put_volume(batch.volume) : Result<VolumeRow>(batch.volume));
  auto& sql = state_->sql;
  return transacted(sql, "commit_batch", [&]() -> Result<void> {
    const long long volume_id = volume.id;
    for (const auto& displaced : batch.displaced) {
      sql << "UPDATE copies SET path = :to WHERE volume = :volume AND path = :from", use(displaced.to), use(volume_id), use(displaced.from);
    }
    ObjectWriter objects(sql);
    CopyWriter copies(sql, volume.id);
    for (const CommittedCopy& committed : batch.copies) {
      copies.insert(settle_object(objects, sql, committed, volume.pool), committed.copy);
    }
    const int state = static_cast<int>(volume.state);
    const long long bytes = to_db(volume.bytes);
    const long long capacity = to_db(volume.capacity_bytes);
    const long long batches = to_db(volume.batches);
    const long long end_block = to_db(volume.end_block);
    sql << "UPDATE volumes SET state = :state, bytes = :bytes, capacity = :capacity, batches = :batches, end_block = :end_block WHERE id = :id",
        use(state), use(bytes), use(capacity), use(batches), use(end_block), use(volume_id);
    return {};
  });
}

Result<std::vector<CopyRow>> Catalog::copies(const std::vector<std::int64_t>& objects) {
  return guarded("copies", [&]() -> Result<std::vector<CopyRow>> {
    return collect_by_id<CopyFields>(state_->sql, fmt::format("SELECT {} FROM copies c WHERE c.object = :id ORDER BY c.id", CopyFields::kColumns), objects);
  });
}

Result<std::vector<CopyRow>> Catalog::copies_on(std::int64_t volume) {
  return guarded("copies_on", [&]() -> Result<std::vector<CopyRow>> {
    return collect_by_id<CopyFields>(state_->sql, fmt::format("SELECT {} FROM copies c WHERE c.volume = :id ORDER BY c.block, c.id", CopyFields::kColumns),
                                     {volume});
  });
}

Result<void> Catalog::set_verified(const std::vector<std::int64_t>& copies) {
  return transacted(state_->sql, "set_verified", [&]() -> Result<void> {
    execute_by_id(state_->sql, "UPDATE copies SET verified = 1 WHERE id = :id AND damaged = 0", copies);
    return {};
  });
}

Result<void> Catalog::set_damaged(std::int64_t copy) {
  auto& sql = state_->sql;
  return transacted(sql, "set_damaged", [&]() -> Result<void> {
    const long long id = copy;
    sql << "UPDATE copies SET damaged = 1, verified = 0 WHERE id = :id", use(id);
    long long object = 0;
    std::string pool;
    sql << "SELECT c.object, v.pool FROM copies c JOIN volumes v ON v.id = c.volume WHERE c.id = :id", into(object), into(pool), use(id);
    if (!sql.got_data()) return base::fail(Code::not_found, "no such copy");
    std::string missing;
    sql << "SELECT missing FROM objects WHERE id = :id AND disk <> 5 AND policy <> 0", into(missing), use(object);
    if (!sql.got_data()) return {};
    // Another good copy in the same pool is enough.
    const bool needed = !ObjectWriter(sql).missing_of(object, {pool}).empty();
    std::vector<std::string> pools = split_pools(missing);
    if (!needed || std::find(pools.begin(), pools.end(), pool) != pools.end()) return {};
    pools.push_back(pool);
    missing = join_pools(pools);
    sql << "UPDATE objects SET missing = :missing, noted = 0 WHERE id = :id", use(missing), use(object);
    return {};
  });
}

Result<std::vector<ObjectRow>> Catalog::unjournalled(std::int64_t volume, std::size_t count_max) {
  const long long id = volume;
  return guarded("unjournalled", [&]() -> Result<std::vector<ObjectRow>> {
    return collect<ObjectFields>(state_->sql, fmt::format("SELECT {} FROM journal j JOIN objects o ON o.id = j.object WHERE j.volume = :volume"
                                                          " ORDER BY o.id LIMIT {}", ObjectFields::kColumns, count_max),
                                 [&](soci::statement& statement) { statement.exchange(use(id)); });
  });
}

Result<void> Catalog::journalled(std::int64_t volume, const std::vector<ObjectRow>& objects) {
  return transacted(state_->sql, "journalled", [&]() -> Result<void> {
    std::vector<std::int64_t> ids;
    for (const ObjectRow& object : objects) ids.push_back(object.id);
    execute_by_id(state_->sql, fmt::format("DELETE FROM journal WHERE volume = {} AND object = :id", volume), ids);
    return {};
  });
}

}  // namespace reelway::archive
