#pragma once
// Which policy an object has, and when a batch starts. Pure.

#include <string>
#include <vector>

#include "archive/catalog.h"

namespace reelway::archive {

/// invalid_argument says what is wrong with it; unsupported for abilities that are not there yet.
base::Result<void> check_policy(const Policy& policy, const std::vector<std::string>& known_pools);

/// The longest prefix of the bucket that matches; nullptr: none.
const PolicyRow* policy_of(const std::vector<PolicyRow>& policies, const object::ObjectName& name);

/// A batch starts when its oldest member waited long enough, or there are enough members or bytes. Repairs
/// (noted at zero) start at once.
bool is_batch_due(const Policy& policy, const WaitingGroup& group, base::TimePoint now);
/// When it will be due by age alone.
base::TimePoint batch_due_at(const Policy& policy, const WaitingGroup& group);

/// Enough copies count, and each is verified as the policy says; else the reason, a part of a sentence.
base::Result<void> check_evictable(const Policy& policy, const ObjectRow& object,
                                   const std::vector<CopyRow>& copies);

}  // namespace reelway::archive
