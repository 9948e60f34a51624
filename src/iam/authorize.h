#pragma once
// The one authorization decision. Pure: it depends on its arguments only, is made once per request (once per
// key for DeleteObjects, once more for the source of a copy), and comes before any side effect. Actions are
// the names of AWS's service authorization reference ("s3:GetObject") and a few of our own ("reelway:...");
// an empty one is an operation that nobody knows.

#include <cstdint>
#include <string_view>

#include "iam/accounts.h"

namespace reelway::iam {

struct Resource {
  std::string_view bucket;  ///< empty: the service
  std::string_view key;     ///< empty: the bucket
};

enum class Decision : std::uint8_t { allow, deny };

Decision decide(const Principal& principal, std::string_view action, const Resource& resource);
inline bool allow(const Principal& principal, std::string_view action, const Resource& resource) {
  return decide(principal, action, resource) == Decision::allow;
}

}  // namespace reelway::iam
