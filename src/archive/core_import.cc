// The catalog from the tapes alone: a mounted volume's index has the manifests after it already applied;
// files carry their object in attributes, bundles their members in manifests or in a table of contents.

#include <fmt/format.h>

#include <algorithm>

#include "archive/core.h"
#include "archive/tape_place.h"
#include "object/metadata_codec.h"
#include "tape/bundle/bundle.h"
#include "tape/ltfs/attributes.h"

namespace reelway::archive {

using base::Code;
using base::Result;

namespace {

constexpr base::Duration kPoll = std::chrono::milliseconds{50};
constexpr std::size_t kProblemsKept = 100;
constexpr std::size_t kCommitRows = 5000;
constexpr std::size_t kScanPage = 1000;
constexpr std::uint64_t kTocMax = 1ull << 30;

ObjectRow row_from_tape(const tape::Member& member) {
  ObjectRow row;
  row.name = {member.bucket, member.key};
  row.identity.generation = member.generation;
  row.identity.size = member.length;
  row.sha256 = member.sha256;
  row.metadata = member.metadata;
  row.disk = Disk::lost;  // until somebody looks
  return row;
}

}  // namespace

void Manager::Core::add_problem(ImportView& view, std::string text) {
  if (view.problems.size() < kProblemsKept) view.problems.push_back(std::move(text));
}

async::Task<base::Bytes> Manager::Core::read_range(tape::ltfs::Volume& volume, const tape::ltfs::File& file,
                                                   base::ByteRange range) {
  base::Bytes bytes(static_cast<std::size_t>(range.length));
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const tape::ltfs::ReadRequest request{
        .extents = file.extents, .file_length = file.length, .offset = range.offset + filled};
    CO_TRY(const std::size_t count, co_await volume.read(request, base::MutableBytes(bytes).subspan(filled)));
    if (count == 0) co_return base::fail(Code::data_loss, "the file ends early on tape", base::Scope::object);
    filled += count;
  }
  co_return bytes;
}

async::Task<std::vector<tape::Member>> Manager::Core::read_toc(tape::ltfs::Volume& volume,
                                                               const std::string& path) {
  const tape::ltfs::File* file = volume.index().find_file(path);
  if (file == nullptr) co_return base::fail(Code::not_found, path);
  const std::uint64_t tail_bytes = std::min<std::uint64_t>(tape::bundle::kTailBytes, file->length);
  CO_TRY(const auto tail, co_await read_range(volume, *file, {file->length - tail_bytes, tail_bytes}));
  CO_TRY(const auto location, tape::bundle::find_toc(tail, file->length));
  if (location.length > kTocMax)
    co_return base::fail(Code::too_large, "a table of contents of more than 1 GiB", base::Scope::object);
  CO_TRY(const auto toc, co_await read_range(volume, *file, {location.offset, location.length}));
  co_return tape::bundle::decode_toc(toc, location);
}

async::Task<void> Manager::Core::import_bundles(tape::ltfs::Volume& volume, BatchCommit& commit,
                                                ImportView& view) {
  CO_TRY(auto found, co_await tape::ltfs::import_scan(volume));
  for (std::string& text : found.problems)
    add_problem(view, fmt::format("{}: {}", commit.volume.barcode, text));
  for (const std::string& path : found.undescribed_bundles) {
    auto members = co_await read_toc(volume, path);
    if (members.has_value())
      found.bundles.push_back({.path = path, .members = std::move(*members)});
    else
      add_problem(view,
                  fmt::format("{}{}: {}", commit.volume.barcode, path, base::to_string(members.error())));
  }
  const std::uint32_t block_bytes = volume.info().block_bytes;
  for (const tape::ltfs::BundleContents& bundle : found.bundles) {
    const tape::ltfs::File* file = volume.index().find_file(bundle.path);
    if (file == nullptr) continue;
    for (const tape::Member& member : bundle.members) {
      if (member.offset + member.length > file->length) {
        add_problem(view, fmt::format("{}{}: a member lies outside of its bundle", commit.volume.barcode,
                                      bundle.path));
        continue;
      }
      const BlockRange blocks = blocks_of(file->extents, block_bytes, member.offset, member.length);
      CommittedCopy copy{.object = row_from_tape(member), .copy = {}};
      copy.copy.path = bundle.path;
      copy.copy.bundled = true;
      copy.copy.offset = member.offset;
      copy.copy.length = member.length;
      copy.copy.block = blocks.first;
      copy.copy.end_block = blocks.end;
      commit.copies.push_back(std::move(copy));
    }
  }
  co_return Result<void>{};
}

namespace {

void collect_files(const tape::ltfs::Volume& volume, BatchCommit& commit,
                   std::vector<std::string>& problems) {
  const std::uint32_t block_bytes = volume.info().block_bytes;
  volume.index().for_each_file([&](const std::string& path, const tape::ltfs::File& file) {
    const auto attributes = tape::ltfs::from_extended_attributes(file);
    if (!attributes.has_value()) {
      if (attributes.error().code != Code::not_found)
        problems.push_back(
            fmt::format("{}{}: {}", commit.volume.barcode, path, base::to_string(attributes.error())));
      return;
    }
    const BlockRange blocks = blocks_of(file.extents, block_bytes, 0, file.length);
    CommittedCopy copy{.object = row_from_tape({.bucket = attributes->bucket,
                                                .key = attributes->key,
                                                .generation = attributes->generation,
                                                .offset = 0,
                                                .length = file.length,
                                                .sha256 = attributes->sha256,
                                                .metadata = attributes->metadata}),
                       .copy = {}};
    copy.copy.path = path;
    copy.copy.length = file.length;
    copy.copy.block = blocks.first;
    copy.copy.end_block = blocks.end;
    commit.copies.push_back(std::move(copy));
  });
}

}  // namespace

/// The station's volume is mounted. Idempotent: copies that the catalog has already stay as they are.
async::Task<void> Manager::Core::import_volume(Station& station, ImportView& view) {
  tape::ltfs::Volume& volume = *station.volume;
  VolumeRow row = volumes_[station.barcode];
  BatchCommit all{.volume = row, .copies = {}, .displaced = {}};
  CO_TRY_VOID(co_await import_bundles(volume, all, view));
  std::vector<std::string> problems;
  collect_files(volume, all, problems);
  for (std::string& text : problems) add_problem(view, std::move(text));
  CO_TRY_VOID(co_await import_journal(volume, view));
  // Batches that the catalog did not live to see are read back by and by, whole volumes only when asked.
  if (!importing_) {
    for (CommittedCopy& committed : all.copies)
      committed.copy.batch = volume.next_number("/.reelway/batches") - 1;
  }
  // Older versions first: of two generations of a key the younger is the object.
  std::sort(all.copies.begin(), all.copies.end(), [](const CommittedCopy& a, const CommittedCopy& b) {
    return std::tie(a.object.identity.generation, a.object.name) <
           std::tie(b.object.identity.generation, b.object.name);
  });
  for (std::size_t from = 0; from < all.copies.size(); from += kCommitRows) {
    const auto begin = all.copies.begin() + static_cast<std::ptrdiff_t>(from);
    const auto end =
        all.copies.begin() + static_cast<std::ptrdiff_t>(std::min(from + kCommitRows, all.copies.size()));
    const BatchCommit part{.volume = row,
                           .copies = {std::make_move_iterator(begin), std::make_move_iterator(end)},
                           .displaced = {}};
    CO_TRY_VOID(co_await db([&part](Catalog& catalog) { return catalog.commit_batch(part); }));
  }
  view.copies += all.copies.size();
  view.volumes += 1;
  // Only now, when all of it is in: a crash before this line imports again.
  row.batches = std::max(row.batches, volume.next_number("/.reelway/batches") - 1);
  if (row.state == VolumeState::blank) row.state = VolumeState::active;
  co_return co_await put_volume(std::move(row));
}

async::Task<void> Manager::Core::import_station(Station& station, std::string barcode, ImportView& view) {
  // Not mount(): a blank cartridge is no trouble here.
  auto mounted = co_await mount_fresh(station, barcode, false);
  const bool blank = !mounted.has_value() && mounted.error().code == Code::not_found &&
                     mounted.error().scope == base::Scope::cartridge;
  if (blank) co_return co_await dismount(station);
  if (!mounted.has_value()) {
    note_drive_error(station, mounted.error());
    add_problem(view, fmt::format("{}: {}", barcode, base::to_string(mounted.error())));
    co_return Result<void>{};
  }
  station.state = "importing";
  auto imported = co_await import_volume(station, view);
  if (!imported.has_value())
    add_problem(view, fmt::format("{}: {}", barcode, base::to_string(imported.error())));
  co_return co_await dismount(station);
}

async::Task<void> Manager::Core::import_lane(Station& station, std::vector<std::string>& barcodes,
                                             ImportView& view) {
  while (!barcodes.empty() && !stopping_) {
    const std::string barcode = barcodes.front();
    barcodes.erase(barcodes.begin());
    Station* holder = station_with(barcode);
    if (holder != nullptr && holder != &station) {
      // Loaded in the other drive: its lane is to read it, unless that lane has ended.
      if (holder->busy) {
        barcodes.push_back(barcode);
        CO_TRY_VOID(co_await env_.timer.sleep_for(kPoll));
        continue;
      }
    }
    station.activity = fmt::format("imports {}", barcode);
    auto done = co_await import_station(station, barcode, view);
    if (!done.has_value()) add_problem(view, fmt::format("{}: {}", barcode, base::to_string(done.error())));
  }
  co_return Result<void>{};
}

async::Task<ImportView> Manager::Core::import_volumes(bool make_stubs) {
  if (importing_)
    co_return base::fail(Code::busy, "an import is running", base::Scope::library, base::Retry::later);
  CO_TRY(const auto holder, gate_.hold());  // stop() waits for the volumes in hand
  importing_ = true;
  ImportView view;
  auto worked = co_await import_all(view);
  if (worked.has_value()) worked = co_await reconcile(make_stubs, view);
  if (worked.has_value() && stopping_) worked = base::fail(Code::closed, "the archive is stopping");
  dead_.clear();
  told_policies_.clear();
  conflicts_told_.clear();
  importing_ = false;
  next_rescan_ = clock().steady_now();
  wake();
  CO_TRY_VOID(worked);
  co_return view;
}

async::Task<void> Manager::Core::import_all(ImportView& view) {
  CO_TRY_VOID(co_await absorb_notes());
  while (std::any_of(stations_.begin(), stations_.end(), [](const auto& station) { return station->busy; })) {
    if (stopping_) co_return base::fail(Code::closed, "the archive is stopping");
    CO_TRY_VOID(co_await env_.timer.sleep_for(kPoll));
  }
  CO_TRY_VOID(co_await env_.library.refresh());
  std::vector<Station*> taken;
  for (const auto& station : stations_) {
    if (!is_idle(*station)) continue;
    take(*station, "importing", "imports");
    taken.push_back(station.get());
  }
  // What is loaded is put away first, so that every cartridge is in a slot and any lane can have it.
  for (Station* station : taken) {
    auto away = co_await dismount(*station);
    if (!away.has_value()) note_drive_error(*station, away.error());
  }
  std::vector<std::string> barcodes;
  for (const auto& [barcode, pool] : pool_of_) {
    if (!pool.empty() && is_in_library(barcode))
      barcodes.push_back(barcode);
    else if (!pool.empty() && volumes_.contains(barcode))
      add_problem(view, barcode + " is not in the library");
  }
  std::vector<async::Task<void>> lanes;
  for (Station* station : taken) lanes.push_back(import_lane(*station, barcodes, view));
  const auto ended = co_await join_all(std::move(lanes));
  for (Station* station : taken) release(*station);
  if (taken.empty())
    co_return base::fail(Code::unavailable, "no drive works", base::Scope::library, base::Retry::later);
  for (const auto& result : ended) CO_TRY_VOID(result);
  co_return Result<void>{};
}

// ---- the disk's side ----

/// Where the stubs lie, of evicted objects that mv may have moved past the catalog.
async::Task<Manager::Core::StubKeys> Manager::Core::stubs_on_disk() {
  StubKeys stubs;
  CO_TRY(const auto buckets, co_await env_.store.list_buckets());
  for (const object::BucketInfo& bucket : buckets) {
    std::string after;
    for (bool more = true; more && !stopping_;) {
      CO_TRY(const auto page, co_await tiered_.scan(bucket.name, {}, after, kScanPage));
      more = page.size() == kScanPage;
      if (!page.empty()) after = page.back().info.name.key;
      for (const object::TierEntry& entry : page) {
        if (entry.info.residency == object::Residency::evicted)
          stubs[{bucket.name, entry.info.generation}] = entry.info.name.key;
      }
    }
  }
  co_return stubs;
}

/// Rows that came from tape alone are `lost` until the disk was asked: what is there as that generation, what
/// has another, what is missing.
async::Task<void> Manager::Core::reconcile(bool make_stubs, ImportView& view) {
  CO_TRY_VOID(co_await settle_journals(view));
  CO_TRY(const StubKeys stubs, co_await stubs_on_disk());
  std::string bucket;
  std::string key;
  for (bool more = true; more && !stopping_;) {
    CO_TRY(const auto rows, co_await db([&](Catalog& catalog) { return catalog.all(bucket, key, 1000); }));
    more = rows.size() == 1000;
    std::vector<DiskChange> changes;
    for (const ObjectRow& row : rows) {
      bucket = row.name.bucket;
      key = row.name.key;
      ++view.objects;
      if (row.disk != Disk::lost) continue;
      CO_TRY_VOID(co_await reconcile_one(row, make_stubs, stubs, changes, view));
    }
    CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.set_disk(changes); }));
  }
  co_return Result<void>{};
}

async::Task<void> Manager::Core::reconcile_one(ObjectRow row, bool make_stubs, const StubKeys& stubs,
                                               std::vector<DiskChange>& changes, ImportView& view) {
  auto entry = co_await entry_of(row.name);
  const auto moved = stubs.find({row.name.bucket, row.identity.generation});
  if (!entry.has_value() && moved != stubs.end()) {
    const object::ObjectName to{row.name.bucket, moved->second};
    CO_TRY(const auto taken, co_await db([&to](Catalog& catalog) { return catalog.find(to); }));
    if (!taken) {
      CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.move_object(row.id, to); }));
      row.name = to;
      entry = co_await entry_of(row.name);
    }
  }
  if (!entry.has_value()) {
    const bool missing =
        object::is_object_not_found(entry.error()) || object::is_bucket_not_found(entry.error());
    if (!missing) co_return entry.error();
    if (!make_stubs) co_return Result<void>{};
    CO_TRY(auto info, object::decode_metadata(row.metadata));
    info.name = row.name;
    info.size = row.identity.size;
    info.generation = row.identity.generation;
    info.residency = object::Residency::evicted;
    if (object::is_bucket_not_found(entry.error())) {
      auto made = co_await env_.store.create_bucket(
          {.name = row.name.bucket, .created = clock().now(), .owner = info.attributes.owner, .region = {}});
      if (!made.has_value() && made.error().code != Code::already_exists) co_return made;
    }
    auto stub = co_await tiered_.create_stub(info);
    if (!stub.has_value()) {
      add_problem(view,
                  fmt::format("{}/{}: {}", row.name.bucket, row.name.key, base::to_string(stub.error())));
      co_return Result<void>{};
    }
    ++view.stubs;
    entry = co_await entry_of(row.name);
    if (!entry.has_value()) co_return entry.error();
  }
  if (entry->info.generation == row.identity.generation) {
    const bool stub = entry->info.residency == object::Residency::evicted;
    changes.push_back(
        {.object = row.id, .disk = stub ? Disk::evicted : Disk::resident, .identity = entry->identity});
  } else {
    changes.push_back({.object = row.id, .disk = Disk::removed, .identity = {}});
    --view.objects;
  }
  co_return Result<void>{};
}

}  // namespace reelway::archive
