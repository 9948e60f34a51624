#pragma once
// A task that runs apart from whoever started it and may outlive it: the starter waits for its result as long
// as it likes, and may go away. For work that must come to its end although its client does not wait. Start
// and wait on the same executor.

#include <memory>
#include <optional>
#include <string>

#include "async/spawn.h"
#include "async/timer.h"
#include "async/waiter.h"

namespace reelway::async {

template <class T>
class Apart {
 public:
  static Apart start(Executor executor, Gate::Holder holder, std::string name, base::Log& log, Task<T> task) {
    Apart apart;
    spawn(std::move(executor), std::move(holder), std::move(name), log, run(std::move(task), apart.state_));
    return apart;
  }

  /// Returns when the result is there or `limit` has passed.
  Task<void> wait(base::Duration limit) {
    if (state_->result) co_return base::Result<void>{};
    const auto waiter = state_->waiter = std::make_shared<Waiter>();
    const auto waited = co_await with_deadline(waiter->wait(), limit);
    if (!waited && waited.error().code != base::Code::deadline_exceeded) co_return waited.error();
    co_return base::Result<void>{};
  }

  /// Absent while the task runs.
  const std::optional<base::Result<T>>& result() const { return state_->result; }

 private:
  struct State {
    std::optional<base::Result<T>> result;
    std::shared_ptr<Waiter> waiter;
  };

  static Task<void> run(Task<T> task, std::shared_ptr<State> state) {
    state->result.emplace(co_await std::move(task));
    if (state->waiter) state->waiter->wake();
    co_return base::Result<void>{};
  }

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace reelway::async
