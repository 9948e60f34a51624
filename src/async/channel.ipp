#pragma once

#include "async/wait_list.h"

namespace reelway::async {

template <class T>
struct Channel<T>::State {
  std::mutex mutex;
  std::size_t capacity = 0;
  bool closed = false;
  std::deque<T> values;
  WaitList senders;
  WaitList receivers;
};

template <class T>
Task<void> Channel<T>::send(T value) {
  const auto state = state_;  // the channel may go while we wait
  for (;;) {
    std::shared_ptr<Waiter> waiter;
    {
      const std::lock_guard lock(state->mutex);
      if (state->closed) co_return base::fail(base::Code::closed, "the channel is closed");
      if (state->values.size() < state->capacity) {
        state->values.push_back(std::move(value));
        state->receivers.wake_one();
        co_return base::Result<void>{};
      }
      waiter = state->senders.add();
    }
    const base::Result<void> woken = co_await waiter->wait();
    if (!woken.has_value()) {
      const std::lock_guard lock(state->mutex);
      state->senders.abandon(waiter);
      co_return woken.error();
    }
  }
}

template <class T>
Task<T> Channel<T>::receive() {
  const auto state = state_;
  for (;;) {
    std::shared_ptr<Waiter> waiter;
    {
      const std::lock_guard lock(state->mutex);
      if (!state->values.empty()) {
        base::Result<T> value(std::move(state->values.front()));
        state->values.pop_front();
        state->senders.wake_one();
        co_return value;
      }
      if (state->closed) co_return base::fail(base::Code::closed, "the channel is closed");
      waiter = state->receivers.add();
    }
    const base::Result<void> woken = co_await waiter->wait();
    if (!woken.has_value()) {
      const std::lock_guard lock(state->mutex);
      state->receivers.abandon(waiter);
      co_return woken.error();
    }
  }
}

template <class T>
void Channel<T>::close() {
  const std::lock_guard lock(state_->mutex);
  state_->closed = true;
  state_->senders.wake_all();
  state_->receivers.wake_all();
}

}  // namespace reelway::async
