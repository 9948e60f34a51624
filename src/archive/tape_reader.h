#pragma once
// The tape's side of recall, verification and repair: reads copies from one mounted volume in the given order
// into pool chunks and sends them through a bounded channel. Neighbours in one bundle are read as one stream,
// the gaps between them included; a block at a border is not read twice. An unreadable span is tried again
// object by object, so that one bad block costs only the objects that touch it.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "archive/catalog.h"
#include "async/channel.h"
#include "base/buffer_pool.h"
#include "tape/ltfs/volume.h"

namespace reelway::archive {

/// Bytes of one copy: all of it, or one part of a large one, or the error that ends it.
struct TapeSlice {
  std::size_t entry = 0;  ///< index into the copies
  base::ByteView bytes{};
  bool first = false;
  bool last = false;
  std::optional<base::Error> error{};
};

struct TapeParcel {
  base::Chunk memory;
  std::vector<TapeSlice> slices;  ///< in reading order
};

struct ReadJob {
  tape::ltfs::Volume& volume;
  base::BufferPool& buffers;
  std::vector<CopyRow> copies;
  std::function<bool()> stopping;             ///< asked between parcels
  std::function<bool(std::size_t)> yields{};  ///< asked before a copy: it and those behind it are left out
};

/// Sends all copies and closes the channel at the end. An error: the drive or the volume is lost for now;
/// what was not sent was not read.
async::Task<void> read_copies(ReadJob job, async::Channel<TapeParcel>& out);

}  // namespace reelway::archive
