#include "base/clock.h"

#include <fmt/format.h>

#include <array>

namespace reelway::base {

TimePoint SystemClock::now() const {
  return std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now());
}
SteadyPoint SystemClock::steady_now() const {
  return std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now());
}

TimePoint ManualClock::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}
SteadyPoint ManualClock::steady_now() const {
  const std::lock_guard lock(mutex_);
  return SteadyPoint{elapsed_};
}
void ManualClock::advance(Duration by) {
  const std::lock_guard lock(mutex_);
  now_ += by;
  elapsed_ += by;
}

namespace {

struct Calendar {
  int year;
  unsigned month, day, weekday;
  long hour, minute, second, nanosecond;
};

Calendar calendar_of(TimePoint time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{time - day};
  return {.year = static_cast<int>(date.year()),
          .month = static_cast<unsigned>(date.month()),
          .day = static_cast<unsigned>(date.day()),
          .weekday = std::chrono::weekday{day}.c_encoding(),
          .hour = clock.hours().count(),
          .minute = clock.minutes().count(),
          .second = clock.seconds().count(),
          .nanosecond = clock.subseconds().count()};
}

constexpr std::array kWeekdays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                             "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

}  // namespace

std::string to_iso8601(TimePoint time) {
  const Calendar c = calendar_of(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", c.year, c.month, c.day, c.hour, c.minute,
                     c.second, c.nanosecond / 1'000'000);
}

std::string to_http_date(TimePoint time) {
  const Calendar c = calendar_of(time);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kWeekdays[c.weekday], c.day,
                     kMonths[c.month - 1], c.year, c.hour, c.minute, c.second);
}

std::string to_basic_iso8601(TimePoint time) {
  const Calendar c = calendar_of(time);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", c.year, c.month, c.day, c.hour, c.minute, c.second);
}

std::string to_ltfs_time(TimePoint time) {
  const Calendar c = calendar_of(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", c.year, c.month, c.day, c.hour, c.minute,
                     c.second, c.nanosecond);
}

}  // namespace reelway::base
