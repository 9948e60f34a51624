#pragma once
// The one binary form of an object's metadata: a CBOR map (RFC 8949), used in the disk attribute, the
// sidecar, the tape attributes and the catalog. docs/formats/metadata.md lists the keys. Unknown keys are
// ignored by decode, so that older servers read newer trees.

#include "object/types.h"

namespace reelway::object {

/// Everything of `info` but residency and restore.
base::Bytes encode_metadata(const ObjectInfo& info);
/// data_loss for bytes that are not such a map.
base::Result<ObjectInfo> decode_metadata(base::ByteView bytes);

}  // namespace reelway::object
