// What a recall of a set of objects costs in drive time, four ways, each cartridge by its generation's model.
// Options::scale says what a byte on these cartridges stands for: on a scale model (a virtual library of
// small capacity) positions and lengths are multiplied alike, as if the same picture lay on full cartridges.
// One drive does all of it, one thing after the other, so the sums are drive seconds; overlap between drives
// does not change them.

#include <algorithm>
#include <numeric>

#include "archive/core.h"
#include "archive/lto_costs.h"

namespace reelway::archive {

using base::Result;

namespace {

struct Stand {
  std::optional<std::int64_t> volume;
  std::uint64_t head = 0;
};

/// Of each volume.
using VolumeCosts = std::map<std::int64_t, const LtoCosts*>;

/// To the volume, if it is not there yet.
double change_s(Stand& stand, std::int64_t volume, const VolumeCosts& costs) {
  if (stand.volume == volume) return 0;
  const double unload = stand.volume ? costs.at(*stand.volume)->unload_s(stand.head) : 0;
  const double cost = unload + costs.at(volume)->load_s();
  stand = {.volume = volume, .head = 0};
  return cost;
}

planner::Extent extent_of(const CopyRow& copy) {
  return {copy.block, std::max(copy.end_block, copy.block), copy.length};
}

/// Each in the order asked, from its first copy.
double as_asked(const std::vector<std::vector<CopyRow>>& copies, const VolumeCosts& costs) {
  Stand stand;
  double seconds = 0;
  const std::uint32_t first = 0;
  for (const auto& places : copies) {
    seconds += change_s(stand, places.front().volume, costs);
    const planner::Extent extent = extent_of(places.front());
    seconds += planner::order_cost(stand.head, std::span(&extent, 1), std::span(&first, 1),
                                   *costs.at(places.front().volume));
    stand.head = extent.end_block;
  }
  return seconds;
}

/// Volume by volume of the first copies, each in block order.
double by_position(const std::vector<std::vector<CopyRow>>& copies, const VolumeCosts& costs) {
  std::map<std::int64_t, std::vector<planner::Extent>> volumes;
  for (const auto& places : copies) volumes[places.front().volume].push_back(extent_of(places.front()));
  Stand stand;
  double seconds = 0;
  for (const auto& [volume, extents] : volumes) {
    seconds += change_s(stand, volume, costs);
    const planner::Tour tour = planner::block_order(0, extents, *costs.at(volume));
    seconds += tour.seconds;
    stand.head = extents[tour.order.back()].end_block;
  }
  return seconds;
}

struct Planned {
  double seconds = 0;
  double bound_s = 0;  ///< its loads, and what it reads at full rate
};

/// The real planner, one drive, until nothing is left.
Planned planned(const std::vector<std::vector<CopyRow>>& copies, const VolumeCosts& costs) {
  std::map<std::int64_t, std::uint32_t> index;
  std::vector<std::int64_t> volumes;
  for (const auto& places : copies) {
    for (const CopyRow& copy : places) {
      if (index.emplace(copy.volume, static_cast<std::uint32_t>(volumes.size())).second)
        volumes.push_back(copy.volume);
    }
  }
  planner::Input input;
  for (const std::int64_t volume : volumes) input.volumes.push_back({.costs = costs.at(volume)});
  input.drives.resize(1);
  input.limits.gather_s = 0;
  input.limits.tour_max = copies.size();
  for (const auto& places : copies) {
    planner::Request request;
    for (const CopyRow& copy : places) request.copies.push_back({index[copy.volume], extent_of(copy)});
    input.requests.push_back(std::move(request));
  }
  Planned total;
  while (!input.requests.empty()) {
    const planner::Plan plan = planner::plan(input, *costs.begin()->second);
    if (plan.assignments.empty()) break;
    const planner::Assignment& made = plan.assignments.front();
    const planner::Costs& own = *input.volumes[made.volume].costs;
    total.seconds += made.seconds;
    total.bound_s += input.drives[0].volume == made.volume ? 0 : own.load_s();
    for (const planner::Stop& stop : made.stops)
      total.bound_s += own.read_s(input.requests[stop.request].copies[stop.copy].extent.bytes);
    const planner::Stop& last = made.stops.back();
    input.drives[0].head_block = input.requests[last.request].copies[last.copy].extent.end_block;
    input.drives[0].volume = made.volume;
    std::vector<bool> served(input.requests.size());
    for (const planner::Stop& stop : made.stops) served[stop.request] = true;
    std::vector<planner::Request> rest;
    for (std::size_t i = 0; i < input.requests.size(); ++i) {
      if (!served[i]) rest.push_back(std::move(input.requests[i]));
    }
    input.requests = std::move(rest);
  }
  return total;
}

}  // namespace

async::Task<RecallEstimate> Manager::Core::estimate(std::string bucket, std::vector<std::string> keys) {
  RecallEstimate estimate{.scale = options_.scale};
  std::vector<std::int64_t> ids;
  for (const std::string& key : keys) {
    const object::ObjectName name{bucket, key};
    CO_TRY(const auto row, co_await db([&](Catalog& catalog) { return catalog.find(name); }));
    if (row) ids.push_back(row->id);
  }
  CO_TRY(const auto rows, co_await db([&](Catalog& catalog) { return catalog.copies(ids); }));
  std::map<std::int64_t, std::vector<CopyRow>> by_object;
  for (const CopyRow& copy : rows) {
    if (!copy.damaged) by_object[copy.object].push_back(copy);
  }
  std::vector<std::vector<CopyRow>> copies;
  for (const std::int64_t id : ids) {
    if (by_object.contains(id)) copies.push_back(by_object[id]);
  }
  estimate.objects = copies.size();
  for (const auto& places : copies) estimate.bytes += places.front().length;
  if (copies.empty()) co_return estimate;
  VolumeCosts costs;
  for (const auto& [barcode, row] : volumes_) costs[row.id] = &costs_.of(barcode);
  auto compute = [&estimate, &copies, &costs]() -> Result<void> {
    estimate.as_asked_s = as_asked(copies, costs);
    estimate.by_position_s = by_position(copies, costs);
    const Planned best = planned(copies, costs);
    estimate.planned_s = best.seconds;
    estimate.lower_bound_s = best.bound_s;
    return {};
  };
  CO_TRY_VOID(co_await on_pool(env_.hash_pool, compute));
  co_return estimate;
}

}  // namespace reelway::archive
