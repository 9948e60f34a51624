#include "archive/lto_costs.h"

#include "media/cost.h"

namespace reelway::archive {

double LtoCosts::locate_s(std::uint64_t from_block, std::uint64_t to_block) const {
  if (from_block == to_block) return 0;
  return media::locate_s(personality_, scaled(from_block * block_bytes_), scaled(to_block * block_bytes_));
}

double LtoCosts::read_s(std::uint64_t bytes) const { return media::read_s(personality_, scaled(bytes)); }

double LtoCosts::load_s() const { return media::robot_move_s(personality_) + media::load_s(personality_); }

double LtoCosts::unload_s(std::uint64_t from_block) const {
  const std::uint64_t position = scaled(from_block * block_bytes_);
  // What a drive has moved since the load is not known here; the position is the least of it.
  return media::unload_s(personality_, media::data_position(personality_, position), position) +
         media::robot_move_s(personality_);
}

}  // namespace reelway::archive
