#pragma once
// Volume Coherency Information, MAM attribute 080Ch of each partition (LTFS 2.4.0, annex F): which index was
// the last when the cartridge's change counter (attribute 0009h) had a given value. While both still agree,
// nothing was written since, and mounting is fast.

#include <cstdint>
#include <string>

#include "base/encoding.h"

namespace reelway::tape::ltfs {

struct Coherency {
  std::uint64_t volume_change_reference = 0;
  std::uint64_t generation = 0;  ///< of that index
  std::uint64_t start_block = 0;
  std::string volume_uuid;
  friend bool operator==(const Coherency&, const Coherency&) = default;
};

base::Bytes encode_coherency(const Coherency& coherency);
/// data_loss: not LTFS's, or malformed.
base::Result<Coherency> decode_coherency(base::ByteView value);
/// Attribute 0009h, 1 to 8 bytes big-endian. data_loss for other lengths and for the values that mean
/// "unknown" (0, all ones).
base::Result<std::uint64_t> decode_change_reference(base::ByteView value);

}  // namespace reelway::tape::ltfs
