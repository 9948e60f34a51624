#include "rdma/ofi/pending.h"

#include <utility>

namespace reelway::rdma::ofi {

void Pending::enter() {
  const std::scoped_lock lock(mutex_);
  ++count_;
}

void Pending::leave() {
  const std::scoped_lock lock(mutex_);
  if (--count_ != 0) return;
  emptied_.notify_all();
  for (const auto& waiter : std::exchange(waiters_, {})) waiter->wake();
}

bool Pending::empty() const {
  const std::scoped_lock lock(mutex_);
  return count_ == 0;
}

void Pending::wait_blocking() const {
  std::unique_lock lock(mutex_);
  emptied_.wait(lock, [this] { return count_ == 0; });
}

async::Task<void> Pending::wait() {
  const auto waiter = std::make_shared<async::Waiter>();
  {
    const std::scoped_lock lock(mutex_);
    if (count_ == 0) co_return base::Result<void>{};
    waiters_.push_back(waiter);
  }
  co_return co_await waiter->wait_to_the_end();
}

}  // namespace reelway::rdma::ofi
