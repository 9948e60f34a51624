#include "async/child.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include "async/waiter.h"

namespace reelway::async::detail {

namespace {

/// `signal` and `ended` belong to the child's executor.
struct ChildState {
  net::cancellation_signal signal;
  bool ended = false;
  std::exception_ptr exception;
  std::shared_ptr<Waiter> end = std::make_shared<Waiter>();
};

net::awaitable<void> body(net::awaitable<void> child) {
  // Cancellation ends the operation that waits, with an error value; it is no exception.
  co_await net::this_coro::throw_if_cancelled(false);
  co_await std::move(child);
}

void cancel(const std::shared_ptr<ChildState>& state, const Executor& executor) {
  net::post(executor, [state] {
    if (!state->ended) state->signal.emit(net::cancellation_type::terminal);
  });
}

}  // namespace

net::awaitable<bool> run_child(Executor executor, net::awaitable<void> child,
                               std::optional<base::Duration> limit) {
  const Executor parent = co_await net::this_coro::executor;
  const auto state = std::make_shared<ChildState>();
  const auto expired = std::make_shared<bool>(false);  // belongs to the parent's executor
  net::steady_timer timer(parent);
  if (limit) {
    timer.expires_after(*limit);
    timer.async_wait([state, executor, expired](boost::system::error_code error) {
      if (error) return;
      *expired = true;
      cancel(state, executor);
    });
  }
  auto on_end = [state](std::exception_ptr exception) {
    state->ended = true;
    state->exception = std::move(exception);
    state->end->wake();
  };
  net::co_spawn(executor, body(std::move(child)),
                net::bind_cancellation_slot(state->signal.slot(), std::move(on_end)));
  const auto end = co_await state->end->wait_to_the_end([state, executor] { cancel(state, executor); });
  timer.cancel();
  if (state->exception) std::rethrow_exception(state->exception);
  co_return end.has_value() && *expired;
}

}  // namespace reelway::async::detail
