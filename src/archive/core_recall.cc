// The recall queue: joining, waiting, planning. What a tour does is in core_tour.cc.

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>

#include "archive/core.h"
#include "archive/lto_costs.h"

namespace reelway::archive {

using base::Code;
using base::Result;
using object::RecallState;

namespace {

double seconds(base::Duration duration) { return std::chrono::duration<double>(duration).count(); }

bool counts(const CopyRow& copy) { return !copy.damaged; }

}  // namespace

// ---- asking ----

async::Task<object::RecallStatus> Manager::Core::submit(object::RecallRequest request) {
  CO_TRY_VOID(co_await absorb_notes());
  const auto open = recalls_.find(request.name);
  if (open != recalls_.end() && open->second->object.identity.generation == request.generation) {
    const auto recall = open->second;
    CO_TRY_VOID(co_await upgrade(*recall, request));
    hurry(*recall);
    wake();
    co_return status_of(*recall);
  }
  CO_TRY(auto row,
         co_await db([&](Catalog& catalog) { return catalog.find(request.name, request.generation); }));
  if (!row || row->disk == Disk::removed)
    co_return base::fail(Code::not_found, "the catalog has no copy of this generation", base::Scope::object);
  if (row->disk == Disk::resident) co_return co_await extend_pin(*row, request);
  CO_TRY(const auto recall, co_await enqueue(std::move(*row), request));
  hurry(*recall);
  wake();
  co_return status_of(*recall);
}

/// A reader's recall becomes a pinned one when RestoreObject asks too; the longer pin holds.
async::Task<void> Manager::Core::upgrade(Recall& recall, const object::RecallRequest& request) {
  recall.wanted_now |= request.for_reader;
  if (request.for_reader) co_return Result<void>{};
  const bool changes =
      recall.request.for_reader || request.days > recall.request.days || request.tier < recall.request.tier;
  if (!changes) co_return Result<void>{};
  recall.request.days =
      recall.request.for_reader ? request.days : std::max(recall.request.days, request.days);
  recall.request.for_reader = false;
  recall.request.tier = std::min(recall.request.tier, request.tier);
  post_restore(recall.object.name);
  const std::vector<RequestRow> rows = {recall.request};
  co_return co_await db([&rows](Catalog& catalog) { return catalog.put_requests(rows); });
}

/// It is on disk: a restored copy lives on from today.
async::Task<object::RecallStatus> Manager::Core::extend_pin(const ObjectRow& row,
                                                            const object::RecallRequest& request) {
  object::RecallStatus status{
      .id = {}, .state = RecallState::done, .expiry = {}, .explanation = "the object is on disk"};
  const auto pin = pins_.find(row.name);
  if (pin == pins_.end() || request.for_reader) co_return status;
  pin->second.expiry = pin_until(request.days);
  pin->second.request.expiry = pin->second.expiry;
  post_restore(row.name);
  status.id = std::to_string(pin->second.request.id);
  status.expiry = pin->second.expiry;
  const std::vector<RequestRow> rows = {pin->second.request};
  CO_TRY_VOID(co_await db([&rows](Catalog& catalog) { return catalog.put_requests(rows); }));
  co_return status;
}

async::Task<std::shared_ptr<Recall>> Manager::Core::enqueue(ObjectRow row, object::RecallRequest request) {
  CO_TRY(auto copies, co_await db([&](Catalog& catalog) { return catalog.copies({row.id}); }));
  std::erase_if(copies, [](const CopyRow& copy) { return !counts(copy); });
  if (copies.empty())
    co_return base::fail(Code::not_found, "no copy of the object can be read", base::Scope::object);
  RequestRow queued{.id = 0,
                    .object = row.id,
                    .state = RecallState::queued,
                    .for_reader = request.for_reader,
                    .tier = request.tier,
                    .days = request.days,
                    .asked = clock().now(),
                    .expiry = {},
                    .explanation = {}};
  CO_TRY(auto stored, co_await db([&](Catalog& catalog) { return catalog.add_requests({queued}); }));
  // Somebody else may have asked for it while the database worked.
  const auto other = recalls_.find(row.name);
  if (other != recalls_.end() && other->second->object.id == row.id) {
    stored.front().state = RecallState::done;
    CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.put_requests(stored); }));
    const auto recall = other->second;
    CO_TRY_VOID(co_await upgrade(*recall, request));
    co_return recall;
  }
  auto recall = add_recall(stored.front(), std::move(row), std::move(copies));
  recall->wanted_now = request.for_reader;
  co_return recall;
}

std::shared_ptr<Recall> Manager::Core::add_recall(RequestRow request, ObjectRow object,
                                                  std::vector<CopyRow> copies) {
  auto recall = std::make_shared<Recall>();
  recall->feed = std::make_shared<object::RecallFeed>(object.identity.size);
  recall->request = std::move(request);
  recall->object = std::move(object);
  recall->copies = std::move(copies);
  recall->asked = clock().steady_now();
  recalls_[recall->object.name] = recall;
  post_restore(recall->object.name);
  return recall;
}

/// The object was deleted or overwritten. A recall that runs reads on and will find its key changed; nobody
/// joins it any more, and who follows it comes to a short end.
void Manager::Core::replace_recall(Recall& recall) {
  const object::ObjectName name = recall.object.name;
  recall.replaced = true;
  if (!recall.running) {
    recall.request.state = RecallState::failed;
    recall.request.explanation = "the object was deleted or replaced";
  }
  recall.feed->end(base::fail(Code::data_loss, "the object was deleted or replaced", base::Scope::object,
                              base::Retry::later));
  for (const auto& waiter : recall.waiters) waiter->wake();
  recalls_.erase(name);
  post_restore(name);
}

async::Task<std::uint64_t> Manager::Core::recall(std::string bucket, std::string prefix,
                                                 std::vector<std::string> keys, std::uint32_t days) {
  CO_TRY(const object::BucketInfo there, co_await env_.store.head_bucket(bucket));
  CO_TRY_VOID(co_await absorb_notes());
  std::uint64_t count = 0;
  std::vector<ObjectRow> rows;
  std::string after;
  for (bool more = keys.empty(); more;) {
    CO_TRY(auto page,
           co_await db([&](Catalog& catalog) { return catalog.under(bucket, prefix, after, 1000); }));
    more = page.size() == 1000;
    if (!page.empty()) after = page.back().name.key;
    CO_TRY(const std::uint64_t queued, co_await enqueue_all(std::move(page), days));
    count += queued;
  }
  for (std::size_t i = 0; i < keys.size();) {
    std::vector<ObjectRow> page;
    for (; i < keys.size() && page.size() < 1000; ++i) {
      const object::ObjectName name{bucket, keys[i]};
      CO_TRY(auto row, co_await db([&](Catalog& catalog) { return catalog.find(name); }));
      if (row) page.push_back(std::move(*row));
    }
    CO_TRY(const std::uint64_t queued, co_await enqueue_all(std::move(page), days));
    count += queued;
  }
  wake();
  co_return count;
}

/// Many at once: one commit for the page.
async::Task<std::uint64_t> Manager::Core::enqueue_all(std::vector<ObjectRow> rows, std::uint32_t days) {
  std::erase_if(
      rows, [&](const ObjectRow& row) { return row.disk != Disk::evicted || recalls_.contains(row.name); });
  std::vector<std::int64_t> ids;
  for (const ObjectRow& row : rows) ids.push_back(row.id);
  CO_TRY(const auto copies, co_await db([&](Catalog& catalog) { return catalog.copies(ids); }));
  std::map<std::int64_t, std::vector<CopyRow>> by_object;
  for (const CopyRow& copy : copies) {
    if (counts(copy)) by_object[copy.object].push_back(copy);
  }
  std::erase_if(
      rows, [&](const ObjectRow& row) { return !by_object.contains(row.id) || recalls_.contains(row.name); });
  std::vector<RequestRow> requests;
  std::vector<std::shared_ptr<Recall>> fresh;
  for (ObjectRow& row : rows) {
    RequestRow request{.id = 0,
                       .object = row.id,
                       .state = RecallState::queued,
                       .for_reader = days == 0,
                       .tier = object::RestoreTier::bulk,
                       .days = days,
                       .asked = clock().now(),
                       .expiry = {},
                       .explanation = {}};
    auto copies_of = std::move(by_object[row.id]);
    auto recall = add_recall(std::move(request), std::move(row), std::move(copies_of));
    requests.push_back(recall->request);
    recall->running = true;  // not to be planned before it is durable
    fresh.push_back(std::move(recall));
  }
  auto stored = co_await db([&](Catalog& catalog) { return catalog.add_requests(requests); });
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    fresh[i]->running = false;
    if (stored.has_value())
      fresh[i]->request = (*stored)[i];
    else
      replace_recall(*fresh[i]);
  }
  if (!stored.has_value()) co_return stored.error();
  co_return fresh.size();
}

async::Task<void> Manager::Core::load_requests() {
  CO_TRY(auto open, co_await db([](Catalog& catalog) { return catalog.open_requests(); }));
  for (RequestRow& request : open) {
    CO_TRY(auto rows, co_await db([&](Catalog& catalog) { return catalog.objects({request.object}); }));
    CO_TRY(auto copies, co_await db([&](Catalog& catalog) { return catalog.copies({request.object}); }));
    std::erase_if(copies, [](const CopyRow& copy) { return !counts(copy); });
    request.state = RecallState::queued;
    const bool alive = !rows.empty() && rows.front().disk == Disk::evicted && !copies.empty() &&
                       !recalls_.contains(rows.front().name);
    if (!alive) {
      // It landed before the crash, or there is nothing to recall any more.
      request.state =
          !rows.empty() && rows.front().disk == Disk::resident ? RecallState::done : RecallState::failed;
      if (request.state == RecallState::done && !request.for_reader) request.expiry = pin_until(request.days);
      CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.put_requests({request}); }));
      continue;
    }
    add_recall(request, std::move(rows.front()), std::move(copies));
  }
  CO_TRY(const auto pins, co_await db([](Catalog& catalog) {
           return catalog.expired_pins(base::TimePoint::max(), 10'000'000);
         }));
  for (const RequestRow& pin : pins) {
    CO_TRY(const auto rows, co_await db([&](Catalog& catalog) { return catalog.objects({pin.object}); }));
    if (!rows.empty() && rows.front().disk == Disk::resident)
      pins_[rows.front().name] = {rows.front().identity.generation, pin.expiry, pin};
    if (!rows.empty()) post_restore(rows.front().name);
  }
  co_return Result<void>{};
}

// ---- status ----

object::RecallStatus Manager::Core::status_of(const Recall& recall) const {
  object::RecallStatus status{.id = std::to_string(recall.request.id),
                              .state = recall.request.state,
                              .expiry = {},
                              .explanation = recall.request.explanation};
  if (recall.request.expiry != base::TimePoint{}) status.expiry = recall.request.expiry;
  if (recall.running) {
    status.state = RecallState::running;
    status.explanation = fmt::format("is read from {} now", recall.barcode);
  } else if (recall.request.state == RecallState::queued) {
    status.explanation = "waits for a drive";
    const bool any_here = std::any_of(recall.copies.begin(), recall.copies.end(), [&](const CopyRow& copy) {
      const VolumeRow* volume = volume_by_id(copy.volume);
      return volume != nullptr && is_in_library(volume->barcode);
    });
    if (!any_here) status.explanation = "waits for a cartridge that is not in the library";
  }
  return status;
}

async::Task<object::RecallStatus> Manager::Core::status(object::ObjectName name, std::string generation) {
  const auto open = recalls_.find(name);
  if (open != recalls_.end() && open->second->object.identity.generation == generation)
    co_return status_of(*open->second);
  CO_TRY(const auto row, co_await db([&](Catalog& catalog) { return catalog.find(name, generation); }));
  if (!row) co_return object::RecallStatus{};
  CO_TRY(const auto last, co_await db([&](Catalog& catalog) { return catalog.last_request(row->id); }));
  if (!last) co_return object::RecallStatus{};
  object::RecallStatus status{
      .id = std::to_string(last->id), .state = last->state, .expiry = {}, .explanation = last->explanation};
  if (last->expiry != base::TimePoint{}) status.expiry = last->expiry;
  co_return status;
}

async::Task<object::RecallStatus> Manager::Core::wait(object::ObjectName name, std::string generation,
                                                      base::Duration patience) {
  const auto open = recalls_.find(name);
  if (open == recalls_.end() || open->second->object.identity.generation != generation)
    co_return co_await status(name, generation);
  const auto recall = open->second;
  const auto waiter = std::make_shared<async::Waiter>();
  recall->waiters.push_back(waiter);
  co_await wait_until(env_.timer, waiter, clock().steady_now() + patience);
  std::erase(recall->waiters, waiter);
  const bool ended =
      recall->request.state == RecallState::done || recall->request.state == RecallState::failed;
  if (ended) co_return status_of(*recall);
  if (stopping_)
    co_return base::fail(Code::closed, "the archive is stopping", base::Scope::node, base::Retry::later);
  co_return base::fail(Code::deadline_exceeded, "the recall goes on", base::Scope::object,
                       base::Retry::later);
}

async::Task<void> Manager::Core::cancel(std::string id) {
  const auto found = std::find_if(recalls_.begin(), recalls_.end(), [&](const auto& at) {
    return std::to_string(at.second->request.id) == id;
  });
  if (found == recalls_.end()) co_return base::fail(Code::not_found, "no such recall is queued");
  const auto recall = found->second;
  recall->cancelled = true;
  if (recall->running) co_return Result<void>{};  // it is not begun, or runs to its end
  std::vector<Ending> endings;
  endings.push_back({.recall = recall,
                     .state = RecallState::failed,
                     .explanation = "cancelled",
                     .identity = {},
                     .disk = {}});
  co_return co_await finish_recalls(std::move(endings));
}

// ---- readers ----

async::Task<object::FollowedRecall> Manager::Core::follow(object::RecallRequest request, std::uint64_t offset,
                                                          base::Duration patience) {
  const base::SteadyPoint until = clock().steady_now() + patience;
  const object::ObjectName name = request.name;
  const std::string generation = request.generation;
  CO_TRY(auto submitted, co_await submit(std::move(request)));
  const auto open = recalls_.find(name);
  if (open == recalls_.end() || open->second->object.identity.generation != generation)
    co_return object::FollowedRecall{.status = std::move(submitted), .feed = {}, .view = {}};
  const auto recall = open->second;
  for (;;) {
    if (auto seen = look_at(*recall, offset)) co_return std::move(*seen);
    if (stopping_ || readers_leave_)
      co_return base::fail(Code::closed, "the server stops", base::Scope::node, base::Retry::later);
    if (clock().steady_now() >= until)
      co_return base::fail(Code::deadline_exceeded, "the recall goes on", base::Scope::object,
                           base::Retry::later);
    const auto waiter = std::make_shared<async::Waiter>();
    recall->waiters.push_back(waiter);
    recall->feed->add_waiter(waiter);
    co_await wait_until(env_.timer, waiter, until);
    std::erase(recall->waiters, waiter);
    recall->feed->remove_waiter(waiter);
    const auto state = co_await net::this_coro::cancellation_state;
    if (state.cancelled() != net::cancellation_type::none)
      co_return base::fail(Code::cancelled, "the reader has left");
  }
}

/// What a reader that wants byte `offset` is told now; nothing: to wait.
std::optional<object::FollowedRecall> Manager::Core::look_at(const Recall& recall,
                                                             std::uint64_t offset) const {
  object::FollowedRecall seen{.status = status_of(recall), .feed = {}, .view = {}};
  if (recall.replaced) {
    seen.status.state = RecallState::none;
    return seen;
  }
  const bool has_ended =
      recall.request.state == RecallState::done || recall.request.state == RecallState::failed;
  if (has_ended) return seen;
  if (recall.feed->has_landed()) {
    seen.status.state = RecallState::done;
    return seen;
  }
  auto view = recall.feed->look(offset, std::nullopt);
  if (!view.has_value() || !*view) return std::nullopt;
  seen.feed = recall.feed;
  seen.view = std::move(*view);
  return seen;
}

void Manager::Core::send_readers_away() {
  readers_leave_ = true;
  for (const auto& [name, recall] : recalls_) {
    for (const auto& waiter : recall->waiters) waiter->wake();
  }
}

void Manager::Core::post_restore(const object::ObjectName& name) {
  const auto open = recalls_.find(name);
  if (open != recalls_.end() && !open->second->request.for_reader) {
    board_.set(name, open->second->object.identity.generation, {.ongoing = true, .expiry = {}});
    return;
  }
  const auto pin = pins_.find(name);
  if (pin == pins_.end()) return board_.clear(name);
  board_.set(name, pin->second.generation, {.ongoing = false, .expiry = pin->second.expiry});
}

async::Task<bool> Manager::Core::owns(object::ObjectName name, std::string generation) {
  CO_TRY(const auto row, co_await db([&](Catalog& catalog) { return catalog.find(name, generation); }));
  if (!row || row->disk == Disk::removed) co_return false;
  CO_TRY(const auto copies, co_await db([&](Catalog& catalog) { return catalog.copies({row->id}); }));
  co_return std::any_of(copies.begin(), copies.end(), counts);
}

/// Days, rounded up to the next midnight UTC, as S3 has it.
base::TimePoint Manager::Core::pin_until(std::uint32_t days) const {
  const auto end = clock().now() + std::chrono::days{days};
  return std::chrono::ceil<std::chrono::days>(end);
}

// ---- planning ----

object::RestoreTier Manager::Core::tier_of(const Recall& recall) const {
  return recall.wanted_now ? object::RestoreTier::expedited : recall.request.tier;
}

/// A tour that reads what matters less from one of its volumes ends after the object in hand; the next one
/// begins with this.
void Manager::Core::hurry(const Recall& recall) {
  const auto tier = tier_of(recall);
  for (const CopyRow& copy : recall.copies) {
    const VolumeRow* volume = volume_by_id(copy.volume);
    Station* station = volume == nullptr ? nullptr : station_with(volume->barcode);
    if (station != nullptr && station->reading) station->yield_to = std::min(station->yield_to, tier);
  }
}

planner::Input Manager::Core::planner_input(std::vector<std::shared_ptr<Recall>>& recalls,
                                            std::vector<std::string>& barcodes) const {
  planner::Input input;
  input.limits = {.gather_s = seconds(options_.gather),
                  .urgent_age_s = seconds(options_.urgent_age),
                  .keep_loaded_s = seconds(options_.keep_loaded),
                  .spare_after_s = seconds(options_.spare_after)};
  std::map<std::int64_t, std::uint32_t> index;
  for (const auto& [barcode, row] : volumes_) {
    index[row.id] = static_cast<std::uint32_t>(barcodes.size());
    input.volumes.push_back({.usable = row.state != VolumeState::foreign && is_in_library(barcode),
                             .costs = &costs_.of(barcode)});
    barcodes.push_back(barcode);
  }
  const base::SteadyPoint now = clock().steady_now();
  for (const auto& station : stations_) {
    planner::Drive drive{.usable = station->failed_until <= now,
                         .busy = station->busy,
                         .reading = station->reading,
                         .volume = {},
                         .head_block = station->head_block,
                         .idle_s = seconds(now - station->idle_since)};
    const auto row = volumes_.find(station->barcode);
    if (row != volumes_.end())
      drive.volume = index[row->second.id];
    else if (!station->barcode.empty())
      drive.volume = std::numeric_limits<std::uint32_t>::max();  // something, but nothing to recall from
    input.drives.push_back(drive);
  }
  for (const auto& [name, recall] : recalls_) {
    if (recall->running || recall->cancelled || recall->not_before > now) continue;
    planner::Request request{.age_s = seconds(now - recall->asked),
                             .rank = static_cast<std::uint32_t>(tier_of(*recall)),
                             .copies = {}};
    for (const CopyRow& copy : recall->copies) {
      const auto volume = index.find(copy.volume);
      if (volume != index.end())
        request.copies.push_back(
            {volume->second, {copy.block, std::max(copy.end_block, copy.block), copy.length}});
    }
    if (request.copies.size() != recall->copies.size()) continue;
    input.requests.push_back(std::move(request));
    recalls.push_back(recall);
  }
  return input;
}

std::optional<double> Manager::Core::start_recalls() {
  if (stopping_ || importing_) return std::nullopt;
  std::vector<std::shared_ptr<Recall>> recalls;
  std::vector<std::string> barcodes;
  const planner::Input input = planner_input(recalls, barcodes);
  const planner::Plan plan = planner::plan(input, costs_.of({}));
  for (const planner::Assignment& assignment : plan.assignments) {
    Station& station = *stations_[assignment.drive];
    Tour tour{.station = &station,
              .barcode = barcodes[assignment.volume],
              .recalls = {},
              .copies = {},
              .tiers = {}};
    for (const planner::Stop& stop : assignment.stops) {
      const auto& recall = recalls[stop.request];
      recall->running = true;
      recall->barcode = tour.barcode;
      tour.recalls.push_back(recall);
      tour.copies.push_back(recall->copies[stop.copy]);
      tour.tiers.push_back(tier_of(*recall));
    }
    take(station, "recalling", fmt::format("recalls {} objects from {}", tour.recalls.size(), tour.barcode));
    station.reading = true;
    station.yield_to = object::RestoreTier::bulk;
    station.total = tour.recalls.size();
    if (start_job("recall", tour_job(tour))) continue;
    for (const auto& recall : tour.recalls) recall->running = false;
    release(station);
  }
  // The cartridge of a batch that will come in a moment stays where it is.
  for (const std::uint32_t drive : plan.unload) {
    Station& station = *stations_[drive];
    if (!forces_.empty() || !is_idle(station)) continue;
    take(station, "unloading", fmt::format("unloads {}", station.barcode));
    if (!start_job("unload", unload_job(station))) release(station);
  }
  return plan.look_again_s;
}

}  // namespace reelway::archive
