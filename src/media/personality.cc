#include "media/personality.h"

#include <array>

namespace reelway::media {
namespace {

constexpr std::array kLto9Steps{408.0, 385.0, 366.0, 347.0, 325.0, 305.0,
                                284.0, 263.0, 244.0, 223.0, 203.0, 177.0};
constexpr std::array kLto8Steps{365.0, 341.0, 318.0, 306.4, 273.0, 249.5,
                                226.0, 203.0, 180.0, 157.5, 135.0, 112.0};
constexpr std::uint64_t kBufferBytes = std::uint64_t{1} << 30;

constexpr Personality kLto8{.generation = Generation::lto8,
                            .name = "LTO-8",
                            .barcode_suffix = "L8",
                            .density_code = 0x5e,
                            .medium_type = 0x88,
                            .capacity_bytes = 12'000'000'000'000,
                            .length_m = 960,
                            .wrap_count = 208,
                            .band_count = 4,
                            .rate_steps_mb_per_s = kLto8Steps,
                            .nominal_mb_per_s = 360,
                            .wrap_turn_s = 1.5,
                            .load_s = 15,
                            .unload_s = 24,
                            .rewind_fixed_s = 6.8,
                            .rewind_m_per_s = 9.2,
                            .conditions_on_unload = false,
                            .first_load_s = 0,
                            .locate = {.speed_m_per_s = 10.44},
                            .flush_s = 2.5,
                            .back_hitch_s = 3,
                            .buffer_bytes = kBufferBytes,
                            .robot_move_s = 12,
                            .early_warning_fraction = 0.995};

constexpr Personality kLto9{.generation = Generation::lto9,
                            .name = "LTO-9",
                            .barcode_suffix = "L9",
                            .density_code = 0x60,
                            .medium_type = 0x98,
                            .capacity_bytes = 18'000'000'000'000,
                            .length_m = 1035,
                            .wrap_count = 280,
                            .band_count = 4,
                            .rate_steps_mb_per_s = kLto9Steps,
                            .nominal_mb_per_s = 400,
                            .wrap_turn_s = 1.5,
                            .load_s = 16,
                            .unload_s = 56,
                            .rewind_fixed_s = 5.75,
                            .rewind_m_per_s = 9.2,
                            .conditions_on_unload = true,
                            .first_load_s = 2400,
                            .locate = {.speed_m_per_s = 9.95},
                            .flush_s = 2.5,
                            .back_hitch_s = 3,
                            .buffer_bytes = kBufferBytes,
                            .robot_move_s = 12,
                            .early_warning_fraction = 0.995};

}  // namespace

const Personality& personality(Generation generation) {
  return generation == Generation::lto8 ? kLto8 : kLto9;
}

std::optional<Generation> generation_of_barcode(std::string_view barcode) {
  for (const Personality* each : {&kLto8, &kLto9}) {
    if (barcode.size() > 2 && barcode.ends_with(each->barcode_suffix)) return each->generation;
  }
  return std::nullopt;
}

}  // namespace reelway::media
