#pragma once
// Where bytes lie on the tape. Wraps run the whole length, even ones away from the beginning of tape, odd
// ones back. A volume of two partitions has partition 0 (the LTFS index) on wraps 0 and 1, two guard wraps,
// and partition 1 (data) from wrap 4 on. Positions follow the native density: a cartridge of scaled capacity
// just ends earlier.

#include <cstdint>

#include "media/personality.h"

namespace reelway::media {

inline constexpr std::uint32_t kIndexWraps = 2;
inline constexpr std::uint32_t kGuardWraps = 2;

struct HeadPosition {
  std::uint32_t wrap = 0;
  double metres = 0;  ///< from the beginning of tape
  friend bool operator==(const HeadPosition&, const HeadPosition&) = default;
};

enum class Layout : std::uint8_t { one_partition, two_partitions };

/// `bytes` from the beginning of the partition; positions past the last wrap are at its end.
HeadPosition position_of(const Personality& personality, Layout layout, std::uint32_t partition,
                         std::uint64_t bytes);

inline HeadPosition data_position(const Personality& personality, std::uint64_t bytes) {
  return position_of(personality, Layout::two_partitions, 1, bytes);
}

/// Of a partition at native capacity.
std::uint64_t partition_capacity_bytes(const Personality& personality, Layout layout,
                                       std::uint32_t partition);

}  // namespace reelway::media
