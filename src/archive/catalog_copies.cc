// Catalog: copies on tape, and rule 2's last step.

#include <fmt/format.h>

#include <algorithm>

#include "archive/catalog_writer.h"

namespace reelway::archive {

using base::Code;
using base::Result;
using catalog_detail::collect;
using catalog_detail::collect_by_id;
using catalog_detail::CopyFields;
using catalog_detail::execute_by_id;
using catalog_detail::guarded;
using catalog_detail::join_pools;
using catalog_detail::ObjectFields;
using catalog_detail::ObjectWriter;
using catalog_detail::split_pools;
using catalog_detail::to_db;
using catalog_detail::transacted;
using soci::into;
using soci::use;

namespace {

/// The object's row with what the mover learnt; its id. Rows of objects that were replaced meanwhile are
/// found all the same.
std::int64_t settle_object(ObjectWriter& writer, const CommittedCopy& committed, const std::string& pool) {
  const ObjectRow& learnt = committed.object;
  std::optional<ObjectRow> row;
  if (learnt.id != 0) {
    row = writer.by_id(learnt.id);
  } else {
    row = writer.version(learnt.name, learnt.identity.generation);
  }
  if (!row) {
    ObjectRow fresh = learnt;
    const auto current = writer.current(learnt.name);
    if (current && fresh.disk != Disk::removed) {
      // ULIDs sort by time: the younger version is the object.
      if (current->identity.generation < fresh.identity.generation && current->disk == Disk::lost)
        writer.bury(current->id);
      else
        fresh.disk = Disk::removed;
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
      statement_.emplace((sql_.prepare
                              << "INSERT INTO copies (object, volume, path, bundled, file_offset, length, "
                                 "block, end_block, batch, verified, damaged)"
                                 " SELECT :object, :volume, :path, :bundled, :offset, :length, :block, "
                                 ":end_block, :batch, :verified, 0"
                                 " WHERE NOT EXISTS (SELECT 1 FROM copies WHERE object = :object2 AND volume "
                                 "= :volume2 AND path = :path2 AND file_offset = :offset2)",
                          use(f_.object), use(f_.volume), use(f_.path), use(f_.bundled), use(f_.offset),
                          use(f_.length), use(f_.block), use(f_.end_block), use(f_.batch), use(f_.verified),
                          use(f_.object), use(f_.volume), use(f_.path), use(f_.offset)));
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
  TRY(const VolumeRow volume,
      batch.volume.id == 0 ? put_volume(batch.volume) : Result<VolumeRow>(batch.volume));
  auto& sql = state_->sql;
  return transacted(sql, "commit_batch", [&]() -> Result<void> {
    const long long volume_id = volume.id;
    for (const auto& displaced : batch.displaced) {
      sql << "UPDATE copies SET path = :to WHERE volume = :volume AND path = :from", use(displaced.to),
          use(volume_id), use(displaced.from);
    }
    ObjectWriter objects(sql);
    CopyWriter copies(sql, volume.id);
    for (const CommittedCopy& committed : batch.copies) {
      copies.insert(settle_object(objects, committed, volume.pool), committed.copy);
    }
    const int state = static_cast<int>(volume.state);
    const long long bytes = to_db(volume.bytes);
    const long long capacity = to_db(volume.capacity_bytes);
    const long long batches = to_db(volume.batches);
    const long long end_block = to_db(volume.end_block);
    sql << "UPDATE volumes SET state = :state, bytes = :bytes, capacity = :capacity, batches = :batches, "
           "end_block = :end_block WHERE id = :id",
        use(state), use(bytes), use(capacity), use(batches), use(end_block), use(volume_id);
    return {};
  });
}

Result<std::vector<CopyRow>> Catalog::copies(const std::vector<std::int64_t>& objects) {
  return guarded("copies", [&]() -> Result<std::vector<CopyRow>> {
    return collect_by_id<CopyFields>(
        state_->sql,
        fmt::format("SELECT {} FROM copies c WHERE c.object = :id ORDER BY c.id", CopyFields::kColumns),
        objects);
  });
}

Result<std::vector<CopyRow>> Catalog::copies_on(std::int64_t volume) {
  return guarded("copies_on", [&]() -> Result<std::vector<CopyRow>> {
    return collect_by_id<CopyFields>(
        state_->sql,
        fmt::format("SELECT {} FROM copies c WHERE c.volume = :id ORDER BY c.block, c.id",
                    CopyFields::kColumns),
        {volume});
  });
}

namespace {

struct PlacedFields {
  CopyFields copy;
  std::string bucket, key, generation;
  int disk = 0;
  void bind(soci::statement& statement) {
    copy.bind(statement);
    for (auto* text : {&bucket, &key, &generation}) statement.exchange(into(*text));
    statement.exchange(into(disk));
  }
  PlacedCopy row() const {
    return {
        .copy = copy.row(), .name = {bucket, key}, .generation = generation, .disk = static_cast<Disk>(disk)};
  }
};

}  // namespace

Result<std::vector<PlacedCopy>> Catalog::placed(const PlaceQuery& query) {
  const long long volume = query.volume;
  const long long block = to_db(query.after_block);
  const long long copy = query.after_copy;
  const std::string end = catalog_detail::prefix_end(query.prefix);
  std::string text = fmt::format(
      "SELECT {}, o.bucket, o.key, o.generation, o.disk FROM copies c JOIN objects o ON o.id = c.object"
      " WHERE c.volume = :volume AND (c.block, c.id) > (:block, :copy)",
      CopyFields::kColumns);
  if (!query.bucket.empty()) text += " AND o.bucket = :bucket AND o.key >= :prefix";
  if (!query.bucket.empty() && !end.empty()) text += " AND o.key < :end";
  text += fmt::format(" ORDER BY c.block, c.id LIMIT {}", query.count_max);
  return guarded("placed", [&]() -> Result<std::vector<PlacedCopy>> {
    return collect<PlacedFields>(state_->sql, text, [&](soci::statement& statement) {
      for (const auto* number : {&volume, &block, &copy}) statement.exchange(use(*number));
      if (query.bucket.empty()) return;
      statement.exchange(use(query.bucket));
      statement.exchange(use(query.prefix));
      if (!end.empty()) statement.exchange(use(end));
    });
  });
}

Result<std::vector<CopyRow>> Catalog::copies_of_batch(std::int64_t volume, std::uint64_t batch) {
  return guarded("copies_of_batch", [&]() -> Result<std::vector<CopyRow>> {
    return collect_by_id<CopyFields>(
        state_->sql,
        fmt::format("SELECT {} FROM copies c WHERE c.volume = :id AND c.batch = {}", CopyFields::kColumns,
                    batch),
        {volume});
  });
}

Result<std::vector<CopyRow>> Catalog::unread(const UnreadQuery& query) {
  const long long volume = query.volume;
  const std::string end = catalog_detail::prefix_end(query.prefix);
  std::string text = fmt::format(
      "SELECT {} FROM copies c JOIN objects o ON o.id = c.object JOIN policies p ON p.id = o.policy"
      " WHERE c.verified = 0 AND c.damaged = 0 AND o.disk <> 5 AND p.verify = 'read-back'",
      CopyFields::kColumns);
  if (volume != 0) text += " AND c.volume = :volume";
  if (!query.with_imported) text += " AND c.batch > 0";
  if (!query.bucket.empty()) text += " AND o.bucket = :bucket AND o.key >= :prefix";
  if (!query.bucket.empty() && !end.empty()) text += " AND o.key < :end";
  return guarded("unread", [&]() -> Result<std::vector<CopyRow>> {
    return collect<CopyFields>(state_->sql, text, [&](soci::statement& statement) {
      if (volume != 0) statement.exchange(use(volume));
      if (query.bucket.empty()) return;
      statement.exchange(use(query.bucket));
      statement.exchange(use(query.prefix));
      if (!end.empty()) statement.exchange(use(end));
    });
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
    sql << "SELECT c.object, v.pool FROM copies c JOIN volumes v ON v.id = c.volume WHERE c.id = :id",
        into(object), into(pool), use(id);
    if (!sql.got_data()) return base::fail(Code::not_found, "no such copy");
    std::string missing;
    sql << "SELECT missing FROM objects WHERE id = :id AND disk <> 5 AND policy <> 0", into(missing),
        use(object);
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
    return collect<ObjectFields>(
        state_->sql,
        fmt::format("SELECT {} FROM journal j JOIN objects o ON o.id = j.object WHERE j.volume = :volume"
                    " ORDER BY o.id LIMIT {}",
                    ObjectFields::kColumns, count_max),
        [&](soci::statement& statement) { statement.exchange(use(id)); });
  });
}

Result<void> Catalog::journalled(std::int64_t volume, const std::vector<ObjectRow>& objects) {
  return transacted(state_->sql, "journalled", [&]() -> Result<void> {
    std::vector<std::int64_t> ids;
    for (const ObjectRow& object : objects) ids.push_back(object.id);
    execute_by_id(state_->sql, fmt::format("DELETE FROM journal WHERE volume = {} AND object = :id", volume),
                  ids);
    return {};
  });
}

}  // namespace reelway::archive
