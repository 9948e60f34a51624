#pragma once
// The statements that read and write objects in the catalog, prepared once per transaction. Only catalog*.cc
// include it.

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "archive/catalog_state.h"
#include "base/encoding.h"

namespace reelway::archive::catalog_detail {

using soci::into;
using soci::use;

inline const std::string kSelectObject =
    fmt::format("SELECT {} FROM objects o WHERE ", ObjectFields::kColumns);

/// The statements that write one object, prepared once per transaction.
class ObjectWriter {
 public:
  explicit ObjectWriter(soci::session& sql) : sql_(sql) {}

  void insert(const ObjectRow& row) {
    fill(row);
    if (!insert_) {
      insert_.emplace((sql_.prepare << "INSERT INTO objects (bucket, key, generation, size, inode, mtime, "
                                       "ctime, sha256, metadata, disk, missing, policy, noted)"
                                       " VALUES (:bucket, :key, :generation, :size, :inode, :mtime, :ctime, "
                                       ":sha256, :metadata, :disk, :missing, :policy, :noted)",
                       use(f_.bucket), use(f_.key), use(f_.generation), use(f_.size), use(f_.inode),
                       use(f_.mtime), use(f_.ctime), use(f_.sha256), use(f_.metadata), use(f_.disk),
                       use(f_.missing), use(f_.policy), use(f_.noted)));
    }
    insert_->execute(true);
  }

  void update(const ObjectRow& row) {
    fill(row);
    if (!update_) {
      update_.emplace((sql_.prepare << "UPDATE objects SET generation = :generation, size = :size, inode = "
                                       ":inode, mtime = :mtime, ctime = :ctime,"
                                       " sha256 = :sha256, metadata = :metadata, disk = :disk, missing = "
                                       ":missing, policy = :policy, noted = :noted WHERE id = :id",
                       use(f_.generation), use(f_.size), use(f_.inode), use(f_.mtime), use(f_.ctime),
                       use(f_.sha256), use(f_.metadata), use(f_.disk), use(f_.missing), use(f_.policy),
                       use(f_.noted), use(f_.id)));
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

  std::optional<ObjectRow> by_id(std::int64_t id) {
    find_id_ = id;
    if (!by_id_) {
      by_id_.emplace(sql_);
      found_.bind(*by_id_);
      by_id_->exchange(use(find_id_));
      by_id_->alloc();
      by_id_->prepare(kSelectObject + "o.id = :id");
      by_id_->define_and_bind();
    }
    by_id_->execute();
    std::optional<ObjectRow> row;
    while (by_id_->fetch()) row = found_.row();
    return row;
  }

  std::optional<ObjectRow> version(const object::ObjectName& name, const std::string& generation) {
    auto rows = collect<ObjectFields>(
        sql_, kSelectObject + "o.generation = :generation AND o.bucket = :bucket AND o.key = :key",
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
    sql_ << "INSERT INTO journal (volume, object) SELECT DISTINCT volume, object FROM copies WHERE object = "
            ":id ON CONFLICT DO NOTHING",
        use(object);
    sql_ << "UPDATE requests SET state = 4, expiry = 0, explanation = 'the object was deleted or replaced' "
            "WHERE object = :id AND state < 3",
        use(object);
    sql_ << "UPDATE requests SET expiry = 0 WHERE object = :id AND expiry > 0", use(object);
  }

  /// Pools of the policy's list that lack a counted copy.
  std::vector<std::string> missing_of(std::int64_t id, std::vector<std::string> pools) {
    const long long object = id;
    soci::rowset<std::string> have =
        (sql_.prepare << "SELECT DISTINCT v.pool FROM copies c JOIN volumes v ON v.id = c.volume"
                         " WHERE c.object = :id AND c.damaged = 0",
         use(object));
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
  long long find_id_ = 0;
  std::optional<soci::statement> insert_, update_, current_, by_id_;
};

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

inline void execute_by_id(soci::session& sql, const std::string& query,
                          const std::vector<std::int64_t>& ids) {
  long long id = 0;
  soci::statement statement = (sql.prepare << query, use(id));
  for (const std::int64_t wanted : ids) {
    id = wanted;
    statement.execute(true);
  }
}

}  // namespace reelway::archive::catalog_detail
