#pragma once
// Bounded pools of threads for calls that block (file calls, fsync, SG_IO, SQLite). `offload` runs a plain
// function there and comes back to the awaiting executor. A pool of one thread keeps the order of its calls.

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
  /// False when the queue is full. An exception from the call ends the process.
  bool post(std::move_only_function<void()> call);
  const std::string& name() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// F returns base::Result<T>; busy when the pool's queue is full. The function runs to its end even when the
/// awaiting coroutine is cancelled meanwhile, and only then offload returns: what the function refers to may
/// live in the awaiting frame. An exception is rethrown there.
template <class F>
auto offload(BlockingPool& pool, F function) -> net::awaitable<decltype(function())>;

}  // namespace reelway::async

#include "async/offload.ipp"
