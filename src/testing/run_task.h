#pragma once
// Runs one task to its end on an io_context of its own. For tests of coroutines that need no more than that.
// `must` and `error_of` look into results: one that is not as expected fails the test, not the test program.

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <optional>
#include <stdexcept>

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

template <class T>
T must(base::Result<T> result) {
  if (!result) throw std::runtime_error(base::to_string(result.error()));
  return std::move(*result);
}

template <class T>
base::Error error_of(const base::Result<T>& result) {
  if (result) throw std::runtime_error("a success where an error was expected");
  return result.error();
}

}  // namespace reelway::testing
