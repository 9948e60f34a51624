#pragma once
// The one bridge between coroutines and everything else that runs: one coroutine waits, anybody on any thread
// wakes it, once. The coroutine goes on where it ran before. Waking before the wait is not lost. All other
// waits of this room are made of it.

#include <functional>
#include <memory>
#include <mutex>

#include "async/task.h"

namespace reelway::async {

class Waiter : public std::enable_shared_from_this<Waiter> {
 public:
  /// Ends the wait, now or in the future. Later calls change nothing.
  void wake() { finish(false); }
  /// Returns once woken; cancelled when the awaiting coroutine is cancelled first (or was already).
  Task<void> wait();
  /// Returns only once woken. `on_cancel` is called, on the awaiting executor, when the coroutine is
  /// cancelled meanwhile (or was already).
  Task<void> wait_to_the_end(std::function<void()> on_cancel = {});

 private:
  void finish(bool cancelled);
  net::awaitable<void> suspend(std::function<void()> on_cancel);

  std::mutex mutex_;
  bool done_ = false;
  bool cancelled_ = false;
  std::move_only_function<void()> resume_;
};

}  // namespace reelway::async
