#pragma once
// The planes that this process has open, and the one decision which of them serves a token.

#include <memory>
#include <string_view>
#include <variant>
#include <vector>

#include "rdma/plane.h"
#include "rdma/reply.h"

namespace reelway::rdma {

/// A plane and the window it read from the token.
struct Choice {
  Plane* plane = nullptr;
  base::Window window;
};
struct MalformedToken {};

class Planes {
 public:
  /// Before the first choose().
  void add(std::unique_ptr<Plane> plane);
  /// Pure. A token of no known form is malformed; a known one that nobody here serves is declined with the
  /// reason.
  std::variant<Choice, DeclineReason, MalformedToken> choose(std::string_view token) const;
  std::vector<PlaneInfo> infos() const;
  bool empty() const { return planes_.empty(); }
  async::Task<void> close();

 private:
  std::vector<std::unique_ptr<Plane>> planes_;
};

}  // namespace reelway::rdma
