#include "archive/join.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

namespace reelway::archive {
namespace {

using net::experimental::awaitable_operators::operator&&;
using net::experimental::awaitable_operators::operator||;

net::awaitable<void> run_one(async::Task<void> task, base::Result<void>& result) {
  result = co_await std::move(task);
}

net::awaitable<void> run_from(std::vector<async::Task<void>>& tasks, std::vector<base::Result<void>>& results,
                              std::size_t first) {
  if (first + 1 == tasks.size()) {
    co_await run_one(std::move(tasks[first]), results[first]);
    co_return;
  }
  auto both = run_one(std::move(tasks[first]), results[first]) && run_from(tasks, results, first + 1);
  co_await std::move(both);
}

struct Lanes {
  std::size_t count;
  std::size_t next = 0;
  const std::function<net::awaitable<void>(std::size_t)>& work;
};

async::Task<void> lane(Lanes& lanes) {
  while (lanes.next < lanes.count) {
    const std::size_t at = lanes.next++;
    co_await lanes.work(at);
  }
  co_return base::Result<void>{};
}

net::awaitable<void> ignore(async::Task<void> task) {
  const base::Result<void> result = co_await std::move(task);
  (void)result;
}

}  // namespace

net::awaitable<std::vector<base::Result<void>>> join_all(std::vector<async::Task<void>> tasks) {
  std::vector<base::Result<void>> results(tasks.size());
  if (!tasks.empty()) co_await run_from(tasks, results, 0);
  co_return results;
}

net::awaitable<void> fan_out(std::size_t count, std::size_t width,
                             const std::function<net::awaitable<void>(std::size_t)>& work) {
  Lanes lanes{.count = count, .work = work};
  std::vector<async::Task<void>> tasks;
  for (std::size_t i = 0; i < std::min(width, count); ++i) tasks.push_back(lane(lanes));
  co_await join_all(std::move(tasks));
}

net::awaitable<void> wait_until(async::Timer& timer, std::shared_ptr<async::Waiter> waiter,
                                base::SteadyPoint until) {
  auto either = ignore(waiter->wait()) || ignore(timer.sleep_until(until));
  co_await std::move(either);
}

}  // namespace reelway::archive
