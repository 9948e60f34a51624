#pragma once
// Values on the command line. Errors are sentences that name the value.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "object/types.h"

namespace reelway::app {

struct Address {
  std::string host;
  std::uint16_t port = 0;
};
/// "127.0.0.1:9000", "[::1]:9000", ":9000" (every address).
base::Result<Address> parse_address(std::string_view text);

struct Endpoint {
  Address address;
  bool tls = false;
};
/// "http://host:port", "https://host" or a bare address.
base::Result<Endpoint> parse_endpoint(std::string_view text);

/// "s3://bucket/key"; the key may be empty.
base::Result<object::ObjectName> parse_s3_url(std::string_view text);

}  // namespace reelway::app
