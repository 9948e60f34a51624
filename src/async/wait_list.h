#pragma once
// Coroutines that wait for the same condition, first come first woken. Guarded by its owner's mutex.

#include <deque>
#include <memory>

#include "async/waiter.h"

namespace reelway::async {

class WaitList {
 public:
  std::shared_ptr<Waiter> add() { return waiters_.emplace_back(std::make_shared<Waiter>()); }
  void wake_one() {
    if (waiters_.empty()) return;
    waiters_.front()->wake();
    waiters_.pop_front();
  }
  void wake_all() {
    while (!waiters_.empty()) wake_one();
  }
  /// For a waiter that was cancelled: if its turn had come meanwhile, the next one gets it.
  void abandon(const std::shared_ptr<Waiter>& waiter) {
    if (std::erase(waiters_, waiter) == 0) wake_one();
  }

 private:
  std::deque<std::shared_ptr<Waiter>> waiters_;
};

}  // namespace reelway::async
