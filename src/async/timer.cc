#include "async/timer.h"

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <map>
#include <mutex>

#include "async/waiter.h"

namespace reelway::async {

Task<void> Timer::sleep_for(base::Duration duration) { return sleep_until(clock().steady_now() + duration); }

Task<void> SystemTimer::sleep_until(base::SteadyPoint until) {
  const auto executor = co_await net::this_coro::executor;
  const auto state = co_await net::this_coro::cancellation_state;
  boost::system::error_code error = net::error::operation_aborted;
  if (state.cancelled() == net::cancellation_type::none) {
    net::steady_timer timer(executor, std::chrono::time_point_cast<net::steady_timer::duration>(until));
    co_await timer.async_wait(net::redirect_error(net::use_awaitable, error));
  }
  if (error) co_return base::fail(base::Code::cancelled, "the sleep was cancelled");
  co_return base::Result<void>{};
}

struct VirtualTimer::State {
  mutable std::mutex mutex;
  std::multimap<base::SteadyPoint, std::shared_ptr<Waiter>> sleepers;  // equal keys stay in order of arrival
};

VirtualTimer::VirtualTimer(base::ManualClock& clock) : clock_(clock), state_(std::make_shared<State>()) {}
VirtualTimer::~VirtualTimer() = default;

Task<void> VirtualTimer::sleep_until(base::SteadyPoint until) {
  const auto state = state_;
  const auto waiter = std::make_shared<Waiter>();
  {
    const std::lock_guard lock(state->mutex);
    if (until <= clock_.steady_now()) co_return base::Result<void>{};
    state->sleepers.emplace(until, waiter);
  }
  const base::Result<void> woken = co_await waiter->wait();
  if (!woken.has_value()) {
    const std::lock_guard lock(state->mutex);
    std::erase_if(state->sleepers, [&](const auto& sleeper) { return sleeper.second == waiter; });
  }
  co_return woken;
}

bool VirtualTimer::advance_to_next() {
  const std::lock_guard lock(state_->mutex);
  const auto first = state_->sleepers.begin();
  if (first == state_->sleepers.end()) return false;
  clock_.advance(std::max(base::Duration::zero(), first->first - clock_.steady_now()));
  first->second->wake();
  state_->sleepers.erase(first);
  return true;
}

void VirtualTimer::advance_by(base::Duration duration) {
  const std::lock_guard lock(state_->mutex);
  clock_.advance(duration);
  auto& sleepers = state_->sleepers;
  while (!sleepers.empty() && sleepers.begin()->first <= clock_.steady_now()) {
    sleepers.begin()->second->wake();
    sleepers.erase(sleepers.begin());
  }
}

std::size_t VirtualTimer::sleeper_count() const {
  const std::lock_guard lock(state_->mutex);
  return state_->sleepers.size();
}

}  // namespace reelway::async
