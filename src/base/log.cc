#include "base/log.h"

namespace reelway::base {

Log& null_log() {
  struct NullLog final : Log {
    void write(LogLevel, std::string_view, std::string_view) override {}
  };
  static NullLog log;
  return log;
}

Meter& null_meter() {
  struct NullMeter final : Meter {
    void count(std::string_view, double) override {}
    void gauge(std::string_view, double) override {}
    void observe(std::string_view, double) override {}
  };
  static NullMeter meter;
  return meter;
}

}  // namespace reelway::base
