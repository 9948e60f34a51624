#include "async/offload.h"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace reelway::async {

struct BlockingPool::State {
  std::string name;
  std::size_t queue_max = 0;
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;
  std::deque<std::move_only_function<void()>> calls;
  std::vector<std::jthread> threads;

  void work() {
    for (;;) {
      std::move_only_function<void()> call;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return stopping || !calls.empty(); });
        if (calls.empty()) return;
        call = std::move(calls.front());
        calls.pop_front();
      }
      call();
    }
  }
};

BlockingPool::BlockingPool(std::string name, std::size_t thread_count, std::size_t queue_max)
    : state_(std::make_unique<State>()) {
  state_->name = std::move(name);
  state_->queue_max = queue_max;
  for (std::size_t i = 0; i < thread_count; ++i) {
    auto& thread = state_->threads.emplace_back([state = state_.get()] { state->work(); });
    // The kernel keeps 15 characters.
    pthread_setname_np(thread.native_handle(), state_->name.substr(0, 15).c_str());
  }
}

BlockingPool::~BlockingPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
}

bool BlockingPool::post(std::move_only_function<void()> call) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->calls.size() >= state_->queue_max) return false;
    state_->calls.push_back(std::move(call));
  }
  state_->changed.notify_one();
  return true;
}

const std::string& BlockingPool::name() const { return state_->name; }

namespace detail {

base::Error pool_is_full(const BlockingPool& pool) {
  return base::fail(base::Code::busy, "the queue of pool " + pool.name() + " is full", base::Scope::node,
                    base::Retry::later);
}

}  // namespace detail

}  // namespace reelway::async
