#pragma once
// A task that another coroutine starts apart from itself and waits for: the common part of run_on and
// with_deadline. The parent never returns before the child has ended, so references that the child holds stay
// good; cancelling the parent cancels the child.

#include <exception>
#include <memory>
#include <optional>

#include "async/task.h"
#include "base/clock.h"

namespace reelway::async::detail {

/// Runs `child` on `executor` until its end; cancels it after `limit`, if there is one. True when the limit
/// had passed before the end.
net::awaitable<bool> run_child(Executor executor, net::awaitable<void> child,
                               std::optional<base::Duration> limit);

template <class T>
net::awaitable<void> run_into(Task<T> task, std::optional<base::Result<T>>& result) {
  result.emplace(co_await std::move(task));
}

}  // namespace reelway::async::detail
