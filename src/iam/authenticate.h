#pragma once
// Who sent a request: the check of its signature against the table of accounts. Pure. Anonymous is a caller
// too, and authorization decides about it.

#include "iam/accounts.h"
#include "s3/sigv4.h"

namespace reelway::iam {

struct Caller {
  Principal principal;
  s3::Verified verified;  ///< how the body is to be checked
};

/// Faults of s3/sigv4.h; InvalidAccessKeyId for a key that nobody has.
s3::Outcome<Caller> authenticate(const base::HttpRequestHead& head, const Accounts& accounts,
                                 s3::SigningKeyCache& keys, std::string_view region, base::TimePoint now);

}  // namespace reelway::iam
