#include "obs/meter.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <variant>

namespace reelway::obs {

namespace {

using Labels = std::map<std::string, std::string>;
using Series = std::variant<std::monostate, prometheus::Counter*, prometheus::Gauge*, prometheus::Histogram*>;

struct ParsedName {
  std::string family;
  Labels labels;
};

/// `name` or `name{a="b",c="d"}`; values with \\, \" and \n as in the exposition format.
std::optional<ParsedName> parse_name(std::string_view text) {
  ParsedName parsed;
  const std::size_t brace = text.find('{');
  parsed.family = text.substr(0, brace);
  if (brace == std::string_view::npos) return parsed;
  text.remove_prefix(brace + 1);
  for (;;) {
    const std::size_t equals = text.find("=\"");
    if (equals == std::string_view::npos || equals == 0) return std::nullopt;
    std::string& value = parsed.labels[std::string(text.substr(0, equals))];
    text.remove_prefix(equals + 2);
    while (!text.empty() && text.front() != '"') {
      const bool escaped = text.front() == '\\' && text.size() > 1;
      if (escaped) text.remove_prefix(1);
      value += escaped && text.front() == 'n' ? '\n' : text.front();
      text.remove_prefix(1);
    }
    if (text.size() < 2) return std::nullopt;
    const char next = text[1];
    text.remove_prefix(2);
    if (next == '}' && text.empty()) return parsed;
    if (next != ',') return std::nullopt;
  }
}

const prometheus::Histogram::BucketBoundaries& buckets() {
  static const prometheus::Histogram::BucketBoundaries kBuckets{
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100};
  return kBuckets;
}

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

}  // namespace

struct PrometheusMeter::State {
  mutable std::mutex mutex;
  std::size_t series_max = 0;
  prometheus::Registry registry{prometheus::Registry::InsertBehavior::Merge};
  std::unordered_map<std::string, Series, TextHash, std::equal_to<>> series;
  std::unordered_map<std::string, std::string> help;
  prometheus::Counter& dropped = prometheus::BuildCounter()
                                     .Name("reelway_meter_dropped_total")
                                     .Help("Values whose name was malformed or over the limit of series")
                                     .Register(registry)
                                     .Add({});

  template <class Metric, class Make>
  Metric* find(std::string_view name, Make make) {
    const std::lock_guard lock(mutex);
    auto it = series.find(name);
    if (it == series.end()) {
      if (series.size() >= series_max) return nullptr;
      it = series.emplace(name, Series()).first;
      if (const auto parsed = parse_name(name)) {
        // The library refuses bad names, and a name of another kind, by exceptions; such a series stays
        // empty.
        try {
          it->second = make(*parsed);
        } catch (const std::exception&) {
          it->second = std::monostate();
        }
      }
    }
    Metric** metric = std::get_if<Metric*>(&it->second);
    return metric == nullptr ? nullptr : *metric;
  }
  std::string help_of(const std::string& family) const {
    const auto it = help.find(family);
    return it == help.end() ? std::string() : it->second;
  }
};

PrometheusMeter::PrometheusMeter(std::size_t series_max) : state_(std::make_unique<State>()) {
  state_->series_max = series_max;
}
PrometheusMeter::~PrometheusMeter() = default;

void PrometheusMeter::describe(std::string name, std::string help) {
  const std::lock_guard lock(state_->mutex);
  state_->help.insert_or_assign(std::move(name), std::move(help));
}

void PrometheusMeter::count(std::string_view name, double by) {
  auto* counter = state_->find<prometheus::Counter>(name, [&](const ParsedName& parsed) {
    return &prometheus::BuildCounter()
                .Name(parsed.family)
                .Help(state_->help_of(parsed.family))
                .Register(state_->registry)
                .Add(parsed.labels);
  });
  if (counter != nullptr) {
    counter->Increment(by);
  } else {
    state_->dropped.Increment();
  }
}

void PrometheusMeter::gauge(std::string_view name, double value) {
  auto* gauge = state_->find<prometheus::Gauge>(name, [&](const ParsedName& parsed) {
    return &prometheus::BuildGauge()
                .Name(parsed.family)
                .Help(state_->help_of(parsed.family))
                .Register(state_->registry)
                .Add(parsed.labels);
  });
  if (gauge != nullptr) {
    gauge->Set(value);
  } else {
    state_->dropped.Increment();
  }
}

void PrometheusMeter::observe(std::string_view name, double value) {
  auto* histogram = state_->find<prometheus::Histogram>(name, [&](const ParsedName& parsed) {
    return &prometheus::BuildHistogram()
                .Name(parsed.family)
                .Help(state_->help_of(parsed.family))
                .Register(state_->registry)
                .Add(parsed.labels, buckets());
  });
  if (histogram != nullptr) {
    histogram->Observe(value);
  } else {
    state_->dropped.Increment();
  }
}

std::string PrometheusMeter::expose() const {
  return prometheus::TextSerializer().Serialize(state_->registry.Collect());
}

}  // namespace reelway::obs
