#pragma once
// A bounded queue between coroutines. send waits while it is full, receive while it is empty; closed at the end. Safe for several threads.

#include <cstddef>
#include <memory>
#include <optional>

#include "async/task.h"

namespace reelway::async {

template <class T>
class Channel {
 public:
  Channel(Executor executor, std::size_t capacity);
  ~Channel();
  /// closed when the channel was closed.
  Task<void> send(T value);
  /// closed once the channel is closed and empty.
  Task<T> receive();
  void close();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// A counted resource with a queue: at most `limit` units out at a time, first come first served.
class Limiter {
 public:
  Limiter(Executor executor, std::size_t limit);
  ~Limiter();
  class [[nodiscard]] Permit;
  /// Waits up to `patience`; busy afterwards.
  Task<Permit> acquire(std::size_t units, base::Duration patience);
  std::size_t in_use() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace reelway::async
