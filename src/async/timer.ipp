#pragma once

#include <boost/asio/this_coro.hpp>

#include "async/child.h"

namespace reelway::async {

template <class T>
Task<T> with_deadline(Task<T> task, base::Duration limit) {
  std::optional<base::Result<T>> result;
  const Executor executor = co_await net::this_coro::executor;
  const bool expired = co_await detail::run_child(executor, detail::run_into(std::move(task), result), limit);
  if (expired) co_return base::fail(base::Code::deadline_exceeded, "it took too long");
  co_return std::move(*result);
}

}  // namespace reelway::async
