#pragma once
// Who sent a request: pure but for the table of keys. Anonymous is a caller too, and authorization decides
// about it.

#include "gateway/gateway.h"

namespace reelway::gateway {

struct Caller {
  iam::Principal principal;
  s3::Verified verified;
};

s3::Outcome<Caller> authenticate(const base::HttpRequestHead& head, const GatewayParts& parts,
                                 const GatewayOptions& options, s3::SigningKeyCache& keys);

}  // namespace reelway::gateway
