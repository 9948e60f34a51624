#include "config/units.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/encoding.h"
#include "base/http_head.h"

namespace reelway::config {

namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Largest first, for formatting.
constexpr std::array kByteUnits{Unit{"TiB", 1ULL << 40},
                                Unit{"GiB", 1ULL << 30},
                                Unit{"MiB", 1ULL << 20},
                                Unit{"KiB", 1ULL << 10},
                                Unit{"TB", 1'000'000'000'000ULL},
                                Unit{"GB", 1'000'000'000},
                                Unit{"MB", 1'000'000},
                                Unit{"kB", 1000},
                                Unit{"B", 1}};
constexpr std::array kTimeUnits{
    Unit{"d", 86'400'000'000'000ULL}, Unit{"h", 3'600'000'000'000ULL}, Unit{"m", 60'000'000'000ULL},
    Unit{"s", 1'000'000'000ULL},      Unit{"ms", 1'000'000},           Unit{"us", 1000}};

struct Amount {
  std::uint64_t number = 0;
  std::string_view unit;
};

base::Result<Amount> split(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  TRY(const std::uint64_t number, base::parse_decimal(text.substr(0, digits)));
  const std::string_view unit = text.substr(std::min(text.find_first_not_of(' ', digits), text.size()));
  return Amount{number, unit};
}

base::Error bad(std::string_view text, std::string_view wanted) {
  return base::fail(base::Code::invalid_argument,
                    "\"" + std::string(text) + "\" is not " + std::string(wanted));
}

/// `limit` is what the result must not exceed.
base::Result<std::uint64_t> apply(const Amount& amount, std::span<const Unit> units, std::uint64_t limit,
                                  const base::Error& error) {
  const auto unit = std::ranges::find_if(
      units, [&](const Unit& u) { return base::equals_ignoring_case(u.name, amount.unit); });
  if (unit == units.end() || amount.number > limit / unit->factor) return error;
  return amount.number * unit->factor;
}

std::string format(std::uint64_t amount, std::span<const Unit> units) {
  std::string shortest;
  for (const Unit& unit : units) {
    if (amount % unit.factor != 0) continue;
    std::string text = std::to_string(amount / unit.factor) + std::string(unit.name);
    if (shortest.empty() || text.size() < shortest.size()) shortest = std::move(text);
  }
  return shortest;
}

}  // namespace

base::Result<std::uint64_t> parse_bytes(std::string_view text) {
  const base::Error error = bad(text, "an amount of bytes such as 512, 64KiB or 10GB");
  const auto amount = split(text);
  if (!amount.has_value()) return error;
  if (amount->unit.empty()) return amount->number;
  return apply(*amount, kByteUnits, std::numeric_limits<std::uint64_t>::max(), error);
}

base::Result<base::Duration> parse_duration(std::string_view text) {
  const base::Error error = bad(text, "a duration such as 250ms, 30s, 5m, 2h or 1d");
  const auto amount = split(text);
  if (!amount.has_value()) return error;
  if (amount->unit.empty() && amount->number == 0) return base::Duration::zero();
  TRY(const std::uint64_t count,
      apply(*amount, kTimeUnits, static_cast<std::uint64_t>(base::Duration::max().count()), error));
  return base::Duration(static_cast<base::Duration::rep>(count));
}

std::string format_bytes(std::uint64_t bytes) {
  return bytes == 0 ? "0" : format(bytes, std::span(kByteUnits));
}

std::string format_duration(base::Duration duration) {
  const auto count = static_cast<std::uint64_t>(std::max(duration, base::Duration::zero()).count());
  // Nothing that an option sets is finer than a microsecond.
  return count == 0 ? "0" : format(count / 1000 * 1000, std::span(kTimeUnits));
}

}  // namespace reelway::config
