#pragma once
// The disk's side of archiving: reads objects in the given order into pool chunks, many small ones to a
// chunk, hashes them, and makes sure that each was the same before and after (object::ArchiveReader). Parcels
// go through a bounded channel, so reading, hashing and the tape overlap.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "archive/catalog.h"
#include "async/channel.h"
#include "async/offload.h"
#include "base/buffer_pool.h"
#include "object/tiered.h"

namespace reelway::archive {

/// A complete object.
struct WholeObject {
  std::size_t entry = 0;  ///< index into the stage's rows
  object::ObjectInfo info{};
  object::Identity identity{};
  std::string sha256{};
  base::ByteView bytes{};
};

/// A piece of an object that is larger than fits beside others. The last one has the identity and the hash,
/// or the error that ends it.
struct ObjectPart {
  std::size_t entry = 0;
  base::ByteView bytes{};
  bool first = false;
  bool last = false;
  object::ObjectInfo info{};  ///< on the first
  object::Identity identity{};
  std::string sha256{};
  std::optional<base::Error> error{};
};

struct FailedObject {
  std::size_t entry = 0;
  base::Error error;
};

struct Parcel {
  base::Chunk memory;
  std::vector<WholeObject> wholes;
  std::optional<ObjectPart> part;
  std::vector<FailedObject> failed;
};

struct SourceEnvironment {
  object::Tiered& tiered;
  base::BufferPool& buffers;
  async::BlockingPool* hash_pool = nullptr;
};

/// Sends all rows as parcels and closes the channel at the end. Ends early when the receiver closes it.
async::Task<void> read_sources(SourceEnvironment environment, std::vector<ObjectRow> rows,
                               async::Channel<Parcel>& out);

}  // namespace reelway::archive
