#pragma once
// Asynchronous byte streams. An HTTP body (aws-chunked too), an RDMA pull, a file and a tape extent are all
// sources, so PUT is one code path whatever the road; hashing is a stage in it. The reader's memory decides
// about copies: when `into` lies in a pool chunk, sources that can place bytes there directly (a file, a
// plane, a socket) do. A source may lend the chunks that were reserved for its transfer.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "async/task.h"
#include "base/buffer_pool.h"
#include "base/bytes.h"
#include "base/encoding.h"

namespace reelway::object {

/// Chunks of one size, never an empty list.
using Buffers = std::shared_ptr<const std::vector<base::Chunk>>;

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Total bytes this source will give, where known beforehand.
  virtual std::optional<std::uint64_t> length() const = 0;
  /// Fills a prefix of `into` (not empty) and returns its size; 0 only at the end. A short read is not the
  /// end. After an error the source is dead. Errors: closed (the peer went away short of its promise),
  /// checksum_mismatch, deadline_exceeded, data_loss.
  virtual async::Task<std::size_t> read(base::MutableBytes into) = 0;
  /// Memory to read into, in turn and over again, that saves copies; null: the reader uses its own. A reader
  /// uses the one or the other, never both, and does not change what it was given.
  virtual Buffers buffers() const { return nullptr; }
};

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  /// Takes all of `bytes` before it returns; the memory is the caller's again then.
  virtual async::Task<void> write(base::ByteView bytes) = 0;
};

/// Reads until `into` is full or the source ends; returns the bytes read.
async::Task<std::size_t> read_full(ByteSource& source, base::MutableBytes into);

/// Gives the bytes of a memory range. For tests and small documents.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(base::ByteView bytes) : rest_(bytes), length_(bytes.size()) {}
  std::optional<std::uint64_t> length() const override { return length_; }
  async::Task<std::size_t> read(base::MutableBytes into) override;

 private:
  base::ByteView rest_;
  std::uint64_t length_;
};

class MemorySink final : public ByteSink {
 public:
  async::Task<void> write(base::ByteView bytes) override;
  const base::Bytes& bytes() const { return bytes_; }

 private:
  base::Bytes bytes_;
};

}  // namespace reelway::object
