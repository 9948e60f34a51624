#pragma once
// Sleeping on an injected clock: on a SystemClock by an Asio timer; on a ManualClock until VirtualTimer moves
// it past the moment, so that hours of library time pass in no time and in a fixed order.

#include <memory>

#include "async/task.h"
#include "base/clock.h"

namespace reelway::async {

class Timer {
 public:
  virtual ~Timer() = default;
  virtual const base::Clock& clock() const = 0;
  /// Returns at or after `until`; cancelled when the awaiting coroutine is cancelled.
  virtual Task<void> sleep_until(base::SteadyPoint until) = 0;
  Task<void> sleep_for(base::Duration duration);
};

class SystemTimer final : public Timer {
 public:
  const base::Clock& clock() const override { return clock_; }
  Task<void> sleep_until(base::SteadyPoint until) override;

 private:
  base::SystemClock clock_;
};

/// Sleepers wake in order of time, then of arrival.
class VirtualTimer final : public Timer {
 public:
  explicit VirtualTimer(base::ManualClock& clock);
  ~VirtualTimer() override;
  const base::Clock& clock() const override { return clock_; }
  Task<void> sleep_until(base::SteadyPoint until) override;
  /// Advances the clock to the next sleeper's moment and wakes it; false when nobody sleeps.
  bool advance_to_next();
  /// Advances the clock by `duration` and wakes everybody whose moment came.
  void advance_by(base::Duration duration);
  std::size_t sleeper_count() const;

 private:
  struct State;
  base::ManualClock& clock_;
  std::shared_ptr<State> state_;
};

/// Awaits `task`; once `limit` has passed on the system's steady clock, cancels it and answers
/// deadline_exceeded when it has ended. It does end soon if all it waits for can be cancelled; an offloaded
/// call runs to its end first.
template <class T>
Task<T> with_deadline(Task<T> task, base::Duration limit);

}  // namespace reelway::async

#include "async/timer.ipp"
