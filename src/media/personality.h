#pragma once
// What one drive and cartridge generation is like: capacity, shape of the tape, speeds and fixed times.
// Values of the vendors' manuals for full-height drives (IBM TS2290 and TS4300 documentation), the locate
// coefficients of CERN's fit (CTA) with the search speed set so that the average locate from the beginning of
// tape is the manual's. Bytes are native (uncompressed), MB are 10^6, lengths metres, times seconds.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace reelway::media {

enum class Generation : std::uint8_t { lto8, lto9 };

/// Seconds; each flag term counts once where it applies between the two ends of a locate.
struct LocateCost {
  double fixed_s = 4.29;
  double wrap_change_s = 6.69;
  double band_change_s = 3.2;
  double other_half_s = -6.04;  ///< the target lies in the other half of the tape's length
  double direction_change_s = 5.22;
  double step_back_s = 11.32;  ///< same wrap, against its direction
  double speed_m_per_s = 9.2;
  double least_s = 1.0;
};

struct Personality {
  Generation generation;
  std::string_view name;            ///< "LTO-9"
  std::string_view barcode_suffix;  ///< "L9"
  std::uint8_t density_code;        ///< SSC density code
  std::uint8_t medium_type;         ///< mode parameter header
  std::uint64_t capacity_bytes;
  double length_m;
  std::uint32_t wrap_count;
  std::uint32_t band_count;
  std::span<const double> rate_steps_mb_per_s;  ///< fastest first; speed matching picks among them
  double nominal_mb_per_s;
  double wrap_turn_s;
  double load_s;    ///< insertion to ready, thread included
  double unload_s;  ///< from the beginning of tape
  double rewind_fixed_s;
  double rewind_m_per_s;
  bool conditions_on_unload;  ///< extra end-to-end passes after real use (LTO-9)
  double first_load_s;        ///< once per cartridge, median; 0: none
  LocateCost locate;
  double flush_s;       ///< a synchronising flush that stops the stream
  double back_hitch_s;  ///< the buffer ran empty
  std::uint64_t buffer_bytes;
  double robot_move_s;            ///< mean pick to place
  double early_warning_fraction;  ///< of a partition's capacity

  std::uint64_t bytes_per_wrap() const { return capacity_bytes / wrap_count; }
};

const Personality& personality(Generation generation);
inline const Personality& lto8() { return personality(Generation::lto8); }
inline const Personality& lto9() { return personality(Generation::lto9); }

/// By the last two characters of the barcode ("RW0001L9"); none for media that are not modelled.
std::optional<Generation> generation_of_barcode(std::string_view barcode);

}  // namespace reelway::media
