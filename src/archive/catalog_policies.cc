// Catalog: policies, and their changes as tapes carry them.

#include <fmt/format.h>

#include <algorithm>

#include "archive/catalog_state.h"

namespace reelway::archive {

using base::Result;
using catalog_detail::collect;
using catalog_detail::from_db;
using catalog_detail::guarded;
using catalog_detail::join_pools;
using catalog_detail::split_pools;
using catalog_detail::time_from_db;
using catalog_detail::to_db;
using catalog_detail::transacted;
using soci::into;
using soci::use;

namespace {

struct PolicyFields {
  static constexpr const char* kSelect =
      "SELECT id, bucket, prefix, pools, minimum_age, batch_age, batch_count, batch_bytes, bundle_below, "
      "verify, changed, removed FROM policies WHERE ";
  long long id = 0, minimum_age = 0, batch_age = 0, batch_count = 0, batch_bytes = 0, bundle_below = 0;
  long long changed = 0;
  int removed = 0;
  std::string bucket, prefix, pools, verify;

  void bind(soci::statement& statement) {
    statement.exchange(into(id));
    for (auto* text : {&bucket, &prefix, &pools}) statement.exchange(into(*text));
    for (auto* number : {&minimum_age, &batch_age, &batch_count, &batch_bytes, &bundle_below})
      statement.exchange(into(*number));
    statement.exchange(into(verify));
    statement.exchange(into(changed));
    statement.exchange(into(removed));
  }

  Policy policy() const {
    return {.bucket = bucket,
            .prefix = prefix,
            .pools = split_pools(pools),
            .minimum_age_s = static_cast<std::uint32_t>(minimum_age),
            .batch_age_s = static_cast<std::uint32_t>(batch_age),
            .batch_count = from_db(batch_count),
            .batch_bytes = from_db(batch_bytes),
            .bundle_below_bytes = from_db(bundle_below),
            .verify = verify};
  }
};

struct RowFields : PolicyFields {
  PolicyRow row() const { return {id, policy()}; }
};

struct ChangeFields : PolicyFields {
  PolicyChange row() const {
    return {.policy = policy(), .removed = removed != 0, .at = time_from_db(changed)};
  }
};

/// Inside of a transaction.
long long write_policy(soci::session& sql, const Policy& policy, long long changed, bool removed) {
  const std::string pools = join_pools(policy.pools);
  const long long minimum_age = policy.minimum_age_s;
  const long long batch_age = policy.batch_age_s;
  const long long batch_count = to_db(policy.batch_count);
  const long long batch_bytes = to_db(policy.batch_bytes);
  const long long bundle_below = to_db(policy.bundle_below_bytes);
  const int gone = removed ? 1 : 0;
  sql << "INSERT INTO policies (bucket, prefix, pools, minimum_age, batch_age, batch_count, batch_bytes, "
         "bundle_below, verify, changed, removed)"
         " VALUES (:bucket, :prefix, :pools, :minimum_age, :batch_age, :batch_count, :batch_bytes, "
         ":bundle_below, :verify, :changed, :removed)"
         " ON CONFLICT (bucket, prefix) DO UPDATE SET pools = excluded.pools, minimum_age = "
         "excluded.minimum_age, batch_age = excluded.batch_age, batch_count = excluded.batch_count,"
         " batch_bytes = excluded.batch_bytes, bundle_below = excluded.bundle_below, verify = "
         "excluded.verify, changed = excluded.changed, removed = excluded.removed",
      use(policy.bucket), use(policy.prefix), use(pools), use(minimum_age), use(batch_age), use(batch_count),
      use(batch_bytes), use(bundle_below), use(policy.verify), use(changed), use(gone);
  long long id = 0;
  sql << "SELECT id FROM policies WHERE bucket = :bucket AND prefix = :prefix", use(policy.bucket),
      use(policy.prefix), into(id);
  if (removed) sql << "UPDATE objects SET policy = 0, missing = '' WHERE policy = :id", use(id);
  return id;
}

/// After every change so far.
long long next_change(soci::session& sql, base::TimePoint now) {
  long long last = 0;
  sql << "SELECT COALESCE(MAX(changed), 0) FROM policies", into(last);
  return std::max(to_db(now), last + 1);
}

}  // namespace

Result<PolicyRow> Catalog::put_policy(const Policy& policy, base::TimePoint now) {
  auto& sql = state_->sql;
  return transacted(sql, "put_policy", [&]() -> Result<PolicyRow> {
    return PolicyRow{write_policy(sql, policy, next_change(sql, now), false), policy};
  });
}

Result<void> Catalog::remove_policy(const std::string& bucket, const std::string& prefix,
                                    base::TimePoint now) {
  auto& sql = state_->sql;
  return transacted(sql, "remove_policy", [&]() -> Result<void> {
    const auto known = collect<RowFields>(
        sql, std::string(PolicyFields::kSelect) + "bucket = :bucket AND prefix = :prefix AND removed = 0",
        [&](soci::statement& statement) {
          statement.exchange(use(bucket));
          statement.exchange(use(prefix));
        });
    if (!known.empty()) write_policy(sql, known.front().policy, next_change(sql, now), true);
    return {};
  });
}

Result<std::vector<PolicyRow>> Catalog::policies() {
  return guarded("policies", [&]() -> Result<std::vector<PolicyRow>> {
    return collect<RowFields>(state_->sql,
                              std::string(PolicyFields::kSelect) + "removed = 0 ORDER BY bucket, prefix",
                              [](soci::statement&) {});
  });
}

Result<std::vector<PolicyChange>> Catalog::policy_changes(base::TimePoint after) {
  const long long moment = to_db(after);
  return guarded("policy_changes", [&]() -> Result<std::vector<PolicyChange>> {
    return collect<ChangeFields>(state_->sql,
                                 std::string(PolicyFields::kSelect) + "changed > :after ORDER BY changed",
                                 [&](soci::statement& statement) { statement.exchange(use(moment)); });
  });
}

Result<bool> Catalog::take_policy(const PolicyChange& change) {
  auto& sql = state_->sql;
  return transacted(sql, "take_policy", [&]() -> Result<bool> {
    long long known = 0;
    sql << "SELECT COALESCE(MAX(changed), 0) FROM policies WHERE bucket = :bucket AND prefix = :prefix",
        use(change.policy.bucket), use(change.policy.prefix), into(known);
    if (known >= to_db(change.at)) return false;
    write_policy(sql, change.policy, to_db(change.at), change.removed);
    return true;
  });
}

}  // namespace reelway::archive
