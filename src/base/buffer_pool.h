#pragma once
// The process's bulk memory: page-aligned chunks cut from slabs that are mapped once (huge pages where there are any). Planes register each
// slab once. Three shares are reserved so that one kind of traffic cannot starve another: drives, planes, HTTP. The pool's size bounds the
// process. A Chunk gives itself back when destroyed.

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
  std::size_t chunk_bytes = 4 * kMiB;     ///< drives and planes
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
  Chunk(Chunk&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), share_(other.share_), bytes_(std::exchange(other.bytes_, {})) {}
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
  /// `count` chunks at once, or busy; never waits (async::take_chunks does).
  Result<std::vector<Chunk>> try_take(PoolShare share, std::size_t count);
  /// Called (on whichever thread gives back) after chunks of `share` came free. One listener per share, set before use.
  void on_release(PoolShare share, std::function<void()> listener);
  std::span<const MutableBytes> slabs() const;  ///< for registration
  std::size_t free_count(PoolShare share) const;
  std::size_t total_count(PoolShare share) const;

 private:
  friend class Chunk;
  BufferPool();
  void give_back(PoolShare share, MutableBytes bytes);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reelway::base
