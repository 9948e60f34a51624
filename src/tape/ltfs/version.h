#pragma once
// Versions of the LTFS format as labels and indexes carry them, and its form of time.

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace reelway::tape::ltfs {

/// 1.0.0 to 2.99.99, the range that LTFS 2.4 readers accept.
bool is_supported_version(std::string_view version);
/// At most 32 characters of it, what is not printable ASCII as '?'. For messages.
std::string printable(std::string_view text);
/// "2026-11-30T16:43:45.123456789Z"; times beyond what nanoseconds in 64 bits hold are moved to the nearest
/// that they do.
base::Result<base::TimePoint> parse_ltfs_time(std::string_view text);

}  // namespace reelway::tape::ltfs
