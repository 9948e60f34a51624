#include "async/spawn.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace reelway::async {

namespace {

net::awaitable<void> run(Gate::Holder holder, std::string name, base::Log& log, Task<void> task) {
  co_await net::this_coro::throw_if_cancelled(false);
  {
    const base::Result<void> result = co_await std::move(task);
    const bool expected = result.has_value() || result.error().code == base::Code::cancelled ||
                          result.error().code == base::Code::closed;
    if (!expected) log.write(base::LogLevel::error, name, base::to_string(result.error()));
  }
  // Last: whoever closes the gate may take down what the task used.
  holder = Gate::Holder();
}

void die_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "a task ended by an exception: %s\n", e.what());
  } catch (...) {
    std::fprintf(stderr, "a task ended by an unknown exception\n");
  }
  std::abort();
}

}  // namespace

void spawn(Executor executor, Gate::Holder holder, std::string name, base::Log& log, Task<void> task) {
  net::co_spawn(executor, run(std::move(holder), std::move(name), log, std::move(task)),
                [](const std::exception_ptr& exception) {
                  if (exception) die_of(exception);
                });
}

namespace detail {

namespace {

net::awaitable<void> without_cancel_exceptions(net::awaitable<void> body) {
  co_await net::this_coro::throw_if_cancelled(false);
  co_await std::move(body);
}

}  // namespace

void run_alone(net::awaitable<void> body) {
  net::io_context context(1);
  std::exception_ptr exception;
  net::co_spawn(context, without_cancel_exceptions(std::move(body)), [&](std::exception_ptr e) {
    exception = std::move(e);
    // Timers of things kept for later (idle connections) must not hold us up.
    context.stop();
  });
  context.run();
  if (exception) std::rethrow_exception(exception);
}

}  // namespace detail

}  // namespace reelway::async
