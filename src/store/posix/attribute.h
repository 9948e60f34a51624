#pragma once
// The packed attribute: one small record that holds, or points to, an object's metadata.
// docs/formats/packed-attribute.md. A record is believed only when its CRC32C agrees and, under
// `user.reelway`, its HMAC too.

#include <optional>
#include <string>

#include "base/encoding.h"
#include "base/result.h"

namespace reelway::store::posix {

inline constexpr std::size_t kAttributeBytesMax = 2048;  ///< longer records go to the sidecar

enum class RecordKind : std::uint8_t {
  metadata = 0,  ///< the payload is the CBOR map
  pointer = 1,   ///< the payload is the generation whose sidecar holds the map
  inode = 2,     ///< what a recall gives back besides: owner, mode, times, attributes (sidecars only)
};

struct Record {
  RecordKind kind{};
  base::Bytes payload;
};

/// With a key: an HMAC-SHA256 over `binding` and the payload is added.
base::Bytes pack_record(const Record& record, const std::optional<base::Bytes>& key,
                        std::string_view binding);
/// Reads the record at the start of `bytes` and drops it from there. data_loss for anything that is not
/// whole; access_denied when a key is given and the HMAC is missing or wrong.
base::Result<Record> unpack_record(base::ByteView& bytes, const std::optional<base::Bytes>& key,
                                   std::string_view binding);

}  // namespace reelway::store::posix
