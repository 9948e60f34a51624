#include "tape/ltfs/volume.h"

#include <algorithm>
#include <cstring>

#include "base/checksum.h"
#include "tape/ltfs/names.h"
#include "tape/ltfs/volume_state.h"

namespace reelway::tape::ltfs {

using async::Task;
using base::Code;
using base::fail;
using base::Result;
using base::Scope;

namespace {

constexpr std::uint64_t kReserveBlocks = 64;
constexpr std::uint64_t kEntryBytes = 1200;  // of an index, without attributes

/// About what a file adds to the index and to a manifest.
std::uint64_t growth_of(const File& file) {
  auto bytes = kEntryBytes;
  for (const auto& attribute : file.attributes)
    bytes += 64 + attribute.key.size() + attribute.value.size() * 4 / 3;
  return bytes;
}

}  // namespace

Volume::Volume(std::unique_ptr<State> state) : state_(std::move(state)) {}
Volume::~Volume() = default;

// ---- state ----

std::string Volume::State::creator(std::string_view reason) const {
  return "Reelway Reelway " REELWAY_VERSION " - Linux - reelway - " + std::string(reason);
}

Result<void> Volume::State::check_readable() const {
  if (drive.change_count() != change_count) {
    return fail(Code::unavailable,
                drive.name() + ": the drive was reset or the cartridge changed; mount again", Scope::drive,
                base::Retry::same_place);
  }
  return {};
}

Result<void> Volume::State::check_writable() const {
  TRY_VOID(check_readable());
  if (options.read_only)
    return fail(Code::access_denied, "the volume is mounted for reading only", Scope::cartridge);
  if (index.lock != VolumeLock::unlocked)
    return fail(Code::access_denied, "the volume is locked", Scope::cartridge);
  if (failed)
    return fail(Code::unavailable, "a write to the volume failed; mount it again", Scope::cartridge);
  return {};
}

std::uint64_t Volume::State::reserve_bytes() const {
  return 2 * index_bytes + 3 * index_growth_bytes + kReserveBlocks * block_bytes();
}

base::Error Volume::State::give_up(base::Error error) {
  failed = true;
  open.reset();
  append_block.reset();
  return error;
}

Task<void> Volume::State::go_to(Position to) {
  CO_TRY_VOID(check_readable());
  if (!drive.is_at(to)) CO_TRY_VOID(co_await drive.locate(to));
  co_return check_readable();
}

Task<void> Volume::State::read_end_of_data() {
  CO_TRY_VOID(check_readable());
  CO_TRY_VOID(co_await drive.locate_end_of_data(data_partition));
  CO_TRY_VOID(check_readable());
  append_block = drive.position().block;
  if (*append_block < std::max(kContentBlock, data_index_block.value_or(0) + 2)) {
    co_return give_up(fail(Code::data_loss, "the data ends before the last index does", Scope::cartridge));
  }
  co_return co_await read_capacity();
}

Task<void> Volume::State::read_capacity() {
  const auto capacity = co_await drive.capacity(data_partition);
  remaining_bytes = capacity ? capacity->remaining : UINT64_MAX;
  co_return check_readable();
}

Task<void> Volume::State::go_to_append() {
  CO_TRY_VOID(check_writable());
  CO_TRY_VOID(co_await revoke_coherency());
  if (!append_block) co_return co_await read_end_of_data();
  if (drive.is_at({.partition = data_partition, .block = *append_block})) co_return Result<void>{};
  const auto expected = *append_block;
  CO_TRY_VOID(co_await drive.locate_end_of_data(data_partition));
  CO_TRY_VOID(check_readable());
  if (drive.position().block == expected) co_return Result<void>{};
  co_return give_up(
      fail(Code::data_loss, "the volume's data does not end where we wrote last", Scope::cartridge));
}

Task<void> Volume::State::write(base::ByteView block) {
  auto written = co_await drive.write_block(block);
  if (!written) co_return give_up(std::move(written).error());
  ++*append_block;
  bytes_since_index += block.size();
  remaining_bytes -= std::min<std::uint64_t>(remaining_bytes, block.size());
  data_incomplete = true;
  co_return Result<void>{};
}

Task<void> Volume::State::write_all(base::ByteView bytes) {
  while (!bytes.empty()) {
    const auto block = bytes.first(std::min(bytes.size(), block_bytes()));
    CO_TRY_VOID(co_await write(block));
    bytes = bytes.subspan(block.size());
  }
  co_return Result<void>{};
}

Task<void> Volume::State::flush() {
  auto flushed = co_await drive.write_filemarks(0, false);
  if (!flushed) co_return give_up(std::move(flushed).error());
  auto confirmed = co_await drive.confirm_position();
  if (!confirmed) co_return give_up(std::move(confirmed).error());
  co_return Result<void>{};
}

// ---- looking ----

VolumeInfo Volume::info() const {
  const auto& state = *state_;
  return {.serial = state.serial,
          .medium_serial = state.medium_serial,
          .uuid = state.label.volume_uuid,
          .name = state.index.volume_name,
          .format_time = state.label.format_time,
          .block_bytes = state.label.block_bytes,
          .generation = state.index.generation,
          .read_only = state.options.read_only,
          .mounted_by_scan = state.mounted_by_scan,
          .batches_recovered = state.batches_recovered,
          .last_batch = state.last_batch.number,
          .problems = state.problems};
}

const Index& Volume::index() const { return state_->index; }

Task<Capacity> Volume::capacity() { return state_->drive.capacity(state_->data_partition); }

bool Volume::is_full() const {
  const auto& state = *state_;
  return state.append_block && (state.full || state.drive.early_warning() || !state.has_room(0));
}

std::uint64_t Volume::next_number(std::string_view directory) const {
  std::uint64_t highest = 0;
  const auto* found = state_->index.find_directory(directory);
  if (found == nullptr) return 1;
  for (const auto& [name, file] : found->files) {
    const auto digits = std::string_view(name).substr(0, name.find_first_not_of("0123456789"));
    const auto number = base::parse_decimal(digits);
    if (number && *number < UINT64_MAX) highest = std::max(highest, *number);
  }
  return highest + 1;
}

// ---- appending ----

Task<void> Volume::begin_file(FileSpec spec) {
  auto& state = *state_;
  CO_TRY_VOID(state.check_writable());
  if (state.open) co_return fail(Code::precondition_failed, "a file is open already");
  const bool storable =
      is_storable_path(spec.path) && (spec.displaced_path.empty() || is_storable_path(spec.displaced_path));
  if (!storable) co_return fail(Code::invalid_argument, "LTFS cannot hold that path", Scope::object);
  const auto* present = state.index.find_file(spec.path);
  const bool taken = state.index.find_directory(spec.path) != nullptr ||
                     (present != nullptr && spec.displaced_path.empty()) ||
                     (!spec.displaced_path.empty() && state.index.exists(spec.displaced_path));
  if (taken) co_return fail(Code::already_exists, "the volume has that path already", Scope::object);
  CO_TRY_VOID(co_await state.go_to_append());
  if (is_full())
    co_return fail(Code::no_space, "the volume is full", Scope::cartridge, base::Retry::elsewhere);
  if (state.staging.empty()) state.staging.resize(state.block_bytes());
  state.open.emplace(State::OpenFile{.spec = std::move(spec), .start_block = *state.append_block});
  co_return Result<void>{};
}

Task<void> Volume::append(base::ByteView bytes) {
  auto& state = *state_;
  CO_TRY_VOID(state.check_writable());
  if (!state.open) co_return fail(Code::precondition_failed, "no file is open");
  if (!state.has_room(bytes.size())) CO_TRY_VOID(co_await state.read_capacity());
  if (!state.has_room(bytes.size())) {
    state.open.reset();
    state.full = true;
    co_return fail(Code::no_space, "the volume is full", Scope::cartridge, base::Retry::elsewhere);
  }
  CO_TRY_VOID(co_await state.go_to_append());
  const auto block_bytes = state.block_bytes();
  state.open->length += bytes.size();
  while (!bytes.empty()) {
    auto& staged = state.open->staged;
    if (staged == 0 && bytes.size() >= block_bytes) {
      CO_TRY_VOID(co_await state.write(bytes.first(block_bytes)));
      bytes = bytes.subspan(block_bytes);
      continue;
    }
    const auto part = bytes.first(std::min(bytes.size(), block_bytes - staged));
    std::memcpy(state.staging.data() + staged, part.data(), part.size());
    staged += part.size();
    bytes = bytes.subspan(part.size());
    if (staged < block_bytes) break;
    staged = 0;
    CO_TRY_VOID(co_await state.write(state.staging));
  }
  co_return Result<void>{};
}

Task<StoredFile> Volume::finish_file(std::vector<ExtendedAttribute> attributes) {
  auto& state = *state_;
  CO_TRY_VOID(state.check_writable());
  if (!state.open) co_return fail(Code::precondition_failed, "no file is open");
  if (state.open->staged > 0) {
    CO_TRY_VOID(co_await state.go_to_append());
    CO_TRY_VOID(co_await state.write(base::ByteView(state.staging).first(state.open->staged)));
  }
  const auto open = std::move(*state.open);
  state.open.reset();
  const auto now = state.environment.clock.now();
  File file;
  file.times = {open.spec.modify_time, now, open.spec.modify_time, now, now};
  file.attributes = std::move(attributes);
  file.length = open.length;
  if (open.length > 0) {
    file.extents = {{.partition = state.label.data_partition,
                     .start_block = open.start_block,
                     .byte_count = open.length}};
  }
  if (!open.spec.displaced_path.empty() && state.index.find_file(open.spec.path) != nullptr) {
    CO_TRY_VOID(rename_file(open.spec.path, open.spec.displaced_path));
  }
  CO_TRY(const auto* added, state.index.add_file(open.spec.path, std::move(file), now));
  state.index_changed = true;
  state.index_growth_bytes += growth_of(*added);
  state.changes.emplace_back(FileAdded{.path = open.spec.path, .file = *added});
  StoredFile stored{
      .path = open.spec.path, .length = added->length, .extents = added->extents, .uid = added->uid};
  co_return stored;
}

void Volume::abandon_file() { state_->open.reset(); }

Result<void> Volume::rename_file(const std::string& from, const std::string& to) {
  TRY_VOID(state_->check_writable());
  TRY_VOID(state_->index.rename_file(from, to, state_->environment.clock.now()));
  state_->index_changed = true;
  state_->changes.emplace_back(FileRenamed{.from = from, .to = to});
  return {};
}

Result<void> Volume::remove_file(const std::string& path) {
  TRY_VOID(state_->check_writable());
  TRY_VOID(state_->index.remove_file(path, state_->environment.clock.now()));
  state_->index_changed = true;
  state_->changes.emplace_back(FileRemoved{.path = path});
  return {};
}

// ---- what makes it count ----

Task<BatchReceipt> Volume::write_manifest(std::vector<BundleContents> bundles) {
  auto& state = *state_;
  CO_TRY_VOID(state.check_writable());
  if (state.open) co_return fail(Code::precondition_failed, "a file is still open");
  if (state.changes.empty()) co_return state.last_batch;
  co_return co_await state.write_manifest_file(std::move(bundles));
}

Task<BatchReceipt> Volume::State::write_manifest_file(std::vector<BundleContents> bundles) {
  CO_TRY_VOID(co_await go_to_append());
  const auto now = environment.clock.now();
  Manifest manifest{.number = last_batch.number + 1,
                    .volume_uuid = label.volume_uuid,
                    .time = now,
                    .changes = std::move(changes),
                    .bundles = std::move(bundles)};
  changes.clear();
  const auto body = encode_manifest(manifest);
  ManifestTrailer trailer{.number = manifest.number,
                          .volume_uuid = label.volume_uuid,
                          .start_block = *append_block,
                          .own_block = 0,
                          .previous_block = last_trailer,
                          .body_bytes = body.size(),
                          .body_crc32c = base::crc32c(0, base::as_bytes(body)),
                          .file_uid = index.take_uid(),
                          .time = now};
  CO_TRY_VOID(co_await write_all(base::as_bytes(body)));
  trailer.own_block = *append_block;
  const auto record = encode_trailer(trailer);
  CO_TRY_VOID(co_await write(base::as_bytes(record)));
  auto added = index.add_file(manifest_path(manifest.number),
                              manifest_file(trailer, record.size(), label.data_partition), now);
  if (!added) co_return give_up(std::move(added).error());
  index_changed = true;
  last_trailer = trailer.own_block;
  last_batch = {.number = manifest.number, .trailer_block = trailer.own_block, .end_block = *append_block};
  co_return last_batch;
}

File manifest_file(const ManifestTrailer& trailer, std::size_t trailer_bytes, char partition) {
  File file;
  file.uid = trailer.file_uid;
  file.times = {trailer.time, trailer.time, trailer.time, trailer.time, trailer.time};
  file.length = trailer.body_bytes + trailer_bytes;
  // The trailer is a record of its own, so that a scan sees it at a record's start: two extents, each ending
  // in a short block.
  file.extents = {{.file_offset = 0,
                   .partition = partition,
                   .start_block = trailer.start_block,
                   .byte_count = trailer.body_bytes},
                  {.file_offset = trailer.body_bytes,
                   .partition = partition,
                   .start_block = trailer.own_block,
                   .byte_count = trailer_bytes}};
  return file;
}

Result<void> apply_manifest(const Manifest& manifest, const ManifestTrailer& trailer,
                            std::size_t trailer_bytes, char partition, Index& index) {
  for (const auto& change : manifest.changes) {
    if (const auto* added = std::get_if<FileAdded>(&change)) {
      TRY_VOID(index.add_file(added->path, added->file, manifest.time));
    } else if (const auto* renamed = std::get_if<FileRenamed>(&change)) {
      TRY_VOID(index.rename_file(renamed->from, renamed->to, manifest.time));
    } else if (const auto* removed = std::get_if<FileRemoved>(&change)) {
      TRY_VOID(index.remove_file(removed->path, manifest.time));
    }
  }
  TRY_VOID(index.add_file(manifest_path(manifest.number), manifest_file(trailer, trailer_bytes, partition),
                          manifest.time));
  return {};
}

Task<void> Volume::sync() {
  CO_TRY_VOID(state_->check_writable());
  if (!state_->append_block) co_return Result<void>{};  // nothing was written
  CO_TRY_VOID(co_await state_->go_to_append());
  co_return co_await state_->flush();
}

}  // namespace reelway::tape::ltfs
