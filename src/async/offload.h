#pragma once
// Bounded pools of threads for calls that block (file calls, fsync, SG_IO, SQLite). `offload` runs a plain function there and comes back to
// the awaiting executor. A pool of one thread keeps the order of its calls.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "async/task.h"

namespace reelway::async {

class BlockingPool {
 public:
  /// `queue_max` calls may wait; one more is refused with busy.
  BlockingPool(std::string name, std::size_t thread_count, std::size_t queue_max = 65536);
  ~BlockingPool();  ///< finishes what is queued
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;
  /// False when the queue is full.
  bool post(std::move_only_function<void()> call);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// F returns base::Result<T>. The function runs to its end even when the awaiting coroutine is cancelled meanwhile.
template <class F>
auto offload(BlockingPool& pool, F function) -> net::awaitable<decltype(function())>;

}  // namespace reelway::async

#include "async/offload.ipp"
