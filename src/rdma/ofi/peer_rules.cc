#include "rdma/ofi/peer_rules.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "base/encoding.h"

namespace reelway::rdma::ofi {
namespace {

using base::Code;
using base::Result;

constexpr unsigned kMappedBits = 96;
constexpr std::array<unsigned char, 16> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};

}  // namespace

bool PeerRules::Network::contains(const Address& other) const {
  const unsigned whole = bits / 8;
  if (!std::equal(address.begin(), address.begin() + whole, other.begin())) return false;
  if (bits % 8 == 0) return true;
  const unsigned shift = 8 - bits % 8;
  return address[whole] >> shift == other[whole] >> shift;
}

Result<PeerRules::Address> PeerRules::parse_address(const std::string& text) {
  Address address = kMapped;
  if (inet_pton(AF_INET, text.c_str(), address.data() + 12) == 1) return address;
  if (inet_pton(AF_INET6, text.c_str(), address.data()) == 1) return address;
  return base::fail(Code::invalid_argument, "\"" + text + "\" is no address");
}

Result<PeerRules::Network> PeerRules::parse_network(const std::string& text) {
  const auto wrong = [&] {
    return base::fail(Code::invalid_argument, "\"" + text + "\" is neither a network nor an address");
  };
  const auto slash = text.find('/');
  const auto address = parse_address(text.substr(0, slash));
  if (!address) return wrong();
  if (slash == std::string::npos) return Network{.address = *address};
  const unsigned width = text.find(':') == std::string::npos ? 32 : 128;
  const auto bits = base::parse_decimal(std::string_view(text).substr(slash + 1));
  if (!bits || *bits > width) return wrong();
  return Network{.address = *address, .bits = static_cast<unsigned>(*bits) + (width == 32 ? kMappedBits : 0)};
}

Result<PeerRules> PeerRules::create(const std::vector<std::string>& networks) {
  PeerRules rules;
  for (const std::string& text : networks) {
    TRY(const Network network, parse_network(text));
    rules.networks_.push_back(network);
  }
  return rules;
}

/// libfabric's name of a socket endpoint is its sockaddr.
Result<PeerRules::Address> PeerRules::endpoint_address(base::ByteView name) {
  sa_family_t family = AF_UNSPEC;
  if (name.size() >= sizeof family) std::memcpy(&family, name.data(), sizeof family);
  Address address = kMapped;
  if (family == AF_INET && name.size() >= sizeof(sockaddr_in)) {
    std::memcpy(address.data() + 12, name.data() + offsetof(sockaddr_in, sin_addr), 4);
    return address;
  }
  if (family == AF_INET6 && name.size() >= sizeof(sockaddr_in6)) {
    std::memcpy(address.data(), name.data() + offsetof(sockaddr_in6, sin6_addr), address.size());
    return address;
  }
  return base::fail(Code::access_denied, "the endpoint's name is no socket address", base::Scope::peer);
}

Result<void> PeerRules::check(base::ByteView endpoint_name, const base::HttpPeer& requester) const {
  TRY(const Address endpoint, endpoint_address(endpoint_name));
  const auto own = parse_address(requester.address);
  if (own && *own == endpoint) return {};
  if (std::ranges::any_of(networks_, [&](const Network& network) { return network.contains(endpoint); }))
    return {};
  return base::fail(Code::access_denied,
                    "the endpoint is neither at the requester's address nor among --rdma-peers",
                    base::Scope::peer);
}

}  // namespace reelway::rdma::ofi
