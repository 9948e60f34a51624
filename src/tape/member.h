#pragma once
// One object inside a bundle, as bundles, batch manifests and the catalog name it.

#include <cstdint>
#include <string>

#include "base/encoding.h"

namespace reelway::tape {

struct Member {
  std::string bucket;  ///< raw bytes
  std::string key;     ///< raw bytes
  std::string generation;
  std::uint64_t offset = 0;  ///< of the first content byte within the bundle's file
  std::uint64_t length = 0;
  std::string sha256;    ///< of the content, 64 lower-case hex digits; empty when unknown
  base::Bytes metadata;  ///< object metadata, CBOR; opaque here
  friend bool operator==(const Member&, const Member&) = default;
};

}  // namespace reelway::tape
