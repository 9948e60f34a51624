#pragma once
// Counters, gauges and histograms for Prometheus. Names may carry labels, as in the exposition:
// `reelway_puts_total{plane="http"}`. What a name means is said once by `describe`. A malformed name, and a
// series over the limit, is dropped and counted in reelway_meter_dropped_total. Safe for several threads.

#include <memory>
#include <string>
#include <string_view>

#include "base/log.h"

namespace reelway::obs {

class PrometheusMeter final : public base::Meter {
 public:
  explicit PrometheusMeter(std::size_t series_max = 10'000);
  ~PrometheusMeter() override;
  PrometheusMeter(const PrometheusMeter&) = delete;
  PrometheusMeter& operator=(const PrometheusMeter&) = delete;

  /// Before the name's first use; without labels.
  void describe(std::string name, std::string help);
  void count(std::string_view name, double by) override;
  void gauge(std::string_view name, double value) override;
  /// Into buckets from 1 ms to 100 s when the value is in seconds.
  void observe(std::string_view name, double value) override;
  /// The text exposition format, version 0.0.4.
  std::string expose() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reelway::obs
