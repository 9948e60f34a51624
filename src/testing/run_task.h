#pragma once
// Runs one task to its end on an io_context of its own. For tests of coroutines that need no more than that.

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <optional>

#include "async/task.h"

namespace reelway::testing {

template <class T>
base::Result<T> run_task(async::Task<T> task) {
  boost::asio::io_context context;
  std::optional<base::Result<T>> outcome;
  boost::asio::co_spawn(context, std::move(task), [&](std::exception_ptr failure, base::Result<T> result) {
    if (failure) std::rethrow_exception(failure);
    outcome.emplace(std::move(result));
  });
  context.run();
  return std::move(*outcome);
}

}  // namespace reelway::testing
