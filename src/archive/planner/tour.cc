#include "archive/planner/tour.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace reelway::archive::planner {
namespace {

constexpr std::size_t kShortestFirstMax = 2048;  ///< runs; the search is quadratic
constexpr std::size_t kOrOptMax = 256;           ///< runs; each pass is cubic at worst
constexpr int kOrOptPasses = 4;
constexpr std::size_t kOrOptSegmentMax = 3;

/// From a head to an extent. The block before the head is still in the reader's hand: bundle members share
/// blocks at their borders.
double transition_s(std::uint64_t head, std::uint64_t first, const Costs& costs) {
  if (first == head || first + 1 == head) return 0;
  const double locate = costs.locate_s(head, first);
  if (first < head) return locate;
  return std::min(locate, costs.read_s((first - head) * costs.block_bytes()));
}

/// Extents read one after the other without a locate.
struct Run {
  std::size_t begin = 0;  ///< in the sorted order
  std::size_t end = 0;
  std::uint64_t first_block = 0;
  std::uint64_t end_block = 0;
};

std::vector<std::uint32_t> sorted_order(std::span<const Extent> extents) {
  std::vector<std::uint32_t> order(extents.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(extents[a].first_block, extents[a].end_block, a) <
           std::tuple(extents[b].first_block, extents[b].end_block, b);
  });
  return order;
}

std::vector<Run> make_runs(std::span<const Extent> extents, std::span<const std::uint32_t> sorted,
                           const Costs& costs) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const Extent& extent = extents[sorted[i]];
    if (!runs.empty()) {
      Run& last = runs.back();
      const bool overlaps = extent.first_block <= last.end_block;
      const auto gap = overlaps ? 0 : (extent.first_block - last.end_block) * costs.block_bytes();
      if (overlaps || costs.read_s(gap) <= costs.locate_s(last.end_block, extent.first_block)) {
        last.end = i + 1;
        last.end_block = std::max(last.end_block, extent.end_block);
        continue;
      }
    }
    runs.push_back({i, i + 1, extent.first_block, extent.end_block});
  }
  return runs;
}

std::vector<std::size_t> shortest_first(std::uint64_t head, std::span<const Run> runs, const Costs& costs) {
  std::vector<std::size_t> rest(runs.size());
  std::iota(rest.begin(), rest.end(), std::size_t{0});
  std::vector<std::size_t> order;
  order.reserve(runs.size());
  while (!rest.empty()) {
    auto best = rest.begin();
    double best_cost = std::numeric_limits<double>::infinity();
    for (auto at = rest.begin(); at != rest.end(); ++at) {
      const double cost = transition_s(head, runs[*at].first_block, costs);
      if (cost < best_cost) {
        best_cost = cost;
        best = at;
      }
    }
    head = runs[*best].end_block;
    order.push_back(*best);
    rest.erase(best);
  }
  return order;
}

double runs_cost(std::uint64_t head, std::span<const Run> runs, std::span<const std::size_t> order,
                 const Costs& costs) {
  double seconds = 0;
  for (const std::size_t at : order) {
    seconds += transition_s(head, runs[at].first_block, costs);
    head = runs[at].end_block;
  }
  return seconds;
}

/// Moves segments of up to three runs to where they cost less, until a pass gains nothing.
void or_opt(std::uint64_t head, std::span<const Run> runs, std::vector<std::size_t>& order,
            const Costs& costs) {
  const auto start_of = [&](std::size_t at) { return runs[order[at]].first_block; };
  const auto end_of = [&](std::size_t at) {
    return at == 0 ? head : runs[order[at - 1]].end_block;
  };  // head before position `at`
  const std::size_t n = order.size();
  for (int pass = 0; pass < kOrOptPasses; ++pass) {
    bool gained = false;
    for (std::size_t length = 1; length <= kOrOptSegmentMax && length < n; ++length) {
      for (std::size_t from = 0; from + length <= n; ++from) {
        const double removed = transition_s(end_of(from), start_of(from), costs) +
                               (from + length < n ? transition_s(runs[order[from + length - 1]].end_block,
                                                                 start_of(from + length), costs)
                                                  : 0);
        const double closed =
            from + length < n ? transition_s(end_of(from), start_of(from + length), costs) : 0;
        double best_gain = 1e-9;
        std::size_t best_to = from;
        for (std::size_t to = 0; to <= n; ++to) {
          if (to >= from && to <= from + length) continue;
          const double old = to < n ? transition_s(end_of(to), start_of(to), costs) : 0;
          const double fresh =
              transition_s(end_of(to), start_of(from), costs) +
              (to < n ? transition_s(runs[order[from + length - 1]].end_block, start_of(to), costs) : 0);
          const double gain = removed - closed + old - fresh;
          if (gain > best_gain) {
            best_gain = gain;
            best_to = to;
          }
        }
        if (best_to == from) continue;
        const auto first = order.begin() + static_cast<std::ptrdiff_t>(from);
        const auto last = first + static_cast<std::ptrdiff_t>(length);
        const auto target = order.begin() + static_cast<std::ptrdiff_t>(best_to);
        if (best_to > from)
          std::rotate(first, last, target);
        else
          std::rotate(target, first, last);
        gained = true;
      }
    }
    if (!gained) return;
  }
}

}  // namespace

double order_cost(std::uint64_t head_block, std::span<const Extent> extents,
                  std::span<const std::uint32_t> order, const Costs& costs) {
  double seconds = 0;
  std::uint64_t head = head_block;
  for (const std::uint32_t at : order) {
    const Extent& extent = extents[at];
    // Inside what was just read (members of one block): the head does not go back.
    if (extent.first_block < head && extent.end_block <= head && extent.first_block + 1 >= head) {
      seconds += costs.read_s(extent.bytes);
      continue;
    }
    seconds += transition_s(head, extent.first_block, costs) + costs.read_s(extent.bytes);
    head = extent.end_block;
  }
  return seconds;
}

Tour block_order(std::uint64_t head_block, std::span<const Extent> extents, const Costs& costs) {
  Tour tour{.order = sorted_order(extents), .seconds = 0};
  tour.seconds = order_cost(head_block, extents, tour.order, costs);
  return tour;
}

Tour plan_tour(std::uint64_t head_block, std::span<const Extent> extents, const Costs& costs) {
  Tour plain = block_order(head_block, extents, costs);
  const std::vector<Run> runs = make_runs(extents, plain.order, costs);
  if (runs.size() < 2 || runs.size() > kShortestFirstMax) return plain;
  std::vector<std::size_t> run_order = shortest_first(head_block, runs, costs);
  if (runs.size() <= kOrOptMax) {
    // The search also starts from block order, which is the better start when runs are long.
    std::vector<std::size_t> other(runs.size());
    std::iota(other.begin(), other.end(), std::size_t{0});
    or_opt(head_block, runs, run_order, costs);
    or_opt(head_block, runs, other, costs);
    if (runs_cost(head_block, runs, other, costs) < runs_cost(head_block, runs, run_order, costs))
      run_order = std::move(other);
  }
  Tour tour;
  tour.order.reserve(extents.size());
  for (const std::size_t at : run_order) {
    for (std::size_t i = runs[at].begin; i < runs[at].end; ++i) tour.order.push_back(plain.order[i]);
  }
  tour.seconds = order_cost(head_block, extents, tour.order, costs);
  return tour.seconds < plain.seconds ? tour : plain;
}

}  // namespace reelway::archive::planner
