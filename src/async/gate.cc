#include "async/gate.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "async/waiter.h"

namespace reelway::async {

struct GateState {
  mutable std::mutex mutex;
  bool closed = false;
  std::size_t holders = 0;
  std::vector<std::shared_ptr<Waiter>> closers;

  void leave() {
    std::vector<std::shared_ptr<Waiter>> woken;
    {
      const std::lock_guard lock(mutex);
      if (--holders == 0 && closed) woken.swap(closers);
    }
    for (const auto& waiter : woken) waiter->wake();
  }
};

Gate::Gate() : state_(std::make_shared<GateState>()) {}

Gate::~Gate() {
  if (const std::size_t holders = holder_count(); holders > 0) {
    std::fprintf(stderr, "Gate destroyed while %zu hold it\n", holders);
    std::abort();
  }
}

Gate::Holder::Holder(Holder&& other) noexcept : state_(std::move(other.state_)) {}

Gate::Holder& Gate::Holder::operator=(Holder&& other) noexcept {
  if (this != &other) {
    const auto left = std::exchange(state_, std::move(other.state_));
    if (left) left->leave();
  }
  return *this;
}

Gate::Holder::~Holder() {
  if (state_) state_->leave();
}

base::Result<Gate::Holder> Gate::hold() {
  const std::lock_guard lock(state_->mutex);
  if (state_->closed)
    return base::fail(base::Code::closed, "shutting down", base::Scope::node, base::Retry::elsewhere);
  ++state_->holders;
  return Holder(state_);
}

Task<void> Gate::close() {
  const auto waiter = std::make_shared<Waiter>();
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    if (state_->holders == 0) co_return base::Result<void>{};
    state_->closers.push_back(waiter);
  }
  co_return co_await waiter->wait_to_the_end();
}

bool Gate::is_closed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->closed;
}

std::size_t Gate::holder_count() const {
  const std::lock_guard lock(state_->mutex);
  return state_->holders;
}

}  // namespace reelway::async
