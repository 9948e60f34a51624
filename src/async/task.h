#pragma once
// Task<T> is a lazy coroutine that ends with a Result<T>. It runs on the executor of whoever awaits it. Rules
// that keep it safe: one co_await per statement; await what you create where you create it (so references as
// parameters are safe); no capturing lambda coroutines; no lock across co_await; only spawn() (async/spawn.h)
// starts something that nobody awaits.

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "base/result.h"

namespace reelway::async {

namespace net = boost::asio;

template <class T>
using Task = net::awaitable<base::Result<T>>;

using Executor = net::any_io_executor;

}  // namespace reelway::async
