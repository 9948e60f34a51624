// Mounting: by the cartridge memory where it is coherent, else by looking for the last index and the batch
// manifests after it.

#include <algorithm>

#include "base/checksum.h"
#include "scsi/replies.h"
#include "tape/ltfs/coherency.h"
#include "tape/ltfs/manifest_scan.h"
#include "tape/ltfs/volume_state.h"

namespace reelway::tape::ltfs {

using async::Task;
using base::Code;
using base::fail;
using base::Result;
using base::Scope;

namespace {

constexpr int kIndexSearchMax = 10'000;  // filemarks looked at from the end of data
constexpr std::size_t kLabelBytesMax = 64 << 10;

base::Error not_ltfs(std::string_view why) {
  return fail(Code::unsupported, "not an LTFS volume: " + std::string(why), Scope::cartridge);
}

struct FoundLabel {
  std::string serial;
  Label label;
};

Task<void> expect_filemark(Drive& drive) {
  base::Bytes none(kBlockBytesMin);
  CO_TRY(const auto read, co_await drive.read_block(none));
  if (read.end != ReadEnd::filemark) co_return not_ltfs("a label without its filemark");
  co_return Result<void>{};
}

Task<base::Bytes> read_small_block(Drive& drive, std::size_t bytes_max) {
  base::Bytes block(bytes_max);
  auto read = co_await drive.read_block(block);
  if (!read && read.error().code == Code::too_large)
    co_return not_ltfs("a large block where a label should be");
  if (!read) co_return std::move(read).error();
  if (read->end == ReadEnd::end_of_data) co_return fail(Code::not_found, "blank", Scope::cartridge);
  if (read->end != ReadEnd::block) co_return not_ltfs("a filemark where a label should be");
  block.resize(read->bytes);
  co_return block;
}

/// not_found: nothing is written there.
Task<FoundLabel> read_label(Drive& drive, std::uint32_t partition) {
  CO_TRY_VOID(co_await drive.locate({.partition = partition, .block = 0}));
  CO_TRY(const auto vol1, co_await read_small_block(drive, kBlockBytesMin));
  FoundLabel found;
  CO_TRY(found.serial, decode_vol1(vol1));
  CO_TRY_VOID(co_await expect_filemark(drive));
  CO_TRY(const auto label, co_await read_small_block(drive, kLabelBytesMax));
  CO_TRY(found.label, decode_label(label));
  CO_TRY_VOID(co_await expect_filemark(drive));
  co_return found;
}

Task<void> read_labels(Volume::State& state) {
  auto first = co_await read_label(state.drive, 0);
  if (!first && first.error().code == Code::not_found) {
    co_return fail(Code::not_found, "the cartridge is blank", Scope::cartridge);
  }
  if (!first) co_return std::move(first).error();
  auto second = co_await read_label(state.drive, 1);
  if (!second && second.error().scope == Scope::drive) co_return std::move(second).error();
  if (!second) co_return not_ltfs("the second partition has no label (" + second.error().detail + ")");
  CO_TRY_VOID(check_labels_agree(first->label, second->label));
  state.serial = std::move(first->serial);
  state.index_partition = first->label.location == first->label.index_partition ? 0 : 1;
  state.data_partition = 1 - state.index_partition;
  state.label = std::move(first->label);
  co_return Result<void>{};
}

/// The coherency information of a partition, while it is true.
Task<std::optional<Coherency>> read_coherency(Volume::State& state, std::uint32_t partition) {
  CO_TRY(const auto counter,
         co_await state.drive.read_attribute(partition, scsi::attribute::volume_change_reference));
  CO_TRY(const auto value, co_await state.drive.read_attribute(partition, scsi::attribute::volume_coherency));
  if (!counter || !value) co_return std::nullopt;
  const auto reference = decode_change_reference(*counter);
  auto coherency = decode_coherency(*value);
  const bool holds = reference && coherency && coherency->volume_change_reference == *reference &&
                     coherency->volume_uuid == state.label.volume_uuid;
  if (!holds) co_return std::nullopt;
  co_return std::move(*coherency);
}

struct FoundIndex {
  Index index;
  std::uint64_t start_block = 0;
  std::uint64_t end_mark = 0;  ///< the filemark after it
  std::uint64_t bytes = 0;
};

/// not_found: no index begins there. Other errors: one does, but it is damaged, or the drive is.
Task<FoundIndex> read_index(Volume::State& state, Position start) {
  CO_TRY_VOID(co_await state.go_to(start));
  base::Bytes block(state.block_bytes());
  IndexParser parser;
  FoundIndex found{.index = {}, .start_block = start.block};
  while (true) {
    CO_TRY(const auto read, co_await state.drive.read_block(block));
    if (read.end == ReadEnd::filemark && found.bytes > 0) break;
    if (read.end != ReadEnd::block) co_return fail(Code::not_found, "no index", Scope::cartridge);
    const auto bytes = base::ByteView(block).first(read.bytes);
    if (found.bytes == 0 && !base::as_text(bytes).starts_with("<?xml"))
      co_return fail(Code::not_found, "no index");
    found.bytes += read.bytes;
    CO_TRY_VOID(parser.feed(bytes));
  }
  found.end_mark = state.drive.position().block - 1;
  CO_TRY(found.index, parser.finish());
  const bool ours = found.index.volume_uuid == state.label.volume_uuid &&
                    found.index.location.start_block == start.block &&
                    state.number_of(found.index.location.partition) == start.partition;
  if (!ours) co_return fail(Code::not_found, "an index of another place or volume", Scope::cartridge);
  co_return found;
}

bool is_drive_error(const base::Error& error) {
  return error.scope == Scope::drive || error.scope == Scope::library;
}

/// The last complete index of a partition, looked for backwards over its filemarks.
Task<std::optional<FoundIndex>> find_last_index(Volume::State& state, std::uint32_t partition) {
  auto& drive = state.drive;
  CO_TRY_VOID(co_await drive.locate_end_of_data(partition));
  std::optional<std::uint64_t> later_mark;
  for (int step = 0; step < kIndexSearchMax; ++step) {
    const auto spaced = co_await drive.space_filemarks(-1);
    if (!spaced && spaced.error().code == Code::not_found) co_return std::nullopt;
    if (!spaced) co_return spaced.error();
    const auto mark = drive.position().block;
    if (mark < kContentBlock) co_return std::nullopt;
    if (later_mark && *later_mark > mark + 1) {
      auto found = co_await read_index(state, {.partition = partition, .block = mark + 1});
      if (found && found->end_mark == *later_mark) co_return std::move(*found);
      if (!found && is_drive_error(found.error())) co_return found.error();
      CO_TRY_VOID(co_await state.go_to({.partition = partition, .block = mark}));
    }
    later_mark = mark;
  }
  co_return std::nullopt;
}

void take_batches_of_index(Volume::State& state) {
  const auto* batches = state.index.find_directory("/.reelway/batches");
  if (batches == nullptr) return;
  for (const auto& [name, file] : batches->files) {
    const auto number = base::parse_decimal(name);
    if (!number || *number <= state.last_batch.number || file->extents.empty()) continue;
    const auto trailer = file->extents.back().start_block;
    state.last_batch = {.number = *number, .trailer_block = trailer, .end_block = trailer + 1};
    state.last_trailer = trailer;
  }
}

/// True when it worked; false: the memory does not tell, scan.
Task<bool> mount_by_memory(Volume::State& state) {
  CO_TRY(const auto data, co_await read_coherency(state, state.data_partition));
  CO_TRY(const auto index, co_await read_coherency(state, state.index_partition));
  if (!data || !index || data->generation != index->generation) co_return false;
  auto found = co_await read_index(state, {.partition = state.index_partition, .block = index->start_block});
  if (!found && is_drive_error(found.error())) co_return found.error();
  if (!found || found->index.generation != index->generation) co_return false;
  state.index = std::move(found->index);
  state.index_bytes = found->bytes;
  state.data_index_block = data->start_block;
  state.index_partition_append = found->start_block - 1;
  take_batches_of_index(state);
  co_return true;
}

Task<void> apply_manifests(Volume::State& state, std::uint64_t from_block) {
  CO_TRY(auto scanned, co_await find_manifests(state, from_block));
  for (auto& problem : scanned.problems) state.problems.push_back(std::move(problem));
  for (auto& found : scanned.manifests) {
    const auto number = found.manifest.number;
    if (auto applied = apply_manifest(found.manifest, found.trailer, found.trailer_bytes,
                                      state.label.data_partition, state.index);
        !applied) {
      state.problems.push_back("batch " + std::to_string(number) +
                               " does not fit the index: " + applied.error().detail);
    }
    ++state.batches_recovered;
    state.index_changed = true;
    state.last_trailer = found.trailer.own_block;
    state.last_batch = {
        .number = number, .trailer_block = found.trailer.own_block, .end_block = found.trailer.own_block + 1};
  }
  for (const auto& problem : state.problems)
    state.environment.log.write(base::LogLevel::error, "tape", problem);
  co_return Result<void>{};
}

Task<void> mount_by_scan(Volume::State& state) {
  state.mounted_by_scan = state.memory_stale = true;
  CO_TRY(auto on_index, co_await find_last_index(state, state.index_partition));
  CO_TRY(auto on_data, co_await find_last_index(state, state.data_partition));
  if (!on_index && !on_data) {
    co_return fail(Code::data_loss, "the volume has labels but no index", Scope::cartridge,
                   base::Retry::elsewhere);
  }
  if (on_data) state.data_index_block = on_data->start_block;
  if (on_index) state.index_partition_append = on_index->start_block - 1;
  state.index_partition_damaged = !on_index;
  const auto scan_from = on_data ? on_data->end_mark + 1 : kContentBlock;
  const bool index_newer = on_index && (!on_data || on_index->index.generation > on_data->index.generation);
  auto& chosen = index_newer ? *on_index : *on_data;
  state.index_partition_stale = !on_index || on_index->index.generation != chosen.index.generation;
  state.index_changed = index_newer;
  state.index_bytes = chosen.bytes;
  state.index = std::move(chosen.index);
  take_batches_of_index(state);
  CO_TRY_VOID(co_await state.read_end_of_data());
  state.data_incomplete = *state.append_block != scan_from;
  if (state.data_incomplete) CO_TRY_VOID(co_await apply_manifests(state, scan_from));
  co_return Result<void>{};
}

}  // namespace

namespace {

Task<std::string> read_medium_serial(Drive& drive) {
  CO_TRY(const auto value, co_await drive.read_attribute(0, scsi::attribute::medium_serial));
  std::string text(value ? base::as_text(*value) : std::string_view{});
  text.resize(text.find_last_not_of(std::string_view(" \0", 2)) + 1);
  co_return text;
}

}  // namespace

Task<std::unique_ptr<Volume>> Volume::mount(Drive& drive, Environment environment, MountOptions options) {
  auto state = std::make_unique<State>(drive, environment, options);
  CO_TRY_VOID(co_await drive.locate({.partition = 0, .block = 0}));
  state->change_count = drive.change_count();
  CO_TRY_VOID(co_await read_labels(*state));
  CO_TRY(state->medium_serial, co_await read_medium_serial(drive));
  bool mounted = false;
  if (!options.force_scan) {
    CO_TRY(mounted, co_await mount_by_memory(*state));
  }
  if (!mounted) CO_TRY_VOID(co_await mount_by_scan(*state));
  if (!options.read_only) {
    CO_TRY(state->options.read_only, co_await drive.is_write_protected());
  }
  CO_TRY_VOID(state->check_readable());
  co_return std::unique_ptr<Volume>(new Volume(std::move(state)));
}

}  // namespace reelway::tape::ltfs
