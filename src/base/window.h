#pragma once
// A client's registered memory that a plane may read or write, as a plain value: any process of the site can
// serve it.

#include <cstdint>
#include <string>

#include "base/encoding.h"

namespace reelway::base {

struct Window {
  std::string plane;          ///< "ofi1/shm", "ofi1/tcp", ...: which plane parsed it
  std::uint64_t address = 0;  ///< base, as the plane's wire form names it (virtual address or offset)
  std::uint64_t length = 0;   ///< bytes that may be touched from `address`
  Bytes endpoint;             ///< the peer's address in the plane's own form
  std::uint64_t key = 0;      ///< memory key; never logged
  std::string token_hash;     ///< first 16 hex digits of SHA-256 of the token, the only form a log may show
};

}  // namespace reelway::base
