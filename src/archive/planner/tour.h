#pragma once
// The order in which extents of one volume are read. Adjacent extents (and such whose gap costs less to read
// through than to locate over) are joined to runs; runs are ordered by shortest locate first and Or-opt;
// block order is kept when it is no worse. So a tour never costs more than block order does. Deterministic:
// ties go to the smaller block. (Hillyer & Silberschatz 1996: SLTF; docs/architecture.md part 5.)

#include <cstdint>
#include <span>
#include <vector>

#include "archive/planner/costs.h"

namespace reelway::archive::planner {

/// Blocks [first_block, end_block) of the data partition; `bytes` is what is read of them.
struct Extent {
  std::uint64_t first_block = 0;
  std::uint64_t end_block = 0;
  std::uint64_t bytes = 0;
};

struct Tour {
  std::vector<std::uint32_t> order;  ///< indices into the extents, each once
  double seconds = 0;                ///< locates, reads and gaps read through
};

Tour plan_tour(std::uint64_t head_block, std::span<const Extent> extents, const Costs& costs);
/// Sorted by first block.
Tour block_order(std::uint64_t head_block, std::span<const Extent> extents, const Costs& costs);
/// What reading in the given order costs; a gap ahead is read through where that is cheaper.
double order_cost(std::uint64_t head_block, std::span<const Extent> extents,
                  std::span<const std::uint32_t> order, const Costs& costs);

}  // namespace reelway::archive::planner
