// Writing indexes: checkpoint, unmount, coherency.

#include <algorithm>

#include "scsi/replies.h"
#include "tape/ltfs/coherency.h"
#include "tape/ltfs/volume_state.h"

namespace reelway::tape::ltfs {

using async::Task;
using base::Code;
using base::Result;

namespace {

constexpr std::uint64_t kCheckpointPerIndexByte = 100;

bool has_extents_on(const Index& index, char partition) {
  bool found = false;
  index.for_each_file([&found, partition](const std::string&, const File& file) {
    found = found || std::ranges::find(file.extents, partition, &Extent::partition) != file.extents.end();
  });
  return found;
}

}  // namespace

Task<void> Volume::State::write_index(char partition) {
  auto marked = co_await drive.write_filemarks(1, true);
  if (!marked) co_return give_up(std::move(marked).error());
  index.location = {.partition = partition, .start_block = drive.position().block};
  IndexSerializer serializer(index);
  std::string text;
  index_bytes = 0;
  for (bool more = true; more;) {
    more = serializer.fill(text, block_bytes());
    const auto whole = more ? text.size() / block_bytes() * block_bytes() : text.size();
    auto rest = base::as_bytes(text).first(whole);
    while (!rest.empty()) {
      const auto block = rest.first(std::min(rest.size(), block_bytes()));
      auto written = co_await drive.write_block(block);
      if (!written) co_return give_up(std::move(written).error());
      rest = rest.subspan(block.size());
    }
    index_bytes += whole;
    text.erase(0, whole);
  }
  auto ended = co_await drive.write_filemarks(1, false);
  if (!ended) co_return give_up(std::move(ended).error());
  auto confirmed = co_await drive.confirm_position();
  if (!confirmed) co_return give_up(std::move(confirmed).error());
  co_return Result<void>{};
}

Task<void> Volume::State::write_data_index() {
  CO_TRY_VOID(co_await go_to_append());
  if (index_changed) {
    ++index.generation;
    index.update_time = environment.clock.now();
  }
  index.version = "2.4.0";
  index.creator = creator("checkpoint");
  index.previous.reset();
  if (data_index_block) index.previous = IndexLocation{label.data_partition, *data_index_block};
  index_partition_stale = true;
  CO_TRY_VOID(co_await write_index(label.data_partition));
  append_block = drive.position().block;
  remaining_bytes -= std::min(remaining_bytes, index_bytes);
  data_index_block = index.location.start_block;
  index_changed = data_incomplete = false;
  bytes_since_index = index_growth_bytes = 0;
  co_return Result<void>{};
}

Task<void> Volume::State::write_index_partition() {
  CO_TRY_VOID(co_await revoke_coherency());
  CO_TRY_VOID(co_await go_to({.partition = index_partition, .block = index_partition_append}));
  index.creator = creator("unmount");
  index.previous.reset();
  if (data_index_block) index.previous = IndexLocation{label.data_partition, *data_index_block};
  CO_TRY_VOID(co_await write_index(label.index_partition));
  index_partition_stale = false;
  co_return Result<void>{};
}

Task<void> Volume::State::revoke_coherency() {
  if (memory_stale) co_return Result<void>{};
  for (const auto partition : {data_partition, index_partition}) {
    scsi::Attribute nothing{.id = scsi::attribute::volume_coherency, .value = {}};
    const auto revoked = co_await drive.write_attribute(partition, std::move(nothing));
    const bool has_none = !revoked && revoked.error().scope == base::Scope::request;
    if (!revoked && !has_none) co_return revoked.error();
  }
  memory_stale = true;
  co_return check_readable();
}

Task<void> Volume::State::write_coherency() {
  for (const auto partition : {data_partition, index_partition}) {
    CO_TRY(const auto raw,
           co_await drive.read_attribute(partition, scsi::attribute::volume_change_reference));
    const auto reference =
        raw ? decode_change_reference(*raw) : Result<std::uint64_t>(base::fail(Code::not_found, ""));
    if (!reference) co_return Result<void>{};  // a cartridge memory without a counter: the next mount scans
    const auto start =
        partition == index_partition ? index.location.start_block : data_index_block.value_or(0);
    auto value = encode_coherency({.volume_change_reference = *reference,
                                   .generation = index.generation,
                                   .start_block = start,
                                   .volume_uuid = label.volume_uuid});
    scsi::Attribute attribute{.id = scsi::attribute::volume_coherency, .value = std::move(value)};
    CO_TRY_VOID(co_await drive.write_attribute(partition, std::move(attribute)));
  }
  memory_stale = false;
  co_return Result<void>{};
}

Task<bool> Volume::checkpoint_if_due() {
  const auto& state = *state_;
  const auto limit = std::max(state.options.checkpoint_bytes, kCheckpointPerIndexByte * state.index_bytes);
  if (!state.index_changed || state.bytes_since_index <= limit) co_return false;
  CO_TRY_VOID(co_await checkpoint());
  co_return true;
}

Task<void> Volume::checkpoint() {
  auto& state = *state_;
  CO_TRY_VOID(state.check_writable());
  if (state.open) co_return base::fail(Code::precondition_failed, "a file is still open");
  if (!state.index_changed && !state.data_incomplete) co_return Result<void>{};
  if (!state.changes.empty()) CO_TRY_VOID(co_await write_manifest({}));
  co_return co_await state.write_data_index();
}

Task<void> Volume::unmount() {
  auto& state = *state_;
  abandon_file();
  const bool clean =
      !state.index_changed && !state.data_incomplete && !state.index_partition_stale && !state.memory_stale;
  if (state.options.read_only || clean) co_return Result<void>{};
  CO_TRY_VOID(state.check_writable());
  CO_TRY_VOID(co_await checkpoint());
  if (state.index_partition_damaged && has_extents_on(state.index, state.label.index_partition)) {
    // Somebody's placement policy put data there and its index is gone: nothing before the end of data may be
    // overwritten.
    CO_TRY_VOID(co_await state.drive.locate_end_of_data(state.index_partition));
    state.index_partition_append = state.drive.position().block;
  }
  if (state.index_partition_stale) CO_TRY_VOID(co_await state.write_index_partition());
  CO_TRY_VOID(co_await state.write_coherency());
  state.failed = true;  // nothing may be written any more
  co_return Result<void>{};
}

}  // namespace reelway::tape::ltfs
