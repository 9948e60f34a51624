#pragma once
// What rooms need to say, without knowing who listens. obs/ implements both; the null versions are the
// default. No key, secret, token or rkey may ever be an argument.

#include <cstdint>
#include <string_view>

namespace reelway::base {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

class Log {
 public:
  virtual ~Log() = default;
  virtual void write(LogLevel level, std::string_view room, std::string_view message) = 0;
};

/// Counters, gauges and histograms by name; labels are part of the name as in Prometheus:
/// `reelway_puts_total{plane="http"}`.
class Meter {
 public:
  virtual ~Meter() = default;
  virtual void count(std::string_view name, double by = 1) = 0;
  virtual void gauge(std::string_view name, double value) = 0;
  virtual void observe(std::string_view name, double value) = 0;
};

Log& null_log();
Meter& null_meter();

}  // namespace reelway::base
