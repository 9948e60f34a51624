#include "async/limiter.h"

#include <deque>
#include <mutex>

#include "async/timer.h"
#include "async/waiter.h"

namespace reelway::async {

struct LimiterState {
  struct Waiting {
    std::size_t units;
    std::shared_ptr<Waiter> waiter;
  };
  mutable std::mutex mutex;
  std::size_t limit = 0;
  std::size_t in_use = 0;
  std::deque<Waiting> waiting;

  bool fits(std::size_t units) const { return units <= limit - in_use; }

  /// With the mutex held. A waiter that has left the queue has its units.
  void serve() {
    while (!waiting.empty() && fits(waiting.front().units)) {
      in_use += waiting.front().units;
      waiting.front().waiter->wake();
      waiting.pop_front();
    }
  }

  void give_back(std::size_t units) {
    const std::lock_guard lock(mutex);
    in_use -= units;
    serve();
  }

  /// True when the waiter still waited: it has no units.
  bool withdraw(const std::shared_ptr<Waiter>& waiter) {
    const std::lock_guard lock(mutex);
    const bool waited = std::erase_if(waiting, [&](const Waiting& w) { return w.waiter == waiter; }) > 0;
    serve();
    return waited;
  }
};

Limiter::Limiter(std::size_t limit) : state_(std::make_shared<LimiterState>()) { state_->limit = limit; }

Limiter::Permit& Limiter::Permit::operator=(Permit&& other) noexcept {
  if (this != &other) {
    if (state_) state_->give_back(units_);
    state_ = std::move(other.state_);
    units_ = std::exchange(other.units_, 0);
  }
  return *this;
}

Limiter::Permit::~Permit() {
  if (state_) state_->give_back(units_);
}

Task<Limiter::Permit> Limiter::acquire(std::size_t units, base::Duration patience) {
  const auto state = state_;
  const auto waiter = std::make_shared<Waiter>();
  if (units > state->limit)
    co_return base::fail(base::Code::invalid_argument, "more units asked for than there are");
  {
    const std::lock_guard lock(state->mutex);
    if (state->waiting.empty() && state->fits(units)) {
      state->in_use += units;
      co_return Permit(state, units);
    }
    state->waiting.push_back({units, waiter});
  }
  const base::Result<void> woken = co_await with_deadline(waiter->wait(), patience);
  if (!woken.has_value() && state->withdraw(waiter)) {
    if (woken.error().code == base::Code::cancelled) co_return woken.error();
    co_return base::fail(base::Code::busy, "all units are in use", base::Scope::node, base::Retry::later);
  }
  co_return Permit(state, units);
}

std::size_t Limiter::in_use() const {
  const std::lock_guard lock(state_->mutex);
  return state_->in_use;
}

}  // namespace reelway::async
