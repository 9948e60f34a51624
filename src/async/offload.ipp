#pragma once

#include <exception>
#include <optional>

#include "async/waiter.h"

namespace reelway::async {

namespace detail {
base::Error pool_is_full(const BlockingPool& pool);
}

template <class F>
auto offload(BlockingPool& pool, F function) -> net::awaitable<decltype(function())> {
  std::optional<decltype(function())> result;
  std::exception_ptr exception;
  const auto end = std::make_shared<Waiter>();
  // The references are good: this frame waits for the call's end.
  const bool accepted = pool.post([&result, &exception, &function, end] {
    try {
      result.emplace(function());
    } catch (...) {
      exception = std::current_exception();
    }
    end->wake();
  });
  if (!accepted) co_return detail::pool_is_full(pool);
  const auto ended = co_await end->wait_to_the_end();
  if (exception) std::rethrow_exception(exception);
  if (!ended.has_value()) co_return ended.error();
  co_return std::move(*result);
}

}  // namespace reelway::async
