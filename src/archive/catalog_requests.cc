// Catalog: the durable queue of recalls, and counts.

#include <fmt/format.h>

#include "archive/catalog_state.h"

namespace reelway::archive {

using base::Result;
using catalog_detail::collect;
using catalog_detail::from_db;
using catalog_detail::guarded;
using catalog_detail::time_from_db;
using catalog_detail::to_db;
using catalog_detail::transacted;
using soci::into;
using soci::use;

namespace {

struct RequestFields {
  static constexpr const char* kSelect =
      "SELECT id, object, state, for_reader, tier, days, asked, expiry, explanation FROM requests WHERE ";
  long long id = 0, object = 0, days = 0, asked = 0, expiry = 0;
  int state = 0, for_reader = 0, tier = 0;
  std::string explanation;

  void bind(soci::statement& statement) {
    for (auto* number : {&id, &object}) statement.exchange(into(*number));
    for (auto* number : {&state, &for_reader, &tier}) statement.exchange(into(*number));
    for (auto* number : {&days, &asked, &expiry}) statement.exchange(into(*number));
    statement.exchange(into(explanation));
  }

  RequestRow row() const {
    return {.id = id,
            .object = object,
            .state = static_cast<object::RecallState>(state),
            .for_reader = for_reader != 0,
            .tier = static_cast<object::RestoreTier>(tier),
            .days = static_cast<std::uint32_t>(days),
            .asked = time_from_db(asked),
            .expiry = time_from_db(expiry),
            .explanation = explanation};
  }

  void fill(const RequestRow& row) {
    id = row.id;
    object = row.object;
    state = static_cast<int>(row.state);
    for_reader = row.for_reader ? 1 : 0;
    tier = static_cast<int>(row.tier);
    days = row.days;
    asked = to_db(row.asked);
    expiry = to_db(row.expiry);
    explanation = row.explanation;
  }
};

}  // namespace

Result<std::vector<RequestRow>> Catalog::add_requests(std::vector<RequestRow> requests) {
  auto& sql = state_->sql;
  return transacted(sql, "add_requests", [&]() -> Result<std::vector<RequestRow>> {
    RequestFields f;
    soci::statement insert =
        (sql.prepare
             << "INSERT INTO requests (object, state, for_reader, tier, days, asked, expiry, explanation)"
                " VALUES (:object, :state, :for_reader, :tier, :days, :asked, :expiry, :explanation)",
         use(f.object), use(f.state), use(f.for_reader), use(f.tier), use(f.days), use(f.asked),
         use(f.expiry), use(f.explanation));
    for (RequestRow& row : requests) {
      f.fill(row);
      insert.execute(true);
      long long id = 0;
      if (!sql.get_last_insert_id("requests", id))
        return base::fail(base::Code::internal, "catalog: no row id", base::Scope::node);
      row.id = id;
    }
    return requests;
  });
}

namespace {

void write_requests(soci::session& sql, const std::vector<RequestRow>& requests) {
  RequestFields f;
  soci::statement update = (sql.prepare << "UPDATE requests SET state = :state, for_reader = :for_reader, "
                                           "tier = :tier, days = :days, expiry = :expiry,"
                                           " explanation = :explanation WHERE id = :id",
                            use(f.state), use(f.for_reader), use(f.tier), use(f.days), use(f.expiry),
                            use(f.explanation), use(f.id));
  for (const RequestRow& row : requests) {
    f.fill(row);
    update.execute(true);
  }
}

}  // namespace

Result<void> Catalog::put_requests(const std::vector<RequestRow>& requests) {
  return transacted(state_->sql, "put_requests", [&]() -> Result<void> {
    write_requests(state_->sql, requests);
    return {};
  });
}

Result<void> Catalog::finish_recalls(const std::vector<DiskChange>& changes,
                                     const std::vector<RequestRow>& requests) {
  return transacted(state_->sql, "finish_recalls", [&]() -> Result<void> {
    catalog_detail::write_disk_changes(state_->sql, changes);
    write_requests(state_->sql, requests);
    return {};
  });
}

Result<std::vector<RequestRow>> Catalog::open_requests() {
  return guarded("open_requests", [&]() -> Result<std::vector<RequestRow>> {
    return collect<RequestFields>(state_->sql, std::string(RequestFields::kSelect) + "state < 3 ORDER BY id",
                                  [](soci::statement&) {});
  });
}

Result<std::optional<RequestRow>> Catalog::last_request(std::int64_t object) {
  const long long id = object;
  return guarded("last_request", [&]() -> Result<std::optional<RequestRow>> {
    auto rows = collect<RequestFields>(
        state_->sql, std::string(RequestFields::kSelect) + "object = :object ORDER BY id DESC LIMIT 1",
        [&](soci::statement& statement) { statement.exchange(use(id)); });
    if (rows.empty()) return std::nullopt;
    return std::move(rows.front());
  });
}

Result<std::vector<RequestRow>> Catalog::expired_pins(base::TimePoint now, std::size_t count_max) {
  const long long moment = to_db(now);
  return guarded("expired_pins", [&]() -> Result<std::vector<RequestRow>> {
    return collect<RequestFields>(
        state_->sql,
        fmt::format("{} expiry > 0 AND expiry <= :now AND state = 3 ORDER BY expiry LIMIT {}",
                    RequestFields::kSelect, count_max),
        [&](soci::statement& statement) { statement.exchange(use(moment)); });
  });
}

Result<Counts> Catalog::counts() {
  auto& sql = state_->sql;
  return guarded("counts", [&]() -> Result<Counts> {
    long long waiting = 0, waiting_bytes = 0, archived = 0, evicted = 0, failed = 0;
    sql << "SELECT COUNT(*), COALESCE(SUM(size), 0) FROM objects WHERE missing <> '' AND disk = 0",
        into(waiting), into(waiting_bytes);
    sql << "SELECT COUNT(*) FROM objects WHERE missing = '' AND policy <> 0 AND disk < 3", into(archived);
    sql << "SELECT COUNT(*) FROM objects WHERE disk = 2", into(evicted);
    sql << "SELECT COUNT(*) FROM requests WHERE state = 4", into(failed);
    return Counts{.waiting = from_db(waiting),
                  .waiting_bytes = from_db(waiting_bytes),
                  .archived = from_db(archived),
                  .evicted = from_db(evicted),
                  .failed_requests = from_db(failed)};
  });
}

}  // namespace reelway::archive
