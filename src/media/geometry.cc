#include "media/geometry.h"

#include <algorithm>

namespace reelway::media {
namespace {

struct Wraps {
  std::uint32_t first;
  std::uint32_t count;
};

Wraps wraps_of(const Personality& personality, Layout layout, std::uint32_t partition) {
  if (layout == Layout::one_partition) return {0, personality.wrap_count};
  if (partition == 0) return {0, kIndexWraps};
  return {kIndexWraps + kGuardWraps, personality.wrap_count - kIndexWraps - kGuardWraps};
}

}  // namespace

HeadPosition position_of(const Personality& personality, Layout layout, std::uint32_t partition,
                         std::uint64_t bytes) {
  const Wraps wraps = wraps_of(personality, layout, partition);
  const std::uint64_t per_wrap = personality.bytes_per_wrap();
  const std::uint64_t turns = std::min<std::uint64_t>(bytes / per_wrap, wraps.count - 1);
  const std::uint64_t rest = std::min(bytes - turns * per_wrap, per_wrap);
  const auto wrap = wraps.first + static_cast<std::uint32_t>(turns);
  const double along = personality.length_m * static_cast<double>(rest) / static_cast<double>(per_wrap);
  return {.wrap = wrap, .metres = wrap % 2 == 0 ? along : personality.length_m - along};
}

std::uint64_t partition_capacity_bytes(const Personality& personality, Layout layout,
                                       std::uint32_t partition) {
  return wraps_of(personality, layout, partition).count * personality.bytes_per_wrap();
}

}  // namespace reelway::media
