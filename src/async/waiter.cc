#include "async/waiter.h"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace reelway::async {

void Waiter::finish(bool cancelled) {
  // Resuming only posts. It happens under the mutex, which the coroutine takes before it goes on: so the
  // io_context may end with it, and is not yet gone while we are still inside of post.
  const std::lock_guard lock(mutex_);
  if (done_) return;
  done_ = true;
  cancelled_ = cancelled;
  if (resume_) std::exchange(resume_, nullptr)();
}

net::awaitable<void> Waiter::suspend(std::function<void()> on_cancel) {
  auto initiation = [self = shared_from_this(), on_cancel = std::move(on_cancel)](auto handler) mutable {
    auto slot = net::get_associated_cancellation_slot(handler);
    if (slot.is_connected() && on_cancel) slot.assign([on_cancel](net::cancellation_type) { on_cancel(); });
    // Posting, not calling: the waker may be on any thread and hold any lock.
    auto resume = [handler = std::move(handler)]() mutable {
      const auto executor = net::get_associated_executor(handler);
      net::post(executor, std::move(handler));
    };
    const std::lock_guard lock(self->mutex_);
    if (self->done_) {
      resume();
    } else {
      self->resume_ = std::move(resume);
    }
  };
  co_await net::async_initiate<const net::use_awaitable_t<>, void()>(std::move(initiation),
                                                                     net::use_awaitable);
  // A cancel that comes later is none of this wait's business.
  const auto state = co_await net::this_coro::cancellation_state;
  if (auto slot = state.slot(); slot.is_connected()) slot.clear();
  const std::lock_guard lock(mutex_);
}

Task<void> Waiter::wait() {
  const auto state = co_await net::this_coro::cancellation_state;
  if (state.cancelled() != net::cancellation_type::none) finish(true);
  co_await suspend([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->finish(true);
  });
  if (cancelled_) co_return base::fail(base::Code::cancelled, "the wait was cancelled");
  co_return base::Result<void>{};
}

Task<void> Waiter::wait_to_the_end(std::function<void()> on_cancel) {
  const auto state = co_await net::this_coro::cancellation_state;
  if (on_cancel && state.cancelled() != net::cancellation_type::none) on_cancel();
  co_await suspend(std::move(on_cancel));
  co_return base::Result<void>{};
}

}  // namespace reelway::async
