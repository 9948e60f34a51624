#pragma once
// Inside of the catalog: the session, its schema, and how rows become statements. Only catalog*.cc include
// it.

#include <soci/soci.h>

#include <string>
#include <utility>
#include <vector>

#include "archive/catalog.h"

namespace reelway::archive {

struct Catalog::State {
  soci::session sql;
};

namespace catalog_detail {

/// Runs `work`; a database error becomes a value.
template <class F>
auto guarded(const char* what, F&& work) -> decltype(work()) {
  try {
    return std::forward<F>(work)();
  } catch (const soci::soci_error& error) {
    return base::fail(base::Code::internal, std::string("catalog: ") + what + ": " + error.what(),
                      base::Scope::node, base::Retry::later);
  }
}

/// The same in one transaction, which is rolled back unless `work` succeeds.
template <class F>
auto transacted(soci::session& sql, const char* what, F&& work) -> decltype(work()) {
  return guarded(what, [&]() -> decltype(work()) {
    soci::transaction transaction(sql);
    auto result = work();
    if (result.has_value()) transaction.commit();
    return result;
  });
}

inline long long to_db(std::uint64_t value) { return static_cast<long long>(value); }
inline std::uint64_t from_db(long long value) { return static_cast<std::uint64_t>(value); }
inline long long to_db(base::TimePoint time) { return time.time_since_epoch().count(); }
inline base::TimePoint time_from_db(long long value) { return base::TimePoint{base::Duration{value}}; }

std::string join_pools(const std::vector<std::string>& pools);
std::vector<std::string> split_pools(const std::string& text);
/// The smallest text that is larger than every text with this prefix; empty: there is none.
std::string prefix_end(std::string prefix);

struct ObjectFields {
  static constexpr const char* kColumns =
      "o.id, o.bucket, o.key, o.generation, o.size, o.inode, o.mtime, o.ctime, o.sha256, o.metadata, o.disk, "
      "o.missing, o.policy, o.noted";
  long long id = 0, size = 0, inode = 0, mtime = 0, ctime = 0, policy = 0, noted = 0;
  std::string bucket, key, generation, sha256, metadata, missing;
  int disk = 0;
  void bind(soci::statement& statement);
  ObjectRow row() const;
};

struct CopyFields {
  static constexpr const char* kColumns =
      "c.id, c.object, c.volume, c.path, c.bundled, c.file_offset, c.length, c.block, c.end_block, c.batch, "
      "c.verified, c.damaged";
  long long id = 0, object = 0, volume = 0, offset = 0, length = 0, block = 0, end_block = 0, batch = 0;
  std::string path;
  int bundled = 0, verified = 0, damaged = 0;
  void bind(soci::statement& statement);
  CopyRow row() const;
};

/// Runs a prepared query and collects its rows. `bind_use(statement)` binds the parameters.
template <class Fields, class BindUse>
auto collect(soci::session& sql, const std::string& query, BindUse&& bind_use) {
  Fields fields;
  std::vector<decltype(fields.row())> rows;
  soci::statement statement(sql);
  fields.bind(statement);
  bind_use(statement);
  statement.alloc();
  statement.prepare(query);
  statement.define_and_bind();
  statement.execute();
  while (statement.fetch()) rows.push_back(fields.row());
  return rows;
}

/// Inside of a transaction.
void write_disk_changes(soci::session& sql, const std::vector<DiskChange>& changes);

}  // namespace catalog_detail
}  // namespace reelway::archive
