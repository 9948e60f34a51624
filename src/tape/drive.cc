#include "tape/drive.h"

#include <algorithm>
#include <array>

#include "async/timer.h"
#include "scsi/commands.h"
#include "scsi/fields.h"
#include "scsi/sense.h"

namespace reelway::tape {

using async::Task;
using base::Code;
using base::fail;
using base::Result;
using base::Scope;
using scsi::SenseAction;

namespace {

constexpr int kAttentionsMax = 8;  // unit attentions in a row before we give up
constexpr base::Duration kPollFirst = std::chrono::milliseconds(20);
constexpr base::Duration kPollMax = std::chrono::seconds(5);
constexpr std::size_t kAttributeBytes = 8192;  // one attribute and more
constexpr std::uint8_t kDeviceConfigurationPage = 0x10;
constexpr std::uint8_t kMediumPartitionPage = 0x11;
constexpr std::uint8_t kUnitSerialPage = 0x80;

bool is_attention(const scsi::Reply& reply) {
  return reply.status == scsi::Status::check_condition && reply.sense.key == scsi::key::unit_attention;
}

bool is_illegal(const scsi::Reply& reply) {
  return reply.status == scsi::Status::check_condition && reply.sense.key == scsi::key::illegal_request;
}

bool is_blank_check(const scsi::Reply& reply) {
  return reply.status == scsi::Status::check_condition && reply.sense.key == scsi::key::blank_check;
}

base::Error unknown_position(const std::string& drive) {
  return fail(Code::precondition_failed, drive + ": the position is not known; locate first", Scope::drive);
}

}  // namespace

Drive::Drive(scsi::Device& device, async::Timer& timer, base::Log& log)
    : device_(device), timer_(timer), log_(log) {}

Task<scsi::Reply> Drive::run(scsi::Command command, Relative relative) {
  for (int attempt = 0; attempt < kAttentionsMax; ++attempt) {
    CO_TRY(auto reply, co_await device_.execute(command));
    if (reply.status == scsi::Status::check_condition &&
        scsi::classify(reply.sense).action == SenseAction::log) {
      log_.write(base::LogLevel::warning, "tape", scsi::to_error(reply, device_.name()).detail);
    }
    if (!is_attention(reply)) co_return reply;
    log_.write(base::LogLevel::info, "tape", scsi::to_error(reply, device_.name()).detail);
    switch (scsi::classify(reply.sense).action) {
      case SenseAction::retry:
        continue;
      case SenseAction::check_position:
      case SenseAction::take_inventory:
        position_known_ = false;
        early_warning_ = false;
        ++change_count_;
        if (relative == Relative::yes)
          co_return scsi::to_error(reply, device_.name() + ": the position is lost");
        continue;
      default:
        co_return reply;
    }
  }
  co_return fail(Code::unavailable, device_.name() + ": one unit attention after the other", Scope::drive,
                 base::Retry::later);
}

Task<void> Drive::run_checked(scsi::Command command, Relative relative, std::string_view what) {
  CO_TRY(const auto reply, co_await run(command, relative));
  co_return scsi::check(reply, std::string(what) + " on " + device_.name());
}

Result<void> Drive::check_position_known() const {
  if (!position_known_) return unknown_position(device_.name());
  return {};
}

base::Error Drive::lose_position(const scsi::Reply& reply, std::string_view what) {
  position_known_ = false;
  return scsi::to_error(reply, std::string(what) + " on " + device_.name());
}

Task<DriveIdentity> Drive::identify() {
  std::array<std::byte, 96> standard{};
  CO_TRY(const auto reply, co_await run(scsi::inquiry(standard), Relative::no));
  CO_TRY_VOID(scsi::check(reply, "INQUIRY"));
  CO_TRY(auto inquiry, scsi::parse_inquiry(base::ByteView(standard).first(reply.data_in_bytes)));
  std::array<std::byte, 252> page{};
  CO_TRY(const auto page_reply, co_await run(scsi::inquiry_page(kUnitSerialPage, page), Relative::no));
  CO_TRY_VOID(scsi::check(page_reply, "INQUIRY"));
  CO_TRY(auto serial, scsi::parse_unit_serial(base::ByteView(page).first(page_reply.data_in_bytes)));
  DriveIdentity identity{.vendor = std::move(inquiry.vendor),
                         .product = std::move(inquiry.product),
                         .revision = std::move(inquiry.revision),
                         .serial = std::move(serial)};
  co_return identity;
}

// ---- loading ----

Task<LoadState> Drive::load_state() {
  CO_TRY(const auto reply, co_await run(scsi::test_unit_ready(), Relative::no));
  if (reply.status == scsi::Status::good) co_return LoadState::ready;
  if (reply.status == scsi::Status::busy) co_return LoadState::loading;
  switch (scsi::classify(reply.sense).action) {
    case SenseAction::none:
    case SenseAction::log:
      co_return LoadState::ready;
    case SenseAction::poll:
      co_return LoadState::loading;
    case SenseAction::load:
      co_return LoadState::not_threaded;
    case SenseAction::insert:
      co_return LoadState::empty;
    default:
      co_return scsi::to_error(reply, "TEST UNIT READY on " + device_.name());
  }
}

Task<void> Drive::wait_ready(base::Duration patience) {
  const auto until = timer_.clock().steady_now() + patience;
  for (auto pause = kPollFirst;; pause = std::min(2 * pause, kPollMax)) {
    CO_TRY(const auto state, co_await load_state());
    if (state == LoadState::ready) co_return Result<void>{};
    if (state == LoadState::empty)
      co_return fail(Code::not_found, device_.name() + " is empty", Scope::drive);
    if (state == LoadState::not_threaded) {
      CO_TRY_VOID(co_await load());
      continue;
    }
    const auto now = timer_.clock().steady_now();
    if (now >= until) {
      co_return fail(Code::deadline_exceeded, device_.name() + " does not become ready", Scope::drive,
                     base::Retry::later);
    }
    CO_TRY_VOID(co_await timer_.sleep_until(std::min(now + pause, until)));
  }
}

Task<void> Drive::load() {
  position_known_ = false;
  early_warning_ = false;
  co_return co_await run_checked(scsi::load(), Relative::no, "LOAD");
}

Task<void> Drive::unload() {
  position_known_ = false;
  early_warning_ = false;
  CO_TRY_VOID(co_await run_checked(scsi::prevent_removal(false), Relative::no, "ALLOW MEDIUM REMOVAL"));
  CO_TRY(const auto reply, co_await run(scsi::unload(), Relative::no));
  const bool empty = reply.status == scsi::Status::check_condition &&
                     scsi::classify(reply.sense).action == SenseAction::insert;
  if (empty) co_return Result<void>{};
  co_return scsi::check(reply, "UNLOAD on " + device_.name());
}

// ---- positioning ----

Task<void> Drive::rewind() {
  CO_TRY_VOID(co_await run_checked(scsi::rewind(scsi::Immediate::no), Relative::no, "REWIND"));
  early_warning_ = false;
  CO_TRY(const auto position, co_await read_position());
  if (position.block != 0) {
    position_known_ = false;
    co_return fail(Code::unavailable, device_.name() + ": REWIND did not reach the beginning", Scope::drive);
  }
  co_return Result<void>{};
}

Task<void> Drive::locate(Position to) {
  std::optional<std::uint8_t> partition;
  if (!position_known_ || position_.partition != to.partition)
    partition = static_cast<std::uint8_t>(to.partition);
  const bool backward = partition.has_value() || to.block < position_.block;
  CO_TRY(const auto reply,
         co_await run(scsi::locate(scsi::LocateTo::object, to.block, partition), Relative::no));
  // A unit attention on the way may have put the drive into another partition: then the partition must be
  // named.
  if (!position_known_ && !partition) co_return co_await locate(to);
  if (is_blank_check(reply)) {
    position_known_ = false;
    co_return fail(Code::out_of_range, device_.name() + ": no such block before the end of data",
                   Scope::cartridge);
  }
  if (auto ok = scsi::check(reply, "LOCATE"); !ok) co_return lose_position(reply, "LOCATE");
  position_ = to;
  position_known_ = true;
  if (backward) early_warning_ = false;
  co_return Result<void>{};
}

Task<void> Drive::locate_end_of_data(std::uint32_t partition) {
  const auto command = scsi::locate(scsi::LocateTo::end_of_data, 0, static_cast<std::uint8_t>(partition));
  position_known_ = false;
  CO_TRY_VOID(co_await run_checked(command, Relative::no, "LOCATE to the end of data"));
  CO_TRY(const auto position, co_await read_position());
  if (position.partition != partition) {
    position_known_ = false;
    co_return fail(Code::unavailable, device_.name() + ": LOCATE went to another partition", Scope::drive);
  }
  co_return Result<void>{};
}

Task<void> Drive::space_filemarks(std::int64_t count) {
  CO_TRY_VOID(check_position_known());
  CO_TRY(const auto reply, co_await run(scsi::space(scsi::SpaceOver::filemarks, count), Relative::yes));
  position_known_ = false;
  // Either end of the partition: blank check at the end of data, no sense with EOM at the beginning.
  const bool at_end =
      is_blank_check(reply) || (reply.status == scsi::Status::check_condition &&
                                reply.sense.key == scsi::key::no_sense && !reply.sense.filemark);
  if (!at_end) CO_TRY_VOID(scsi::check(reply, "SPACE on " + device_.name()));
  CO_TRY_VOID(co_await read_position());
  if (at_end) co_return fail(Code::not_found, device_.name() + ": no more filemarks", Scope::cartridge);
  co_return Result<void>{};
}

Task<Position> Drive::read_position() {
  std::array<std::byte, 32> bytes{};
  position_known_ = false;
  CO_TRY(const auto reply,
         co_await run(scsi::read_position(scsi::PositionForm::long_form, bytes), Relative::no));
  CO_TRY_VOID(scsi::check(reply, "READ POSITION on " + device_.name()));
  CO_TRY(const auto position, scsi::parse_position(scsi::PositionForm::long_form,
                                                   base::ByteView(bytes).first(reply.data_in_bytes)));
  if (position.unknown) {
    co_return fail(Code::unavailable, device_.name() + " does not know where it stands", Scope::drive);
  }
  position_ = {.partition = position.partition, .block = position.block};
  position_known_ = true;
  early_warning_ = early_warning_ || position.early_warning || position.programmable_early_warning;
  co_return position_;
}

Task<void> Drive::confirm_position() {
  CO_TRY_VOID(check_position_known());
  const auto ours = position_;
  const auto changes = change_count_;
  CO_TRY(const auto theirs, co_await read_position());
  if (theirs == ours && changes == change_count_) co_return Result<void>{};
  position_known_ = false;
  co_return fail(Code::data_loss,
                 device_.name() + ": stands at block " + std::to_string(theirs.block) + ", " +
                     std::to_string(ours.block) + " by our count",
                 Scope::drive, base::Retry::elsewhere);
}

// ---- blocks ----

Result<BlockRead> Drive::take_read(const scsi::Reply& reply, std::size_t wanted) {
  if (reply.status == scsi::Status::good) {
    ++position_.block;
    return BlockRead{.end = ReadEnd::block, .bytes = std::min(reply.data_in_bytes, wanted)};
  }
  if (is_blank_check(reply)) {
    const bool not_found = scsi::classify(reply.sense).code == Code::data_loss;
    if (not_found) return lose_position(reply, "READ");
    return BlockRead{.end = ReadEnd::end_of_data, .bytes = 0};
  }
  if (!scsi::check(reply, "READ")) return lose_position(reply, "READ");
  ++position_.block;
  if (reply.sense.filemark) return BlockRead{.end = ReadEnd::filemark, .bytes = 0};
  if (reply.sense.incorrect_length && reply.sense.information_valid) {
    const auto missing = reply.sense.information;
    if (missing < 0) {
      return fail(Code::too_large, device_.name() + ": a block larger than the volume's block size",
                  Scope::cartridge);
    }
    if (static_cast<std::uint64_t>(missing) > wanted) return lose_position(reply, "READ");
    return BlockRead{.end = ReadEnd::block, .bytes = wanted - static_cast<std::size_t>(missing)};
  }
  return BlockRead{.end = ReadEnd::block, .bytes = std::min(reply.data_in_bytes, wanted)};
}

Task<BlockRead> Drive::read_block(base::MutableBytes into) {
  CO_TRY_VOID(check_position_known());
  const auto executed = co_await run(scsi::read(into, false), Relative::yes);
  if (!executed) {
    position_known_ = false;
    co_return executed.error();
  }
  co_return take_read(*executed, into.size());
}

Result<void> Drive::take_write(const scsi::Reply& reply, std::uint64_t blocks, std::string_view what) {
  if (!scsi::check(reply, what)) return lose_position(reply, what);
  position_.block += blocks;
  if (reply.status == scsi::Status::check_condition && reply.sense.end_of_medium) early_warning_ = true;
  return {};
}

Task<void> Drive::write_block(base::ByteView block) {
  CO_TRY_VOID(check_position_known());
  const auto executed = co_await run(scsi::write(block), Relative::yes);
  if (!executed) {
    position_known_ = false;  // it may have been written or not
    co_return executed.error();
  }
  co_return take_write(*executed, 1, "WRITE");
}

Task<void> Drive::write_filemarks(std::uint32_t count, bool immediate) {
  CO_TRY_VOID(check_position_known());
  const auto command = scsi::write_filemarks(count, immediate ? scsi::Immediate::yes : scsi::Immediate::no);
  const auto executed = co_await run(command, Relative::yes);
  if (!executed) {
    position_known_ = false;
    co_return executed.error();
  }
  co_return take_write(*executed, count, "WRITE FILEMARKS");
}

// ---- cartridge memory and format ----

Task<std::optional<base::Bytes>> Drive::read_attribute(std::uint32_t partition, std::uint16_t id) {
  base::Bytes bytes(kAttributeBytes);
  const auto command = scsi::read_attribute(static_cast<std::uint8_t>(partition), id, bytes);
  CO_TRY(const auto reply, co_await run(command, Relative::no));
  if (is_illegal(reply)) co_return std::nullopt;  // no cartridge memory, or no such attribute
  CO_TRY_VOID(scsi::check(reply, "READ ATTRIBUTE on " + device_.name()));
  CO_TRY(auto attributes, scsi::parse_attributes(base::ByteView(bytes).first(reply.data_in_bytes)));
  for (auto& attribute : attributes) {
    if (attribute.id == id && !attribute.value.empty()) co_return std::move(attribute.value);
  }
  co_return std::nullopt;
}

Task<void> Drive::write_attribute(std::uint32_t partition, scsi::Attribute attribute) {
  const auto parameters = scsi::encode_attributes({std::move(attribute)});
  const auto command = scsi::write_attribute(static_cast<std::uint8_t>(partition), parameters);
  co_return co_await run_checked(command, Relative::no, "WRITE ATTRIBUTE");
}

Task<Capacity> Drive::capacity(std::uint32_t partition) {
  CO_TRY(const auto remaining, co_await read_attribute(partition, scsi::attribute::remaining_capacity));
  CO_TRY(const auto maximum, co_await read_attribute(partition, scsi::attribute::maximum_capacity));
  if (!remaining || !maximum || remaining->size() != 8 || maximum->size() != 8) {
    co_return fail(Code::unsupported, device_.name() + ": the cartridge memory tells no capacity",
                   Scope::cartridge);
  }
  const auto mebibytes = [](const base::Bytes& value) {
    return std::min(scsi::get_u64(value, 0), UINT64_MAX / base::kMiB) * base::kMiB;
  };
  co_return Capacity{.remaining = mebibytes(*remaining), .maximum = mebibytes(*maximum)};
}

Task<void> Drive::format_two_partitions() {
  CO_TRY_VOID(co_await locate({.partition = 0, .block = 0}));
  base::Bytes bytes(252);
  CO_TRY(const auto reply, co_await run(scsi::mode_sense(kMediumPartitionPage, 0, bytes), Relative::no));
  CO_TRY_VOID(scsi::check(reply, "MODE SENSE on " + device_.name()));
  CO_TRY(const auto mode, scsi::parse_mode_data(base::ByteView(bytes).first(reply.data_in_bytes)));
  const auto* page = mode.find(kMediumPartitionPage);
  if (page == nullptr) co_return fail(Code::unsupported, device_.name() + " has no partitions", Scope::drive);
  CO_TRY(auto partitions, scsi::parse_medium_partitions(page->bytes));
  if (partitions.additional_max < 1) {
    co_return fail(Code::unsupported, "the cartridge cannot be partitioned", Scope::cartridge);
  }
  partitions.additional = 1;
  partitions.unit_power = 9;
  partitions.sizes = {1, 0xffff};  // the drive rounds 1 GB up to its smallest partition; the rest is data
  const auto parameters = scsi::encode_mode_select({scsi::encode_medium_partitions(partitions)});
  CO_TRY_VOID(co_await run_checked(scsi::mode_select(parameters), Relative::no, "MODE SELECT"));
  position_known_ = false;
  const auto format = scsi::format_medium(scsi::FormatKind::by_mode_page);
  CO_TRY_VOID(co_await run_checked(format, Relative::no, "FORMAT MEDIUM"));
  early_warning_ = false;
  co_return co_await locate({.partition = 0, .block = 0});
}

Task<bool> Drive::is_write_protected() {
  base::Bytes bytes(252);
  CO_TRY(const auto reply, co_await run(scsi::mode_sense(kDeviceConfigurationPage, 0, bytes), Relative::no));
  CO_TRY_VOID(scsi::check(reply, "MODE SENSE on " + device_.name()));
  CO_TRY(const auto mode, scsi::parse_mode_data(base::ByteView(bytes).first(reply.data_in_bytes)));
  co_return mode.write_protected;
}

}  // namespace reelway::tape
