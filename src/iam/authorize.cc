#include "iam/authorize.h"

namespace reelway::iam {

Decision decide(const Principal& principal, std::string_view /*action*/, const Resource& /*resource*/) {
  // Without policies and ACLs the role alone decides; they will be consulted here, and deny stays the last
  // word.
  switch (principal.role) {
    case Role::root:
      return Decision::allow;
    case Role::anonymous:
      return Decision::deny;
  }
  return Decision::deny;
}

}  // namespace reelway::iam
