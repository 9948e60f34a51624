#include "media/cost.h"

#include <algorithm>
#include <cmath>

namespace reelway::media {
namespace {

constexpr double kBytesPerMb = 1e6;
constexpr std::uint64_t kLightUseBytes = 5'000'000'000;
constexpr std::uint64_t kMediumUseBytes = 50'000'000'000;

}  // namespace

double locate_s(const Personality& personality, const HeadPosition& from, const HeadPosition& to) {
  if (from == to) return 0;
  const LocateCost& cost = personality.locate;
  const std::uint32_t band_wraps = personality.wrap_count / personality.band_count;
  const double half = personality.length_m / 2;
  const bool forward = from.wrap % 2 == 0;
  const double distance = to.metres - from.metres;
  double seconds = cost.fixed_s + std::abs(distance) / cost.speed_m_per_s;
  if (from.wrap != to.wrap) seconds += cost.wrap_change_s;
  if (from.wrap / band_wraps != to.wrap / band_wraps) seconds += cost.band_change_s;
  if ((from.metres < half) != (to.metres < half)) seconds += cost.other_half_s;
  if (from.wrap % 2 != to.wrap % 2) seconds += cost.direction_change_s;
  if (from.wrap == to.wrap && forward != (distance > 0)) seconds += cost.step_back_s;
  return std::max(seconds, cost.least_s);
}

double locate_s(const Personality& personality, std::uint64_t from_bytes, std::uint64_t to_bytes) {
  if (from_bytes == to_bytes) return 0;
  return locate_s(personality, data_position(personality, from_bytes), data_position(personality, to_bytes));
}

double transfer_s(const Personality& personality, std::uint64_t from_bytes, std::uint64_t bytes) {
  const std::uint64_t per_wrap = personality.bytes_per_wrap();
  const std::uint64_t turns = (from_bytes + bytes) / per_wrap - from_bytes / per_wrap;
  return static_cast<double>(bytes) / (personality.nominal_mb_per_s * kBytesPerMb) +
         static_cast<double>(turns) * personality.wrap_turn_s;
}

double read_s(const Personality& personality, std::uint64_t bytes) {
  const double turns = static_cast<double>(bytes) / static_cast<double>(personality.bytes_per_wrap());
  return static_cast<double>(bytes) / (personality.nominal_mb_per_s * kBytesPerMb) +
         turns * personality.wrap_turn_s;
}

double rewind_s(const Personality& personality, const HeadPosition& from) {
  if (from.wrap == 0 && from.metres == 0) return 0;
  return personality.rewind_fixed_s + from.metres / personality.rewind_m_per_s;
}

double load_s(const Personality& personality) { return personality.load_s; }

double unload_s(const Personality& personality, const HeadPosition& from, std::uint64_t moved_bytes) {
  double passes = 0;
  if (personality.conditions_on_unload && moved_bytes >= kLightUseBytes) {
    const double average_rewind_s =
        personality.rewind_fixed_s + personality.length_m / 2 / personality.rewind_m_per_s;
    passes = (moved_bytes <= kMediumUseBytes ? 1 : 2) * average_rewind_s;
  }
  return rewind_s(personality, from) + passes + personality.unload_s;
}

double robot_move_s(const Personality& personality) { return personality.robot_move_s; }

}  // namespace reelway::media
