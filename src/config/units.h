#pragma once
// Amounts with units, as people write them in options: "4MiB", "10GB", "512" (bytes); "30s", "250ms", "2h".
// Whole numbers only.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace reelway::config {

/// B, KiB, MiB, GiB, TiB (powers of 1024), kB, MB, GB, TB (powers of 1000), in either case; no unit means
/// bytes.
base::Result<std::uint64_t> parse_bytes(std::string_view text);
/// us, ms, s, m, h, d; the unit must be there, except for 0.
base::Result<base::Duration> parse_duration(std::string_view text);

/// The shortest exact form that parses back.
std::string format_bytes(std::uint64_t bytes);
std::string format_duration(base::Duration duration);

}  // namespace reelway::config
