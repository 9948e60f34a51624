#pragma once
// What moving, loading, locating and reading cost, in seconds. The planner knows tapes only through this
// face, so that it runs on a drive's physics, on a scale model's, or on a table in a test. Blocks are logical
// block numbers of the data partition.

#include <cstdint>

namespace reelway::archive::planner {

class Costs {
 public:
  virtual ~Costs() = default;
  /// From behind `from_block` (the next block that would be read) to `to_block`; 0 when they are the same.
  virtual double locate_s(std::uint64_t from_block, std::uint64_t to_block) const = 0;
  virtual double read_s(std::uint64_t bytes) const = 0;
  /// Robot, load and thread; the head stands at block 0 afterwards.
  virtual double load_s() const = 0;
  /// Rewind from `from_block`, unload, robot.
  virtual double unload_s(std::uint64_t from_block) const = 0;
  virtual std::uint64_t block_bytes() const = 0;
};

}  // namespace reelway::archive::planner
