#pragma once
// The process's bulk memory: page-aligned chunks cut from slabs that are mapped once (huge pages where there
// are any). Planes register each slab once. Three shares are reserved so that one kind of traffic cannot
// starve another: drives, planes, HTTP. The pool's size bounds the process. A Chunk gives itself back when
// destroyed; a pool outlives its chunks (else the process aborts).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace reelway::base {

enum class PoolShare : std::uint8_t { drives, planes, http };

struct BufferPoolOptions {
  std::size_t chunk_bytes = 4 * kMiB;  ///< drives and planes
  std::size_t http_chunk_bytes = 64 * kKiB;
  std::size_t drives_bytes = 96 * kMiB;
  std::size_t planes_bytes = 96 * kMiB;
  std::size_t http_bytes = 64 * kMiB;
};

class BufferPool;

/// Owns one chunk of a pool. Movable; an empty one (after a move) has no bytes.
class Chunk {
 public:
  Chunk() = default;
  Chunk(Chunk&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)),
        share_(other.share_),
        bytes_(std::exchange(other.bytes_, {})) {}
  Chunk& operator=(Chunk&& other) noexcept;
  ~Chunk();
  MutableBytes bytes() const { return bytes_; }
  explicit operator bool() const { return pool_ != nullptr; }

 private:
  friend class BufferPool;
  Chunk(BufferPool* pool, PoolShare share, MutableBytes bytes) : pool_(pool), share_(share), bytes_(bytes) {}
  BufferPool* pool_ = nullptr;
  PoolShare share_{};
  MutableBytes bytes_;
};

class BufferPool {
 public:
  /// no_space when the memory cannot be mapped; says what to change.
  static Result<std::unique_ptr<BufferPool>> create(const BufferPoolOptions& options);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  std::size_t chunk_bytes(PoolShare share) const;
  /// `count` chunks at once, or busy (also when others wait for theirs); never waits.
  Result<std::vector<Chunk>> try_take(PoolShare share, std::size_t count);
  /// Queues for `count` chunks, first come first served. `grant` is called once with them: at once, or later
  /// on whichever thread gives some back. invalid_argument when the share will never have that many.
  /// async::take_chunks is the waiting form of it.
  using Ticket = std::uint64_t;
  Result<Ticket> request(PoolShare share, std::size_t count,
                         std::move_only_function<void(std::vector<Chunk>)> grant);
  /// True when the ticket was still waiting; its `grant` is never called then.
  bool withdraw(PoolShare share, Ticket ticket);
  std::span<const MutableBytes> slabs() const;  ///< for registration
  std::size_t free_count(PoolShare share) const;
  std::size_t total_count(PoolShare share) const;

 private:
  friend class Chunk;
  BufferPool();
  void give_back(PoolShare share, MutableBytes bytes);
  void serve_waiting(PoolShare share);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reelway::base
