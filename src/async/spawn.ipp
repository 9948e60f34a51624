#pragma once

#include "async/child.h"

namespace reelway::async {

template <class T>
Task<T> run_on(Executor executor, Task<T> task) {
  std::optional<base::Result<T>> result;
  co_await detail::run_child(std::move(executor), detail::run_into(std::move(task), result), std::nullopt);
  co_return std::move(*result);
}

template <class T>
base::Result<T> run_until_done(Task<T> task) {
  std::optional<base::Result<T>> result;
  detail::run_alone(detail::run_into(std::move(task), result));
  return std::move(*result);
}

}  // namespace reelway::async
