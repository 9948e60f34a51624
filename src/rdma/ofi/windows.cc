#include "rdma/ofi/windows.h"

#include <algorithm>

#include "rdma/token.h"

namespace reelway::rdma::ofi {

using base::Code;
using base::Result;

Result<base::Window> parse_window(std::string_view token, const std::string& provider) {
  TRY(const Token parsed, parse_token(token));
  const auto* ofi = std::get_if<OfiToken>(&parsed);
  if (ofi == nullptr || ofi->provider != provider)
    return base::fail(Code::unsupported, "a token of another form or provider");
  return base::Window{.plane = "ofi1/" + provider,
                      .address = ofi->address,
                      .length = ofi->length,
                      .endpoint = ofi->endpoint,
                      .key = ofi->key,
                      .token_hash = token_hash(token)};
}

Result<void> Ranges::hold(const base::Window& window, std::uint64_t id) {
  const std::uint64_t end = window.address + window.length;
  const auto overlaps = [&](const Range& range) { return window.address < range.end && range.begin < end; };
  if (std::ranges::any_of(ranges_, overlaps)) {
    return base::fail(Code::busy, "the window overlaps one that is in use", base::Scope::request,
                      base::Retry::later);
  }
  ranges_.push_back({window.address, end, id});
  return {};
}

void Ranges::let_go(std::uint64_t id) {
  std::erase_if(ranges_, [&](const Range& range) { return range.id == id; });
}

}  // namespace reelway::rdma::ofi
