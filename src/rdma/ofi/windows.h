#pragma once
// What all planes of the form ofi1 share: reading a token as a window, and the parts of a client's memory
// that transfers hold, so that no two of them touch the same bytes.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/window.h"

namespace reelway::rdma::ofi {

/// invalid_argument: a malformed token. unsupported: one of another form or provider.
base::Result<base::Window> parse_window(std::string_view token, const std::string& provider);

/// The windows in use of one client address.
class Ranges {
 public:
  /// busy: it overlaps one that is in use.
  base::Result<void> hold(const base::Window& window, std::uint64_t id);
  void let_go(std::uint64_t id);
  bool empty() const { return ranges_.empty(); }

 private:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t id = 0;
  };
  std::vector<Range> ranges_;
};

}  // namespace reelway::rdma::ofi
