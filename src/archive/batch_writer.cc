#include "archive/batch_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "archive/join.h"
#include "archive/tape_place.h"
#include "async/pool_wait.h"
#include "object/metadata_codec.h"
#include "tape/ltfs/attributes.h"

namespace reelway::archive {

using base::Code;
using base::Result;

namespace {

constexpr std::size_t kParcelsAhead = 2;
constexpr std::uint64_t kOverhead =
    16 << 10;  ///< tar headers and table of contents of a member, at most about this
constexpr base::Duration kBufferPatience = std::chrono::minutes{5};
constexpr std::string_view kBundles = "/.reelway/bundles";

}  // namespace

BatchWriter::BatchWriter(SourceEnvironment environment, BatchLimits limits, std::vector<ObjectRow> rows,
                         std::vector<BatchTarget*> targets, Progress progress)
    : env_(environment),
      limits_(limits),
      rows_(std::move(rows)),
      targets_(std::move(targets)),
      progress_(std::move(progress)) {
  // One file is open on a volume at a time: bundled objects first, then the others; each in key order.
  std::sort(rows_.begin(), rows_.end(), [&](const ObjectRow& a, const ObjectRow& b) {
    const bool a_bundled = is_bundled(a.identity.size);
    const bool b_bundled = is_bundled(b.identity.size);
    return a_bundled != b_bundled ? a_bundled : a.name < b.name;
  });
}

bool BatchWriter::any_open() const {
  return std::any_of(targets_.begin(), targets_.end(),
                     [](const BatchTarget* target) { return target->open(); });
}

async::Task<void> BatchWriter::each(const std::function<async::Task<void>(BatchTarget&)>& call) {
  std::vector<BatchTarget*> open;
  std::vector<async::Task<void>> calls;
  for (BatchTarget* target : targets_) {
    if (!target->open()) continue;
    open.push_back(target);
    calls.push_back(call(*target));
  }
  const auto results = co_await join_all(std::move(calls));
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (results[i].has_value()) continue;
    if (results[i].error().code == Code::no_space) {
      // The open file is lost, what is before it counts once the manifest is written.
      open[i]->volume->abandon_file();
      open[i]->full = true;
    } else {
      open[i]->error = results[i].error();
    }
  }
  co_return Result<void>{};
}

async::Task<void> BatchWriter::run() {
  auto chunks = co_await async::take_chunks(env_.buffers, base::PoolShare::drives, 1, kBufferPatience);
  if (!chunks.has_value()) co_return chunks.error();
  staging_ = std::move(chunks->front());
  async::Channel<Parcel> parcels(kParcelsAhead);
  std::vector<async::Task<void>> both;
  both.push_back(read_sources(env_, rows_, parcels));
  both.push_back(consume(parcels));
  const auto results = co_await join_all(std::move(both));
  for (const auto& result : results) {
    if (!result.has_value()) co_return result.error();
  }
  co_return Result<void>{};
}

async::Task<void> BatchWriter::consume(async::Channel<Parcel>& parcels) {
  while (any_open() && going_on_) {
    auto parcel = co_await parcels.receive();
    if (!parcel.has_value()) break;
    CO_TRY_VOID(co_await take_parcel(*parcel));
  }
  parcels.close();
  if (open_info_) CO_TRY_VOID(co_await abandon_object(*open_info_));
  CO_TRY_VOID(co_await end_bundle());
  co_return co_await settle();
}

async::Task<void> BatchWriter::take_parcel(Parcel& parcel) {
  for (FailedObject& failed : parcel.failed) failed_.push_back(std::move(failed));
  for (const WholeObject& whole : parcel.wholes) {
    if (!any_open() || !going_on_) break;
    CO_TRY_VOID(co_await write_whole(whole));
  }
  if (parcel.part) CO_TRY_VOID(co_await write_part(*parcel.part));
  co_return Result<void>{};
}

async::Task<void> BatchWriter::write_whole(const WholeObject& whole) {
  CO_TRY_VOID(co_await begin_object(whole.entry, whole.info, whole.sha256));
  CO_TRY_VOID(co_await stage(whole.bytes));
  co_return co_await end_object(whole.entry, whole.identity, whole.sha256);
}

async::Task<void> BatchWriter::write_part(ObjectPart& part) {
  if (part.error) {
    failed_.push_back({part.entry, *part.error});
    if (open_info_) CO_TRY_VOID(co_await abandon_object(*open_info_));
    co_return Result<void>{};
  }
  if (part.first) CO_TRY_VOID(co_await begin_object(part.entry, part.info, {}));
  if (bundle_ != nullptr) {
    CO_TRY_VOID(co_await stage(part.bytes));
  } else {
    // Straight from the disk's chunk to the drive.
    const base::ByteView bytes = part.bytes;
    const std::function<async::Task<void>(BatchTarget&)> append = [bytes](BatchTarget& target) {
      return target.volume->append(bytes);
    };
    CO_TRY_VOID(co_await each(append));
    open_written_ += bytes.size();
  }
  if (part.last) CO_TRY_VOID(co_await end_object(part.entry, part.identity, part.sha256));
  co_return Result<void>{};
}

async::Task<void> BatchWriter::begin_object(std::size_t entry, const object::ObjectInfo& info,
                                            const std::string& sha256) {
  const bool bundled = is_bundled(rows_[entry].identity.size);
  const std::uint64_t needed = info.size + kOverhead;
  if (bundle_ != nullptr && (!bundled || bundle_->size() + needed > limits_.bundle_bytes ||
                             !all_have_room(bundle_->size() + needed))) {
    CO_TRY_VOID(co_await end_bundle());
  }
  if (bundle_ == nullptr) {
    for (BatchTarget* target : targets_) {
      if (target->open() && !has_room(*target, needed)) target->full = true;
    }
  }
  if (bundled && bundle_ == nullptr) CO_TRY_VOID(co_await begin_bundle());
  if (!bundled) CO_TRY_VOID(co_await begin_file(info));
  open_info_ = info;
  open_written_ = 0;
  if (!bundled) co_return Result<void>{};
  std::string head;
  bundle_->begin_member({.bucket = info.name.bucket,
                         .key = info.name.key,
                         .generation = info.generation,
                         .length = info.size,
                         .modify_time = info.last_modified,
                         .metadata = object::encode_metadata(info),
                         .sha256 = sha256},
                        head);
  CO_TRY_VOID(co_await stage(base::as_bytes(head)));
  open_written_ = 0;
  co_return Result<void>{};
}

async::Task<void> BatchWriter::end_object(std::size_t entry, const object::Identity& identity,
                                          const std::string& sha256) {
  rows_[entry].metadata = object::encode_metadata(*open_info_);
  rows_[entry].sha256 = sha256;
  done_objects_ += 1;
  done_bytes_ += open_info_->size;
  if (bundle_ != nullptr) {
    std::string tail;
    bundle_->end_member(sha256, tail);
    bundled_.push_back({entry, identity});
    CO_TRY_VOID(co_await stage(base::as_bytes(tail)));
  } else {
    CO_TRY_VOID(co_await end_file(entry, identity, sha256));
  }
  open_info_.reset();
  going_on_ = progress_(done_objects_, done_bytes_);
  co_return Result<void>{};
}

async::Task<void> BatchWriter::abandon_object(const object::ObjectInfo& info) {
  if (bundle_ == nullptr) {
    for (BatchTarget* target : targets_) target->volume->abandon_file();
    staged_ = 0;
  } else {
    // The member's promised length is kept, so that any tar still reads what follows it.
    static constexpr std::array<std::byte, 4096> kZeros{};
    while (open_written_ < info.size) {
      const auto count =
          static_cast<std::size_t>(std::min<std::uint64_t>(kZeros.size(), info.size - open_written_));
      CO_TRY_VOID(co_await stage(base::ByteView(kZeros).first(count)));
    }
    std::string tail;
    bundle_->drop_member(tail);
    CO_TRY_VOID(co_await stage(base::as_bytes(tail)));
  }
  open_info_.reset();
  co_return Result<void>{};
}

bool BatchWriter::has_room(const BatchTarget& target, std::uint64_t bytes) {
  return target.bytes + bytes <= target.room_bytes;
}

bool BatchWriter::all_have_room(std::uint64_t bytes) const {
  return std::all_of(targets_.begin(), targets_.end(),
                     [&](const BatchTarget* target) { return !target->open() || has_room(*target, bytes); });
}

// ---- bundles ----

async::Task<void> BatchWriter::begin_bundle() {
  bundle_ = std::make_unique<tape::bundle::Writer>();
  bundled_.clear();
  staged_ = 0;
  const std::function<async::Task<void>(BatchTarget&)> begin = [](BatchTarget& target) {
    target.open_path = fmt::format("{}/{:08}.tar", kBundles, target.volume->next_number(kBundles));
    return target.volume->begin_file({.path = target.open_path, .displaced_path = {}, .modify_time = {}});
  };
  co_return co_await each(begin);
}

async::Task<void> BatchWriter::end_bundle() {
  if (bundle_ == nullptr) co_return Result<void>{};
  std::string tail;
  bundle_->finish(tail);
  CO_TRY_VOID(co_await stage(base::as_bytes(tail)));
  CO_TRY_VOID(co_await flush_stage());
  for (BatchTarget* target : targets_) {
    if (!target->open()) continue;
    auto file = co_await target->volume->finish_file({});
    if (!file.has_value()) {
      target->error = file.error();
      continue;
    }
    note_bundle_members(*target, *file);
    target->bytes += bundle_->size();
  }
  bundle_.reset();
  co_return Result<void>{};
}

void BatchWriter::note_bundle_members(BatchTarget& target, const tape::ltfs::StoredFile& file) {
  const std::uint32_t block_bytes = target.volume->info().block_bytes;
  const auto& members = bundle_->members();
  for (std::size_t i = 0; i < bundled_.size(); ++i) {
    const tape::Member& member = members[i];
    const BlockRange blocks = blocks_of(file.extents, block_bytes, member.offset, member.length);
    CommittedCopy copy{.object = rows_[bundled_[i].entry], .copy = {}};
    copy.object.identity = bundled_[i].identity;
    copy.copy = {.path = file.path,
                 .bundled = true,
                 .offset = member.offset,
                 .length = member.length,
                 .block = blocks.first,
                 .end_block = blocks.end};
    target.copies.push_back(std::move(copy));
  }
  target.bundles.push_back({.path = file.path, .members = members});
}

async::Task<void> BatchWriter::stage(base::ByteView bytes) {
  open_written_ += bytes.size();
  const base::MutableBytes memory = staging_.bytes();
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), memory.size() - staged_);
    std::memcpy(memory.data() + staged_, bytes.data(), count);
    staged_ += count;
    bytes = bytes.subspan(count);
    if (staged_ == memory.size()) CO_TRY_VOID(co_await flush_stage());
  }
  co_return Result<void>{};
}

async::Task<void> BatchWriter::flush_stage() {
  if (staged_ == 0) co_return Result<void>{};
  const base::ByteView bytes = staging_.bytes().first(staged_);
  staged_ = 0;
  const std::function<async::Task<void>(BatchTarget&)> append = [bytes](BatchTarget& target) {
    return target.volume->append(bytes);
  };
  co_return co_await each(append);
}

// ---- files of their own ----

async::Task<void> BatchWriter::begin_file(const object::ObjectInfo& info) {
  staged_ = 0;
  const std::function<async::Task<void>(BatchTarget&)> begin = [&info](BatchTarget& target) {
    const tape::ltfs::Index& index = target.volume->index();
    target.open_path = path_for(index, info.name, info.generation);
    std::string displaced;
    if (const tape::ltfs::File* older = index.find_file(target.open_path)) {
      const auto attributes = tape::ltfs::from_extended_attributes(*older);
      displaced =
          displaced_path(index, info.name, attributes.has_value() ? attributes->generation : std::string{});
      target.displaced.push_back({.from = target.open_path, .to = displaced});
    }
    return target.volume->begin_file(
        {.path = target.open_path, .displaced_path = displaced, .modify_time = info.last_modified});
  };
  co_return co_await each(begin);
}

async::Task<void> BatchWriter::end_file(std::size_t entry, const object::Identity& identity,
                                        const std::string& sha256) {
  CO_TRY_VOID(co_await flush_stage());
  const object::ObjectInfo& info = *open_info_;
  const auto attributes = tape::ltfs::to_extended_attributes({.generation = info.generation,
                                                              .bucket = info.name.bucket,
                                                              .key = info.name.key,
                                                              .sha256 = sha256,
                                                              .metadata = rows_[entry].metadata});
  for (BatchTarget* target : targets_) {
    if (!target->open()) continue;
    auto file = co_await target->volume->finish_file(attributes);
    if (!file.has_value()) {
      target->error = file.error();
      continue;
    }
    const BlockRange blocks = blocks_of(file->extents, target->volume->info().block_bytes, 0, file->length);
    CommittedCopy copy{.object = rows_[entry], .copy = {}};
    copy.object.identity = identity;
    copy.copy = {.path = file->path,
                 .bundled = false,
                 .offset = 0,
                 .length = file->length,
                 .block = blocks.first,
                 .end_block = blocks.end};
    target->copies.push_back(std::move(copy));
    target->bytes += file->length;
  }
  co_return Result<void>{};
}

// ---- rule 2 ----

namespace {

/// Manifest, then the flush that makes it and all before it durable and compares positions. The catalog's
/// commit is the caller's.
async::Task<void> settle_target(BatchTarget& target) {
  CO_TRY(target.receipt, co_await target.volume->write_manifest(std::move(target.bundles)));
  CO_TRY_VOID(co_await target.volume->sync());
  for (CommittedCopy& copy : target.copies) copy.copy.batch = target.receipt.number;
  co_return Result<void>{};
}

}  // namespace

async::Task<void> BatchWriter::settle() {
  std::vector<BatchTarget*> live;
  std::vector<async::Task<void>> tasks;
  for (BatchTarget* target : targets_) {
    if (target->error) {
      target->copies.clear();
      continue;
    }
    live.push_back(target);
    tasks.push_back(settle_target(*target));
  }
  const auto results = co_await join_all(std::move(tasks));
  for (std::size_t i = 0; i < live.size(); ++i) {
    if (results[i].has_value()) continue;
    live[i]->error = results[i].error();
    live[i]->copies.clear();
  }
  co_return Result<void>{};
}

}  // namespace reelway::archive
