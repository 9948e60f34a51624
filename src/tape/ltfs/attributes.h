#pragma once
// Reelway's extended attributes of a file on tape (docs/formats/ltfs-attributes.md): reelway.generation,
// reelway.key (raw bytes), reelway.meta.0..n (the CBOR metadata in pieces of at most 4096 bytes), and LTFS's
// own ltfs.hash.sha256sum (annex F.3).

#include <string>
#include <vector>

#include "tape/ltfs/index.h"

namespace reelway::tape::ltfs {

struct ObjectAttributes {
  std::string generation;
  std::string bucket;    ///< reelway.bucket
  std::string key;       ///< raw bytes
  std::string sha256;    ///< lower-case hex; empty: unknown
  base::Bytes metadata;  ///< CBOR
  friend bool operator==(const ObjectAttributes&, const ObjectAttributes&) = default;
};

std::vector<ExtendedAttribute> to_extended_attributes(const ObjectAttributes& attributes);
/// not_found: not a file of Reelway's. data_loss: a piece of the metadata is missing.
base::Result<ObjectAttributes> from_extended_attributes(const Entry& entry);

}  // namespace reelway::tape::ltfs
