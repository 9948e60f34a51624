#include "archive/policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace reelway::archive {

using base::Code;
using base::Result;

Result<void> check_policy(const Policy& policy, const std::vector<std::string>& known_pools) {
  if (policy.bucket.empty()) return base::fail(Code::invalid_argument, "a policy names a bucket");
  if (policy.pools.empty()) return base::fail(Code::invalid_argument, "a policy names at least one pool");
  for (const std::string& pool : policy.pools) {
    if (std::find(known_pools.begin(), known_pools.end(), pool) == known_pools.end()) {
      return base::fail(Code::invalid_argument, fmt::format("there is no pool '{}'; there are: {}", pool,
                                                            fmt::join(known_pools, ", ")));
    }
    if (std::count(policy.pools.begin(), policy.pools.end(), pool) > 1) {
      return base::fail(Code::invalid_argument,
                        fmt::format("pool '{}' is named twice: each copy goes to a pool of its own", pool));
    }
  }
  if (policy.batch_count == 0 || policy.batch_bytes == 0)
    return base::fail(Code::invalid_argument, "a batch has at least one object and one byte");
  if (policy.verify == "lbp")
    return base::fail(Code::unsupported,
                      "verify 'lbp' needs logical block protection, which is not there yet: use read-back");
  if (policy.verify != "read-back" && policy.verify != "none") {
    return base::fail(Code::invalid_argument,
                      fmt::format("verify is read-back or none, not '{}'", policy.verify));
  }
  return {};
}

const PolicyRow* policy_of(const std::vector<PolicyRow>& policies, const object::ObjectName& name) {
  const PolicyRow* best = nullptr;
  for (const PolicyRow& row : policies) {
    if (row.policy.bucket != name.bucket || !name.key.starts_with(row.policy.prefix)) continue;
    if (best == nullptr || row.policy.prefix.size() > best->policy.prefix.size()) best = &row;
  }
  return best;
}

base::TimePoint batch_due_at(const Policy& policy, const WaitingGroup& group) {
  return group.oldest + std::chrono::seconds{policy.batch_age_s};
}

bool is_batch_due(const Policy& policy, const WaitingGroup& group, base::TimePoint now) {
  if (group.count == 0) return false;
  return batch_due_at(policy, group) <= now || group.count >= policy.batch_count ||
         group.bytes >= policy.batch_bytes;
}

Result<void> check_evictable(const Policy& policy, const ObjectRow& object,
                             const std::vector<CopyRow>& copies) {
  if (!object.missing.empty())
    return base::fail(Code::precondition_failed,
                      fmt::format("no counted copy in pool {} yet", fmt::join(object.missing, ", ")));
  const auto counted =
      std::count_if(copies.begin(), copies.end(), [](const CopyRow& copy) { return !copy.damaged; });
  if (static_cast<std::size_t>(counted) < policy.pools.size()) {
    return base::fail(Code::precondition_failed,
                      fmt::format("{} of {} copies count", counted, policy.pools.size()));
  }
  if (policy.verify == "none") return {};
  const bool all = std::all_of(copies.begin(), copies.end(),
                               [](const CopyRow& copy) { return copy.damaged || copy.verified; });
  if (!all) return base::fail(Code::precondition_failed, "a copy was not verified yet");
  return {};
}

}  // namespace reelway::archive
