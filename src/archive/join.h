#pragma once
// Small ways to wait: for several tasks at once, for a wake-up or a moment, and for a call on a pool that may
// be absent.

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "async/offload.h"
#include "async/timer.h"
#include "async/waiter.h"

namespace reelway::archive {

namespace net = async::net;

/// Runs all at once on the caller's executor and returns when the last has ended; results in the order of the
/// tasks.
net::awaitable<std::vector<base::Result<void>>> join_all(std::vector<async::Task<void>> tasks);

/// work(i) for each i in [0, count), at most `width` at once. The work keeps its own results; this never
/// fails.
net::awaitable<void> fan_out(std::size_t count, std::size_t width,
                             const std::function<net::awaitable<void>(std::size_t)>& work);

/// Returns when the waiter was woken or the moment has come.
net::awaitable<void> wait_until(async::Timer& timer, std::shared_ptr<async::Waiter> waiter,
                                base::SteadyPoint until);

/// On the pool; in place where there is none.
template <class F>
auto on_pool(async::BlockingPool* pool, F function) -> net::awaitable<decltype(function())> {
  if (pool == nullptr) co_return function();
  co_return co_await async::offload(*pool, std::move(function));
}

}  // namespace reelway::archive
