#include "archive/planner/planner.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

namespace reelway::archive::planner {
namespace {

/// What waits for one volume. `requests` names (request, copy) pairs; entries of requests that were taken
/// meanwhile are skipped when read.
struct Pending {
  std::vector<Stop> requests;
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t first_block = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t end_block = 0;
  double weight = 0;
  std::array<double, kRanks> rank_weight{};
  std::array<std::size_t, kRanks> rank_count{};
  double oldest_s = 0;
  std::optional<std::uint32_t> idle_drive;
  bool busy = false;
};

class Planning {
 public:
  Planning(const Input& input, const Costs& costs)
      : input_(input),
        costs_(costs),
        pending_(input.volumes.size()),
        taken_(input.requests.size()),
        used_(input.drives.size()) {}

  Plan run() {
    place_drives();
    collect();
    while (assign_one()) {
    }
    unload_idle();
    return std::move(plan_);
  }

 private:
  void place_drives() {
    for (std::uint32_t d = 0; d < input_.drives.size(); ++d) {
      const Drive& drive = input_.drives[d];
      if (!drive.volume || *drive.volume >= pending_.size()) continue;
      Pending& at = pending_[*drive.volume];
      if (drive.busy || !drive.usable)
        at.busy = true;
      else
        at.idle_drive = d;
    }
  }

  bool is_urgent(const Request& request) const { return request.age_s >= input_.limits.urgent_age_s; }

  /// A drive that recalls from one of its volumes now will take it along on its next tour.
  bool is_coming(const Request& request) const {
    return std::any_of(input_.drives.begin(), input_.drives.end(), [&](const Drive& drive) {
      return drive.usable && drive.busy && drive.reading && drive.volume &&
             std::any_of(request.copies.begin(), request.copies.end(),
                         [&](const Place& place) { return place.volume == *drive.volume; });
    });
  }

  bool is_usable(const Place& place) const {
    return place.volume < input_.volumes.size() && input_.volumes[place.volume].usable;
  }

  void collect() {
    for (std::uint32_t r = 0; r < input_.requests.size(); ++r) {
      const Request& request = input_.requests[r];
      if (!is_urgent(request) && is_coming(request)) continue;
      for (std::uint32_t c = 0; c < request.copies.size(); ++c) {
        const Place& place = request.copies[c];
        if (!is_usable(place) || pending_[place.volume].busy) continue;
        Pending& at = pending_[place.volume];
        at.requests.push_back({r, c});
        ++at.count;
        at.bytes += place.extent.bytes;
        at.first_block = std::min(at.first_block, place.extent.first_block);
        at.end_block = std::max(at.end_block, place.extent.end_block);
        at.weight += weight_of(request);
        at.rank_weight[request.rank] += weight_of(request);
        ++at.rank_count[request.rank];
        at.oldest_s = std::max(at.oldest_s, request.age_s);
      }
    }
  }

  double weight_of(const Request& request) const {
    return 1 + request.age_s / std::max(1.0, input_.limits.urgent_age_s);
  }

  bool is_ready(const Pending& at) const {
    return at.count > 0 && !at.busy && (at.idle_drive || at.oldest_s >= input_.limits.gather_s);
  }

  /// The empty one; else the one whose volume is wanted least, then the longest idle.
  std::optional<std::uint32_t> drive_for(const Pending& at) const {
    if (at.idle_drive) return used_[*at.idle_drive] ? std::nullopt : at.idle_drive;
    std::optional<std::uint32_t> best;
    const auto wanted = [&](std::uint32_t d) {
      const auto& volume = input_.drives[d].volume;
      return volume && *volume < pending_.size() ? pending_[*volume].weight : (volume ? 0.0 : -1.0);
    };
    for (std::uint32_t d = 0; d < input_.drives.size(); ++d) {
      if (input_.drives[d].busy || !input_.drives[d].usable || used_[d]) continue;
      if (!best || wanted(d) < wanted(*best) ||
          (wanted(d) == wanted(*best) && input_.drives[d].idle_s > input_.drives[*best].idle_s))
        best = d;
    }
    return best;
  }

  double change_s(std::uint32_t drive, std::uint32_t volume) const {
    const Drive& at = input_.drives[drive];
    if (at.volume == volume) return 0;
    return costs_of(volume).load_s() + (at.volume ? costs_of(*at.volume).unload_s(at.head_block) : 0);
  }

  const Costs& costs_of(std::uint32_t volume) const {
    const Costs* own = volume < input_.volumes.size() ? input_.volumes[volume].costs : nullptr;
    return own == nullptr ? costs_ : *own;
  }

  double seconds_for(std::uint32_t volume, std::uint32_t drive) const {
    const Pending& at = pending_[volume];
    const std::uint64_t gap = (at.end_block - at.first_block) / at.count;
    const Costs& costs = costs_of(volume);
    const double hop = gap == 0 ? 0
                                : std::min(costs.locate_s(at.first_block, at.first_block + gap),
                                           costs.read_s(gap * costs.block_bytes()));
    return 1 + change_s(drive, volume) + costs.read_s(at.bytes) + hop * static_cast<double>(at.count);
  }

  /// The request that may not wait any longer, if any.
  std::optional<std::uint32_t> most_urgent() const {
    std::optional<std::uint32_t> oldest;
    for (std::uint32_t r = 0; r < input_.requests.size(); ++r) {
      const Request& request = input_.requests[r];
      if (taken_[r] || !is_urgent(request) || (oldest && request.age_s <= input_.requests[*oldest].age_s))
        continue;
      const bool possible =
          std::any_of(request.copies.begin(), request.copies.end(), [&](const Place& place) {
            return is_usable(place) && is_ready(pending_[place.volume]) && drive_for(pending_[place.volume]);
          });
      if (possible) oldest = r;
    }
    return oldest;
  }

  bool assign_one() {
    const auto urgent = most_urgent();
    std::optional<std::uint32_t> best;
    std::uint32_t best_drive = 0;
    double best_score = 0;
    const auto consider = [&](std::uint32_t v, std::uint32_t rank) {
      const Pending& at = pending_[v];
      if (!is_ready(at) || at.rank_count[rank] == 0) return;
      const auto drive = drive_for(at);
      if (!drive) return;
      const double score = at.rank_weight[rank] / seconds_for(v, *drive);
      if (best && score <= best_score) return;
      best = v;
      best_drive = *drive;
      best_score = score;
    };
    if (urgent) {
      for (const Place& place : input_.requests[*urgent].copies) {
        if (is_usable(place)) consider(place.volume, input_.requests[*urgent].rank);
      }
    }
    for (std::uint32_t rank = 0; !urgent && !best && rank < kRanks; ++rank) {
      for (std::uint32_t v = 0; v < pending_.size(); ++v) consider(v, rank);
    }
    if (!best) return false;
    assign(*best, best_drive, urgent);
    return true;
  }

  void assign(std::uint32_t volume, std::uint32_t drive, std::optional<std::uint32_t> urgent) {
    const Drive& at = input_.drives[drive];
    std::vector<Stop> stops = open_stops(volume, urgent);
    Assignment made{.drive = drive, .volume = volume, .stops = {}, .seconds = change_s(drive, volume)};
    std::uint64_t head = at.volume == volume ? at.head_block : 0;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) head = add_rank(made, rank, stops, head);
    for (const Stop& stop : stops) take(stop.request);
    used_[drive] = true;
    pending_[volume].busy = true;
    // What is put away now can be loaded again at the next decision at the earliest.
    if (at.volume && *at.volume != volume && *at.volume < pending_.size()) pending_[*at.volume].busy = true;
    plan_.assignments.push_back(std::move(made));
  }

  const Extent& extent_of(const Stop& stop) const {
    return input_.requests[stop.request].copies[stop.copy].extent;
  }

  /// The stops of one rank in the best order from `head`; returns where the head stands then.
  std::uint64_t add_rank(Assignment& made, std::uint32_t rank, const std::vector<Stop>& all,
                         std::uint64_t head) const {
    std::vector<Stop> stops;
    std::vector<Extent> extents;
    for (const Stop& stop : all) {
      if (input_.requests[stop.request].rank != rank) continue;
      stops.push_back(stop);
      extents.push_back(extent_of(stop));
    }
    if (stops.empty()) return head;
    const Tour tour = plan_tour(head, extents, costs_of(made.volume));
    made.seconds += tour.seconds;
    for (const std::uint32_t i : tour.order) made.stops.push_back(stops[i]);
    return extents[tour.order.back()].end_block;
  }

  /// Each open request of the volume once (the first copy there), at most tour_max: those of the better
  /// ranks; or the urgent one and what follows it in block order.
  std::vector<Stop> open_stops(std::uint32_t volume, std::optional<std::uint32_t> urgent) const {
    std::vector<Stop> stops;
    for (const Stop& stop : pending_[volume].requests) {
      const bool seen = !stops.empty() && stops.back().request == stop.request;
      if (!taken_[stop.request] && !seen) stops.push_back(stop);
    }
    if (stops.size() <= input_.limits.tour_max) return stops;
    // Whatever is urgent goes by position; otherwise the better ranks come first.
    const auto place_of = [&](const Stop& stop) {
      const std::uint32_t rank = urgent ? 0 : input_.requests[stop.request].rank;
      return std::tuple(rank, extent_of(stop).first_block, stop.request);
    };
    std::sort(stops.begin(), stops.end(),
              [&](const Stop& a, const Stop& b) { return place_of(a) < place_of(b); });
    std::size_t from = 0;
    for (std::size_t i = 0; urgent && i < stops.size(); ++i) {
      if (stops[i].request == *urgent) from = std::min(i, stops.size() - input_.limits.tour_max);
    }
    const auto begin = stops.begin() + static_cast<std::ptrdiff_t>(from);
    return {begin, begin + static_cast<std::ptrdiff_t>(input_.limits.tour_max)};
  }

  void take(std::uint32_t request) {
    taken_[request] = true;
    const Request& taken = input_.requests[request];
    for (const Place& place : taken.copies) {
      if (!is_usable(place)) continue;
      Pending& at = pending_[place.volume];
      if (at.count == 0) continue;
      --at.count;
      at.bytes -= std::min(at.bytes, place.extent.bytes);
      at.weight -= weight_of(taken);
      at.rank_weight[taken.rank] -= weight_of(taken);
      --at.rank_count[taken.rank];
    }
  }

  void unload_idle() {
    const Limits& limits = input_.limits;
    std::optional<std::uint32_t> longest;
    std::size_t empty = 0;
    std::size_t usable = 0;
    for (std::uint32_t d = 0; d < input_.drives.size(); ++d) {
      const Drive& drive = input_.drives[d];
      if (!drive.usable) continue;
      ++usable;
      if (drive.busy || used_[d]) continue;
      if (!drive.volume)
        ++empty;
      else if (drive.idle_s >= limits.keep_loaded_s) {
        plan_.unload.push_back(d);
        ++empty;
      } else {
        look_again(limits.keep_loaded_s - drive.idle_s);
        if (!longest || drive.idle_s > input_.drives[*longest].idle_s) longest = d;
      }
    }
    if (empty == 0 && longest && usable > 1) {
      const double idle_s = input_.drives[*longest].idle_s;
      if (idle_s >= limits.spare_after_s)
        plan_.unload.push_back(*longest);
      else
        look_again(limits.spare_after_s - idle_s);
    }
    for (const Pending& at : pending_) {
      if (at.count > 0 && !at.busy && at.oldest_s < limits.gather_s)
        look_again(limits.gather_s - at.oldest_s);
    }
  }

  void look_again(double seconds) {
    plan_.look_again_s = std::min(plan_.look_again_s.value_or(seconds), seconds);
  }

  const Input& input_;
  const Costs& costs_;
  std::vector<Pending> pending_;
  std::vector<bool> taken_;
  std::vector<bool> used_;
  Plan plan_;
};

}  // namespace

Plan plan(const Input& input, const Costs& costs) { return Planning(input, costs).run(); }

}  // namespace reelway::archive::planner
