#pragma once
// Which idle drive does what next for the recalls that wait: a pure, deterministic function of what is known
// now. It chooses the copy as late as possible (when a volume is about to be read, everything that it can
// serve goes along), weighs what a load gives against what it costs, lets nothing wait beyond `urgent_age_s`
// while others are served, and leaves one drive empty when nothing is to be done. It does no I/O and keeps no
// state.

#include <cstdint>
#include <optional>
#include <vector>

#include "archive/planner/costs.h"
#include "archive/planner/tour.h"

namespace reelway::archive::planner {

/// Where a copy lies. `volume` is an index into Input::volumes.
struct Place {
  std::uint32_t volume = 0;
  Extent extent;
};

inline constexpr std::uint32_t kRanks = 3;

struct Request {
  double age_s = 0;        ///< since asked for
  std::uint32_t rank = 1;  ///< under kRanks; smaller ones are served first
  std::vector<Place> copies;
};

struct Volume {
  bool usable = true;            ///< in the library, not failed, not held by somebody else
  const Costs* costs = nullptr;  ///< of its cartridge, where they are not the plan's; outlive the call
};

struct Drive {
  bool usable = true;
  bool busy = false;
  bool reading = false;  ///< busy with a recall: its volume will be free for more requests soon
  std::optional<std::uint32_t> volume;  ///< loaded
  std::uint64_t head_block = 0;
  double idle_s = 0;
};

struct Limits {
  double gather_s = 0;          ///< a request waits so long for company before a volume is loaded for it
  double urgent_age_s = 3600;   ///< older ones go first
  double keep_loaded_s = 120;   ///< an idle volume stays in its drive so long
  double spare_after_s = 10;    ///< when no drive is empty, the longest idle one is emptied after so long
  std::size_t tour_max = 4096;  ///< requests of one tour
};

struct Input {
  std::vector<Request> requests;
  std::vector<Volume> volumes;
  std::vector<Drive> drives;
  Limits limits;
};

struct Stop {
  std::uint32_t request = 0;  ///< index into Input::requests
  std::uint32_t copy = 0;     ///< index into its copies
};

struct Assignment {
  std::uint32_t drive = 0;
  std::uint32_t volume = 0;
  std::vector<Stop> stops;  ///< in the order to be read
  double seconds = 0;       ///< unload, load, tour
};

struct Plan {
  std::vector<Assignment> assignments;
  std::vector<std::uint32_t> unload;   ///< idle drives to be emptied
  std::optional<double> look_again_s;  ///< something becomes due then without any other event
};

/// `costs`: of volumes that have none of their own.
Plan plan(const Input& input, const Costs& costs);

}  // namespace reelway::archive::planner
