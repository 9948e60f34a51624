// What people see: status, the library as a picture, and why.

#include <fmt/format.h>

#include <algorithm>

#include "archive/core.h"
#include "archive/policy.h"

namespace reelway::archive {

using base::Result;

namespace {
constexpr std::size_t kQueueShown = 100;
constexpr std::size_t kListPage = 1000;
}  // namespace

async::Task<StatusView> Manager::Core::status_view() {
  CO_TRY_VOID(co_await absorb_notes());
  CO_TRY(const auto counts, co_await db([](Catalog& catalog) { return catalog.counts(); }));
  StatusView view{.objects_waiting = counts.waiting,
                  .bytes_waiting = counts.waiting_bytes,
                  .objects_archived = counts.archived,
                  .objects_evicted = counts.evicted,
                  .recalls_failed = counts.failed_requests,
                  .last_errors = {last_errors_.begin(), last_errors_.end()}};
  for (const auto& [name, recall] : recalls_) {
    if (recall->running)
      ++view.recalls_running;
    else
      ++view.recalls_queued;
  }
  co_return view;
}

namespace {

std::string explain_waiting(const ObjectRow& row, const Policy& policy, base::TimePoint now, bool in_batch) {
  const std::string pools = fmt::format("{}", fmt::join(row.missing, " and "));
  if (in_batch) return fmt::format("it is being written to pool {} now", pools);
  const base::TimePoint old_enough = row.identity.mtime + std::chrono::seconds{policy.minimum_age_s};
  if (old_enough > now)
    return fmt::format("it waits for pool {}: its policy archives objects {} s after they were modified",
                       pools, policy.minimum_age_s);
  if (row.noted > now)
    return fmt::format("it waits for pool {}: it was in use or unreadable and is tried again at {}", pools,
                       base::to_iso8601(row.noted));
  return fmt::format(
      "it waits for pool {}: a batch starts {} s after its oldest object was stored, at {} objects or {} "
      "bytes, and needs a drive",
      pools, policy.batch_age_s, policy.batch_count, policy.batch_bytes);
}

}  // namespace

async::Task<ObjectView> Manager::Core::why(object::ObjectName name) {
  CO_TRY_VOID(co_await absorb_notes());
  ObjectView view{.name = name, .generation = {}, .state = "resident", .copies = {}, .explanation = {}};
  const PolicyRow* found = policy_of(policies_, name);
  const auto policy =
      found == nullptr ? std::nullopt : std::optional(*found);  // they may change while we wait
  CO_TRY(const auto row, co_await db([&](Catalog& catalog) { return catalog.find(name); }));
  if (!row) {
    auto head = co_await env_.store.head({.name = name, .conditions = {}});
    if (!head.has_value()) {
      view.state = "absent";
      view.explanation = "there is no such object";
    } else if (head->residency == object::Residency::evicted) {
      view.state = "conflict";
      view.explanation =
          "a stub lies at this key, but the catalog knows nothing of it: `reelway tape import` reads the "
          "tapes";
    } else {
      view.explanation = !policy ? "it is on disk only: no policy archives its bucket and prefix"
                                 : "it is on disk only: the archive has not seen it yet";
    }
    co_return view;
  }
  view.generation = row->identity.generation;
  CO_TRY(const auto copies, co_await db([&](Catalog& catalog) { return catalog.copies({row->id}); }));
  std::size_t counted = 0;
  for (const CopyRow& copy : copies) {
    const VolumeRow* volume = volume_by_id(copy.volume);
    counted += copy.damaged ? 0 : 1;
    view.copies.push_back(
        {.barcode = volume == nullptr ? "?" : volume->barcode,
         .pool = volume == nullptr ? "" : volume->pool,
         .path = copy.bundled ? fmt::format("{}!{}/{}", copy.path, name.bucket, name.key) : copy.path,
         .block = copy.block,
         .bytes = copy.length,
         .verified = copy.verified,
         .damaged = copy.damaged});
  }
  const auto recall = recalls_.find(name);
  const std::string on_tape = fmt::format("{} {} on tape", counted, counted == 1 ? "copy" : "copies");
  if (recall != recalls_.end()) {
    view.state = recall->second->running ? "recalling" : "evicted";
    view.explanation =
        fmt::format("it is on tape only; its recall {}", status_of(*recall->second).explanation);
  } else if (row->disk == Disk::evicted) {
    view.state = "evicted";
    view.explanation =
        fmt::format("it is on tape only ({}): it was evicted and nobody has asked for it since", on_tape);
  } else if (row->disk != Disk::resident) {
    view.state = std::string(to_string(row->disk));
    view.explanation =
        row->disk == Disk::lost
            ? fmt::format("the disk has it no more ({}): `reelway tape import` makes its stub again", on_tape)
        : row->disk == Disk::conflict ? fmt::format(
                                            "what lies at its key is not its stub ({}): to have it back, "
                                            "move that away and run `reelway "
                                            "tape import`; to give it up, store the key anew through S3",
                                            on_tape)
                                      : "its disk copy is being dropped";
  } else if (!row->missing.empty() && policy) {
    const bool in_batch = in_batch_.contains(row->id);
    view.state = in_batch ? "archiving" : counted > 0 ? "dual" : "resident";
    view.explanation = fmt::format("it is on disk with {}; {}", on_tape,
                                   explain_waiting(*row, policy->policy, clock().now(), in_batch));
  } else {
    view.state = counted > 0 ? "dual" : "resident";
    const auto pin = pins_.find(name);
    const Result<void> evictable =
        !policy ? Result<void>(base::fail(base::Code::precondition_failed, "no policy archives it"))
                : check_evictable(policy->policy, *row, on_trusted(copies));
    view.explanation = fmt::format("it is on disk and archived ({}); ", on_tape);
    if (pin != pins_.end())
      view.explanation += "it was restored until " + base::to_iso8601(pin->second.expiry);
    else
      view.explanation +=
          evictable.has_value() ? "it can be evicted" : "it cannot be evicted: " + evictable.error().detail;
  }
  co_return view;
}

async::Task<LibraryView> Manager::Core::library_view() {
  CO_TRY(const auto counts, co_await db([](Catalog& catalog) { return catalog.volume_counts(); }));
  LibraryView view;
  view.robot = robot_;
  view.last_errors = {last_errors_.begin(), last_errors_.end()};
  const tape::LibraryView& inventory = env_.library.view();
  std::map<std::string, std::string> location;
  int slots = 0;
  int mail = 0;
  for (const auto& slot : inventory.slots) {
    view.slots.push_back(
        {.name = slot.mail ? fmt::format("mail slot {}", ++mail) : fmt::format("slot {}", ++slots),
         .barcode = slot.barcode});
    if (!slot.barcode.empty()) location[slot.barcode] = view.slots.back().name;
  }
  for (const auto& station : stations_) {
    view.drives.push_back({.name = fmt::format("drive {}", station->number),
                           .barcode = station->barcode,
                           .state = station->state,
                           .activity = station->activity,
                           .done = station->done,
                           .total = station->total,
                           .bytes_read = station->bytes_read,
                           .bytes_written = station->bytes_written});
    if (!station->barcode.empty()) location[station->barcode] = view.drives.back().name;
  }
  std::set<std::string> barcodes;
  for (const auto& [barcode, where] : location) barcodes.insert(barcode);
  for (const auto& [barcode, row] : volumes_) barcodes.insert(barcode);
  for (const std::string& barcode : barcodes) {
    CartridgeView cartridge{.barcode = barcode,
                            .pool = pool_of_.contains(barcode) ? pool_of_.at(barcode) : "",
                            .state = "unknown",
                            .location = {}};
    const auto row = volumes_.find(barcode);
    if (row != volumes_.end()) {
      cartridge.state = to_string(row->second.state);
      cartridge.bytes = row->second.bytes;
      cartridge.capacity_bytes = row->second.capacity_bytes;
      const auto count = std::find_if(counts.begin(), counts.end(),
                                      [&](const VolumeCounts& at) { return at.volume == row->second.id; });
      if (count != counts.end()) {
        cartridge.copies = count->copies;
        cartridge.damaged_copies = count->damaged;
      }
    }
    if (location.contains(barcode))
      cartridge.location = location[barcode];
    else
      cartridge.state = "missing";
    view.cartridges.push_back(std::move(cartridge));
  }
  std::vector<std::shared_ptr<Recall>> queue;
  for (const auto& [name, recall] : recalls_) queue.push_back(recall);
  const std::size_t shown = std::min(kQueueShown, queue.size());
  std::partial_sort(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(shown), queue.end(),
                    [](const auto& a, const auto& b) {
                      return std::tie(a->asked, a->request.id) < std::tie(b->asked, b->request.id);
                    });
  view.queue_count = queue.size();
  for (std::size_t i = 0; i < shown; ++i) {
    const Recall& recall = *queue[i];
    view.queue.push_back(
        {.kind = "recall",
         .name = recall.object.name,
         .barcode = recall.running ? recall.barcode : std::string{},
         .state = recall.running ? "running" : "queued",
         .waited_s = std::chrono::duration<double>(clock().steady_now() - recall.asked).count()});
  }
  co_return view;
}

namespace {

std::string_view state_of(const PlacedCopy& placed) {
  if (placed.copy.damaged) return "damaged";
  if (placed.disk == Disk::removed) return "dead";
  return placed.copy.verified ? "verified" : "unread";
}

VolumeEntry entry_of_copy(const PlacedCopy& placed) {
  const CopyRow& copy = placed.copy;
  return {.path = copy.path,
          .member = copy.bundled ? placed.name.bucket + "/" + placed.name.key : std::string{},
          .name = placed.name,
          .generation = placed.generation,
          .bytes = copy.length,
          .state = std::string(state_of(placed)),
          .partition = tape::ltfs::kDataPartition,
          .block = copy.block};
}

/// "BLOCK:COPY", as list_volume gives it.
Result<void> read_cursor(const std::string& text, PlaceQuery& query) {
  if (text.empty()) return {};
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto block = base::parse_decimal(text.substr(0, colon));
  const auto copy = base::parse_decimal(text.substr(std::min(colon + 1, text.size())));
  if (!block || !copy) return base::fail(base::Code::invalid_argument, "after: not the `next` of a page");
  query.after_block = *block;
  query.after_copy = static_cast<std::int64_t>(*copy);
  return {};
}

}  // namespace

async::Task<VolumeListing> Manager::Core::list_volume(std::string volume, std::string prefix,
                                                      std::string after) {
  const auto at = std::find_if(volumes_.begin(), volumes_.end(), [&](const auto& each) {
    return each.first == volume || each.second.uuid == volume;
  });
  if (volume.empty() || at == volumes_.end())
    co_return base::fail(base::Code::not_found,
                         fmt::format("the catalog knows no volume '{}': `reelway tape volumes` names those "
                                     "that it knows",
                                     volume));
  VolumeListing listing{
      .barcode = at->first, .uuid = at->second.uuid, .pool = at->second.pool, .entries = {}, .next = {}};
  const std::size_t slash = std::min(prefix.find('/'), prefix.size());
  PlaceQuery query{.volume = at->second.id,
                   .bucket = prefix.substr(0, slash),
                   .prefix = prefix.substr(std::min(slash + 1, prefix.size())),
                   .count_max = kListPage};
  if (!prefix.empty() && query.bucket.empty())
    co_return base::fail(base::Code::invalid_argument, "prefix: it begins with a bucket's name");
  CO_TRY_VOID(read_cursor(after, query));
  CO_TRY(const auto copies, co_await db([&query](Catalog& catalog) { return catalog.placed(query); }));
  for (const PlacedCopy& placed : copies) listing.entries.push_back(entry_of_copy(placed));
  if (copies.size() == kListPage)
    listing.next = fmt::format("{}:{}", copies.back().copy.block, copies.back().copy.id);
  co_return listing;
}

}  // namespace reelway::archive
