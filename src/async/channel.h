#pragma once
// A bounded queue between coroutines. send waits while it is full, receive while it is empty; closed at the
// end. Safe for several threads; waiters go on on their own executors, in the order in which they came.

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

#include "async/task.h"

namespace reelway::async {

class Waiter;

template <class T>
class Channel {
 public:
  explicit Channel(std::size_t capacity) : state_(std::make_shared<State>()) { state_->capacity = capacity; }
  /// closed when the channel was closed; cancelled. The value is lost then.
  Task<void> send(T value);
  /// closed once the channel is closed and empty; cancelled.
  Task<T> receive();
  void close();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace reelway::async

#include "async/channel.ipp"
