#pragma once
// Counts the operations of one transfer that have not ended, so that a fence can wait for them.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "async/task.h"
#include "async/waiter.h"

namespace reelway::rdma::ofi {

class Pending {
 public:
  void enter();
  void leave();
  bool empty() const;
  void wait_blocking() const;
  async::Task<void> wait();

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable emptied_;
  std::size_t count_ = 0;
  std::vector<std::shared_ptr<async::Waiter>> waiters_;
};

}  // namespace reelway::rdma::ofi
