#pragma once
// Where bytes of an LTFS file lie on the data partition, and the names that objects get on a volume. Pure.

#include <cstdint>
#include <span>
#include <string>

#include "object/types.h"
#include "tape/ltfs/index.h"

namespace reelway::archive {

struct BlockRange {
  std::uint64_t first = 0;
  std::uint64_t end = 0;  ///< after the last
};

/// Blocks that hold [offset, offset + length) of a file. An empty range has first == end.
BlockRange blocks_of(std::span<const tape::ltfs::Extent> extents, std::uint32_t block_bytes,
                     std::uint64_t offset, std::uint64_t length);

/// "/bucket/key" where LTFS can hold it and nothing on the volume is in its way; else
/// "/.reelway/objects/<bucket>/<generation>".
std::string path_for(const tape::ltfs::Index& index, const object::ObjectName& name,
                     const std::string& generation);
/// For the older version that lies at a path now.
std::string displaced_path(const tape::ltfs::Index& index, const object::ObjectName& name,
                           const std::string& generation);

}  // namespace reelway::archive
