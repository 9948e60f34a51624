#pragma once
// Whom a plane over a network may connect to. A token of tcp or verbs makes the server connect to the address
// that it names, so without a rule every client could point it at any machine. Allowed is the requester's own
// address, and what the operator lists.

#include <array>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/http_head.h"
#include "base/result.h"

namespace reelway::rdma::ofi {

class PeerRules {
 public:
  /// Of networks as "10.0.0.0/8", "2001:db8::/32", or single addresses. invalid_argument names the wrong one.
  static base::Result<PeerRules> create(const std::vector<std::string>& networks);
  /// access_denied: the endpoint's address is neither the requester's nor listed, or is no socket address.
  base::Result<void> check(base::ByteView endpoint_name, const base::HttpPeer& requester) const;

 private:
  using Address = std::array<unsigned char, 16>;  ///< IPv6, IPv4 mapped into it
  struct Network {
    Address address{};
    unsigned bits = 128;
    bool contains(const Address& other) const;
  };
  static base::Result<Network> parse_network(const std::string& text);
  static base::Result<Address> parse_address(const std::string& text);
  static base::Result<Address> endpoint_address(base::ByteView name);

  std::vector<Network> networks_;
};

}  // namespace reelway::rdma::ofi
