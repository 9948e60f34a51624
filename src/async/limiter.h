#pragma once
// A counted resource with a queue: at most `limit` units out at a time, first come first served. Safe for
// several threads.

#include <cstddef>
#include <memory>
#include <utility>

#include "async/task.h"
#include "base/clock.h"

namespace reelway::async {

struct LimiterState;

class Limiter {
 public:
  explicit Limiter(std::size_t limit);

  /// Gives its units back when destroyed; may outlive the limiter.
  class [[nodiscard]] Permit {
   public:
    Permit() = default;
    Permit(Permit&& other) noexcept
        : state_(std::move(other.state_)), units_(std::exchange(other.units_, 0)) {}
    Permit& operator=(Permit&& other) noexcept;
    ~Permit();

   private:
    friend class Limiter;
    friend struct LimiterState;
    Permit(std::shared_ptr<LimiterState> state, std::size_t units)
        : state_(std::move(state)), units_(units) {}
    std::shared_ptr<LimiterState> state_;
    std::size_t units_ = 0;
  };

  /// Waits up to `patience`; busy afterwards. invalid_argument for more units than there are; cancelled.
  Task<Permit> acquire(std::size_t units, base::Duration patience);
  std::size_t in_use() const;

 private:
  std::shared_ptr<LimiterState> state_;
};

}  // namespace reelway::async
