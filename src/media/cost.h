#pragma once
// What drive work costs, in seconds; pure and deterministic. The planner plans with it, the virtual library
// takes its time by it.
// `*_bytes` are positions on the data partition of a two-partition volume (bytes from its beginning).

#include <cstdint>

#include "media/geometry.h"
#include "media/personality.h"

namespace reelway::media {

double locate_s(const Personality& personality, const HeadPosition& from, const HeadPosition& to);
/// 0 when `to` is `from`: what comes next needs no locate.
double locate_s(const Personality& personality, std::uint64_t from_bytes, std::uint64_t to_bytes);

/// Streaming `bytes` at the nominal rate from `from_bytes` on, the turns at wrap ends included.
double transfer_s(const Personality& personality, std::uint64_t from_bytes, std::uint64_t bytes);
/// The same on average over positions.
double read_s(const Personality& personality, std::uint64_t bytes);

double rewind_s(const Personality& personality, const HeadPosition& from);
double load_s(const Personality& personality);
/// Rewind included; `moved_bytes`: read and written since the load (LTO-9 conditions the tape after real
/// use).
double unload_s(const Personality& personality, const HeadPosition& from, std::uint64_t moved_bytes);
double robot_move_s(const Personality& personality);

}  // namespace reelway::media
