#pragma once
// Time always comes from a Clock that was handed in, so that tests and simulations own it. `now` is UTC for
// people and records; `steady_now` never jumps and is what deadlines and durations use.

#include <chrono>
#include <mutex>
#include <string>

namespace reelway::base {

using TimePoint = std::chrono::sys_time<std::chrono::nanoseconds>;
using Duration = std::chrono::nanoseconds;
using SteadyPoint = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
  virtual SteadyPoint steady_now() const = 0;
};

class SystemClock final : public Clock {
 public:
  TimePoint now() const override;
  SteadyPoint steady_now() const override;
};

/// Stands still until advanced. Safe for use by several threads. Sleepers on it live in async/timer.h.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(TimePoint start = TimePoint{std::chrono::seconds{1'700'000'000}}) : now_(start) {}
  TimePoint now() const override;
  SteadyPoint steady_now() const override;
  void advance(Duration by);

 private:
  mutable std::mutex mutex_;
  TimePoint now_;
  Duration elapsed_{0};
};

/// "2026-11-30T16:43:45.123Z" (S3 XML), "Mon, 30 Nov 2026 16:43:45 GMT" (HTTP), "20261130T164345Z" (SigV4),
/// "2026-11-30T16:43:45.123456789Z" (LTFS 2.4, section 7.2).
std::string to_iso8601(TimePoint time);
std::string to_http_date(TimePoint time);
std::string to_basic_iso8601(TimePoint time);
std::string to_ltfs_time(TimePoint time);

}  // namespace reelway::base
