// A token from outside: never crashes, and an ofi1 token that parses survives a round trip.
#include <cstdlib>

#include "rdma/token.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reelway;
  const auto token = rdma::parse_token({reinterpret_cast<const char*>(data), size});
  if (!token) return 0;
  if (const auto* ofi = std::get_if<rdma::OfiToken>(&*token)) {
    const auto again = rdma::parse_token(rdma::format_token(*ofi));
    if (!again || std::get<rdma::OfiToken>(*again).endpoint != ofi->endpoint) std::abort();
  }
  return 0;
}
