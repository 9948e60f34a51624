// Blocks, filemarks and positions (SSC-5 sections 5 and 7).

#include <algorithm>

#include "media/cost.h"
#include "scsi/commands.h"
#include "scsi/fields.h"
#include "vtl/drive_model.h"

namespace reelway::vtl {
namespace {

using scsi::get_field;
using scsi::get_u24;
using scsi::get_u32;
using scsi::get_u64;
using scsi::get_u8;
using scsi::put_field;

constexpr std::uint64_t kBytesPerMb = 1'000'000;
constexpr std::uint8_t kReadFailureAlert = 5, kWriteFailureAlert = 6;

scsi::Sense with_information(scsi::Sense sense, std::int64_t information) {
  sense.information_valid = true;
  sense.information = information;
  return sense;
}

const scsi::Sense kFilemark{.key = 0, .asc = 0x00, .ascq = 0x01, .filemark = true};
const scsi::Sense kBeginning{.key = 0, .asc = 0x00, .ascq = 0x04, .end_of_medium = true};
const scsi::Sense kEndOfData{.key = scsi::key::blank_check, .asc = 0x00, .ascq = 0x05};
const scsi::Sense kReadError{.key = scsi::key::medium_error, .asc = 0x11, .ascq = 0x00};
const scsi::Sense kWriteError{.key = scsi::key::medium_error, .asc = 0x0c, .ascq = 0x00};
const scsi::Sense kEarlyWarning{.key = 0, .asc = 0x00, .ascq = 0x02, .end_of_medium = true};
const scsi::Sense kProgrammableWarning{.key = 0, .asc = 0x00, .ascq = 0x07, .end_of_medium = true};
const scsi::Sense kFull{.key = scsi::key::volume_overflow, .asc = 0x00, .ascq = 0x02, .end_of_medium = true};

}  // namespace

media::HeadPosition DriveModel::head() { return cartridge_->head_at(partition_, bytes_at_); }

Outcome DriveModel::media_failure(const scsi::Sense& why) {
  alerts_ |= std::uint64_t{1} << (why.asc == kReadError.asc ? kReadFailureAlert : kWriteFailureAlert);
  return failed(why);
}

Outcome DriveModel::read(const scsi::Command& command) {
  const base::ByteView cdb = cdb_of(command);
  const bool fixed = (get_u8(cdb, 1) & 0x01) != 0;
  const bool silent = (get_u8(cdb, 1) & 0x02) != 0;
  const std::uint32_t requested = get_u24(cdb, 2);
  if (fixed || requested > kBlockBytesMax || command.data_in.size() < requested) return invalid_field();
  if (requested == 0) return {};
  Partition& partition = here();
  if (block_ >= partition.count()) return failed(with_information(kEndOfData, requested));
  const auto record = partition.record(block_);
  if (!record) return media_failure(with_information(kReadError, requested));
  const std::uint64_t from = bytes_at_;
  ++block_;
  bytes_at_ = record->position + record->length;
  if (record->kind == RecordKind::filemark) return failed(with_information(kFilemark, requested));

  const std::uint32_t transferred = std::min(requested, record->length);
  if (!partition.read(*record, command.data_in.first(transferred))) {
    return media_failure(with_information(kReadError, requested));
  }
  read_this_load_ += record->length;
  Outcome outcome{.reply = {.data_in_bytes = transferred, .residual = command.data_in.size() - transferred}};
  outcome.charge.kind = Charge::Kind::read;
  outcome.charge.seconds.transfer = media::transfer_s(cartridge_->personality(), from, record->length);
  if (record->length != requested && !silent) {
    scsi::Reply told =
        check_condition({.incorrect_length = true,
                         .information_valid = true,
                         .information = std::int64_t{requested} - std::int64_t{record->length}});
    told.data_in_bytes = outcome.reply.data_in_bytes;
    told.residual = outcome.reply.residual;
    outcome.reply = std::move(told);
  }
  return outcome;
}

std::optional<scsi::Sense> DriveModel::before_writing() {
  if (cartridge_->write_protected()) return sense(scsi::key::data_protect, 0x27, 0x00);
  // The reference changes before the medium does, so that no coherent-looking memory outlives a change.
  if (change_reference_used_) {
    if (!cartridge_->bump_change_reference()) return kWriteError;
    change_reference_used_ = false;
  }
  if (block_ < here().count() && !here().truncate(block_)) return kWriteError;
  return std::nullopt;
}

std::uint64_t DriveModel::early_warning_bytes() const {
  const auto capacity = static_cast<double>(cartridge_->capacity_bytes(partition_));
  return static_cast<std::uint64_t>(capacity * cartridge_->personality().early_warning_fraction);
}

std::uint64_t DriveModel::programmable_warning_bytes() const {
  const std::uint64_t zone = programmable_warning_mb_ * kBytesPerMb;
  const std::uint64_t early = early_warning_bytes();
  return early - std::min(early, zone);
}

std::optional<scsi::Sense> DriveModel::warning_after_write() {
  if (bytes_at_ >= early_warning_bytes()) return kEarlyWarning;
  if (programmable_warning_mb_ == 0) return std::nullopt;
  if (bytes_at_ < programmable_warning_bytes()) {
    told_programmable_warning_ = false;
    return std::nullopt;
  }
  if (std::exchange(told_programmable_warning_, true)) return std::nullopt;
  return kProgrammableWarning;
}

Outcome DriveModel::write(const scsi::Command& command) {
  const base::ByteView cdb = cdb_of(command);
  const std::uint32_t length = get_u24(cdb, 2);
  if ((get_u8(cdb, 1) & 0x01) != 0 || length > kBlockBytesMax || command.data_out.size() < length)
    return invalid_field();
  if (length == 0) return {};
  // Checked before anything is truncated: a refused block leaves the medium as it was.
  if (bytes_at_ + length > cartridge_->capacity_bytes(partition_))
    return failed(with_information(kFull, length));
  if (const auto why = before_writing()) return media_failure(*why);
  if (!here().append(command.data_out.first(length)))
    return media_failure(with_information(kWriteError, length));
  Outcome outcome;
  outcome.charge.kind = Charge::Kind::write;
  outcome.charge.seconds.transfer = media::transfer_s(cartridge_->personality(), bytes_at_, length);
  ++block_;
  bytes_at_ += length;
  written_this_load_ += length;
  if (const auto warning = warning_after_write())
    outcome.reply = check_condition(with_information(*warning, 0));
  return outcome;
}

Outcome DriveModel::write_filemarks(const scsi::Command& command, std::uint64_t count) {
  const std::uint8_t flags = get_u8(cdb_of(command), 1);
  const bool immediate = (flags & 0x01) != 0;
  if ((flags & 0x02) != 0) return invalid_field();  // setmarks
  Outcome outcome;
  if (count > 0) {
    if (const auto why = before_writing()) return media_failure(*why);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!here().append_filemark()) return media_failure(kWriteError);
    }
    block_ += count;
    if (const auto warning = warning_after_write())
      outcome.reply = check_condition(with_information(*warning, 0));
  }
  if (immediate) return outcome;
  for (std::uint8_t number = 0; number < cartridge_->partition_count(); ++number) {
    Partition& partition = cartridge_->partition(number);
    if (partition.unsynced_count() == 0) continue;
    outcome.charge.kind = Charge::Kind::flush;
    if (!partition.sync()) return media_failure(kWriteError);
  }
  return outcome;
}

Charge DriveModel::motion_to(std::uint8_t partition, std::uint64_t bytes) {
  Charge charge{.kind = Charge::Kind::motion};
  charge.seconds.locate =
      media::locate_s(cartridge_->personality(), head(), cartridge_->head_at(partition, bytes));
  return charge;
}

/// To `block` of this partition, with what there is to tell.
Outcome DriveModel::move_head(std::uint64_t block, const scsi::Sense* told) {
  const auto bytes = here().position_of(block);
  if (!bytes) return media_failure(sense(scsi::key::medium_error, 0x3b, 0x00));
  Outcome outcome{.charge = motion_to(partition_, *bytes)};
  block_ = block;
  bytes_at_ = *bytes;
  if (told != nullptr) outcome.reply = check_condition(*told);
  return outcome;
}

Outcome DriveModel::space(const scsi::Command& command, std::int64_t count) {
  switch (get_u8(cdb_of(command), 1) & 0x0f) {
    case 0:
      return space_blocks(count);
    case 1:
      return space_filemarks(count);
    case 3:
      return move_head(here().count(), nullptr);
    default:
      return invalid_field();
  }
}

Outcome DriveModel::space_blocks(std::int64_t count) {
  Partition& partition = here();
  const auto marks_before = partition.filemarks_before(block_);
  if (!marks_before) return media_failure(kReadError);
  if (count >= 0) {
    const std::uint64_t wanted = static_cast<std::uint64_t>(count);
    const auto mark =
        *marks_before < partition.filemarks() ? partition.filemark(*marks_before) : partition.count();
    if (!mark) return media_failure(kReadError);
    const std::uint64_t free = *mark - block_;
    if (wanted <= free) return move_head(block_ + wanted, nullptr);
    const auto left = static_cast<std::int64_t>(wanted - free);
    const bool at_mark = *mark < partition.count();
    const scsi::Sense told = with_information(at_mark ? kFilemark : kEndOfData, left);
    return move_head(at_mark ? *mark + 1 : *mark, &told);
  }
  const std::uint64_t wanted = 0 - static_cast<std::uint64_t>(count);
  std::uint64_t floor = 0;  // the first block after the filemark behind us
  if (*marks_before > 0) {
    const auto mark = partition.filemark(*marks_before - 1);
    if (!mark) return media_failure(kReadError);
    floor = *mark + 1;
  }
  const std::uint64_t free = block_ - floor;
  if (wanted <= free) return move_head(block_ - wanted, nullptr);
  const scsi::Sense told =
      with_information(*marks_before > 0 ? kFilemark : kBeginning, static_cast<std::int64_t>(wanted - free));
  return move_head(*marks_before > 0 ? floor - 1 : 0, &told);
}

Outcome DriveModel::space_filemarks(std::int64_t count) {
  Partition& partition = here();
  const auto marks_before = partition.filemarks_before(block_);
  if (!marks_before) return media_failure(kReadError);
  if (count == 0) return {};
  if (count > 0) {
    const std::uint64_t wanted = static_cast<std::uint64_t>(count);
    const std::uint64_t ahead = partition.filemarks() - *marks_before;
    if (wanted > ahead) {
      const scsi::Sense told = with_information(kEndOfData, static_cast<std::int64_t>(wanted - ahead));
      return move_head(partition.count(), &told);
    }
    const auto mark = partition.filemark(*marks_before + wanted - 1);
    if (!mark) return media_failure(kReadError);
    return move_head(*mark + 1, nullptr);
  }
  const std::uint64_t wanted = 0 - static_cast<std::uint64_t>(count);
  if (wanted > *marks_before) {
    const scsi::Sense told = with_information(kBeginning, static_cast<std::int64_t>(wanted - *marks_before));
    return move_head(0, &told);
  }
  const auto mark = partition.filemark(*marks_before - wanted);
  if (!mark) return media_failure(kReadError);
  return move_head(*mark, nullptr);
}

Outcome DriveModel::locate_to(std::uint8_t partition_number, std::uint64_t block, bool immediate) {
  Partition& partition = cartridge_->partition(partition_number);
  const bool beyond = block > partition.count();
  const std::uint64_t reached = std::min(block, partition.count());
  const auto bytes = partition.position_of(reached);
  if (!bytes) return media_failure(sense(scsi::key::medium_error, 0x3b, 0x00));
  Outcome outcome{.charge = motion_to(partition_number, *bytes)};
  outcome.charge.immediate = immediate;
  if (partition_number != partition_) told_programmable_warning_ = false;
  partition_ = partition_number;
  block_ = reached;
  bytes_at_ = *bytes;
  if (beyond) outcome.reply = check_condition(kEndOfData);
  return outcome;
}

Outcome DriveModel::locate(const scsi::Command& command) {
  const base::ByteView cdb = cdb_of(command);
  const bool long_form = get_u8(cdb, 0) == scsi::op::locate_16;
  const std::uint8_t flags = get_u8(cdb, 1);
  const bool immediate = (flags & 0x01) != 0;
  std::uint8_t target = partition_;
  if ((flags & 0x02) != 0) target = get_u8(cdb, long_form ? 3 : 8);
  if (target >= cartridge_->partition_count()) return invalid_field();
  Partition& partition = cartridge_->partition(target);
  const std::uint64_t identifier = long_form ? get_u64(cdb, 4) : get_u32(cdb, 3);
  switch (long_form ? (flags >> 3) & 0x03 : 0) {
    case 0:
      return locate_to(target, identifier, immediate);
    case 1: {
      if (identifier == 0) return locate_to(target, 0, immediate);
      if (identifier > partition.filemarks()) return locate_to(target, UINT64_MAX, immediate);
      const auto mark = partition.filemark(identifier - 1);
      if (!mark) return media_failure(kReadError);
      return locate_to(target, *mark + 1, immediate);
    }
    case 3:
      return locate_to(target, partition.count(), immediate);
    default:
      return invalid_field();
  }
}

Outcome DriveModel::rewind(bool immediate) {
  Outcome outcome;
  outcome.charge.kind = Charge::Kind::motion;
  outcome.charge.immediate = immediate;
  outcome.charge.seconds.rewind = media::rewind_s(cartridge_->personality(), head());
  block_ = bytes_at_ = 0;
  return outcome;
}

Outcome DriveModel::read_position(const scsi::Command& command) {
  Partition& partition = here();
  const auto marks = partition.filemarks_before(block_);
  if (!marks) return media_failure(kReadError);
  unsigned flags = block_ == 0 ? 0x80 : 0;
  if (bytes_at_ >= early_warning_bytes()) flags |= 0x40;
  if (programmable_warning_mb_ > 0 && bytes_at_ >= programmable_warning_bytes()) flags |= 0x01;
  const std::uint64_t buffered = partition.unsynced_count();
  const std::uint64_t on_tape = partition.count() - buffered;
  base::Bytes reply(32);
  switch (get_u8(cdb_of(command), 1) & 0x1f) {
    case 0x00: {
      reply.resize(20);
      const bool too_far = block_ > UINT32_MAX;
      put_field(reply, 0, 1, flags | (too_far ? 0x04U : 0U));
      put_field(reply, 1, 1, partition_);
      put_field(reply, 4, 4, too_far ? 0 : block_);
      put_field(reply, 8, 4, too_far ? 0 : std::min(block_, on_tape));
      put_field(reply, 13, 3, std::min<std::uint64_t>(buffered, 0xff'ffff));
      put_field(reply, 16, 4, std::min<std::uint64_t>(partition.unsynced_bytes(), UINT32_MAX));
      break;
    }
    case 0x06:
      put_field(reply, 0, 1, flags);
      put_field(reply, 4, 4, partition_);
      put_field(reply, 8, 8, block_);
      put_field(reply, 16, 8, *marks);
      break;
    case 0x08:
      put_field(reply, 0, 1, flags);
      put_field(reply, 1, 1, partition_);
      put_field(reply, 2, 2, 28);
      put_field(reply, 5, 3, std::min<std::uint64_t>(buffered, 0xff'ffff));
      put_field(reply, 8, 8, block_);
      put_field(reply, 16, 8, std::min(block_, on_tape));
      put_field(reply, 24, 8, partition.unsynced_bytes());
      break;
    default:
      return invalid_field();
  }
  return data_reply(command, reply, reply.size());
}

Outcome DriveModel::erase(const scsi::Command& command) {
  const std::uint8_t flags = get_u8(cdb_of(command), 1);
  if (const auto why = before_writing()) return media_failure(*why);
  Outcome outcome;
  outcome.charge.kind = Charge::Kind::motion;
  outcome.charge.immediate = (flags & 0x02) != 0;
  if ((flags & 0x01) != 0) {
    const std::uint64_t rest =
        cartridge_->capacity_bytes(partition_) - std::min(bytes_at_, cartridge_->capacity_bytes(partition_));
    outcome.charge.seconds.transfer = media::transfer_s(cartridge_->personality(), bytes_at_, rest);
  }
  if (!here().sync()) return media_failure(kWriteError);
  return outcome;
}

Outcome DriveModel::format_medium(const scsi::Command& command) {
  const base::ByteView cdb = cdb_of(command);
  const std::uint8_t kind = get_u8(cdb, 2) & 0x0f;
  if (kind > 2) return invalid_field();
  if (partition_ != 0 || block_ != 0) return illegal(0x3b, 0x0c);
  if (cartridge_->write_protected()) return failed(sense(scsi::key::data_protect, 0x27, 0x00));
  const auto count = static_cast<std::uint8_t>(kind == 0 ? 1 : next_additional_partitions_ + 1);
  if (!cartridge_->format(count)) return media_failure(sense(scsi::key::medium_error, 0x31, 0x00));
  change_reference_used_ = true;
  Outcome outcome;
  outcome.charge.kind = Charge::Kind::motion;
  outcome.charge.immediate = (get_u8(cdb, 1) & 0x01) != 0;
  // To the first block of the other partition and back.
  const media::HeadPosition far = cartridge_->head_at(static_cast<std::uint8_t>(count - 1), 0);
  outcome.charge.seconds.locate = 2 * media::locate_s(cartridge_->personality(), head(), far);
  outcome.charge.seconds.flush = cartridge_->personality().flush_s * count;
  return outcome;
}

Outcome DriveModel::set_capacity(const scsi::Command& command) {
  if (partition_ != 0 || block_ != 0) return illegal(0x3b, 0x0c);
  if (cartridge_->write_protected()) return failed(sense(scsi::key::data_protect, 0x27, 0x00));
  const auto proportion = scsi::get_u16(cdb_of(command), 3);
  if (!cartridge_->set_proportion(proportion)) return media_failure(kWriteError);
  change_reference_used_ = true;
  next_additional_partitions_ = 0;
  return {};
}

Outcome DriveModel::unload(bool immediate) {
  if (state_ == State::empty || state_ == State::unloaded) return {};
  if (prevented_) return illegal(0x53, 0x02);
  Outcome outcome;
  outcome.charge.kind = Charge::Kind::motion;
  outcome.charge.immediate = immediate;
  if (state_ == State::loaded) {
    // The drive writes out its buffer before it lets the cartridge go.
    for (std::uint8_t number = 0; number < cartridge_->partition_count(); ++number) {
      Partition& partition = cartridge_->partition(number);
      if (partition.unsynced_count() > 0 && !partition.sync()) return media_failure(kWriteError);
    }
    if (!cartridge_->count_moved(written_this_load_, read_this_load_)) return media_failure(kWriteError);
    outcome.charge.seconds.rewind = media::rewind_s(cartridge_->personality(), head());
    outcome.charge.seconds.unload =
        media::unload_s(cartridge_->personality(), head(), written_this_load_ + read_this_load_) -
        outcome.charge.seconds.rewind;
  }
  state_ = State::unloaded;
  partition_ = 0;
  block_ = bytes_at_ = 0;
  written_this_load_ = read_this_load_ = 0;
  return outcome;
}

Outcome DriveModel::load_unload(const scsi::Command& command) {
  const base::ByteView cdb = cdb_of(command);
  const bool immediate = (get_u8(cdb, 1) & 0x01) != 0;
  const std::uint8_t flags = get_u8(cdb, 4);
  if ((flags & 0x04) != 0) return invalid_field();  // EOT: no LTO drive parks there
  if (state_ == State::loading) return failed(sense(scsi::key::not_ready, 0x04, 0x01));
  if ((flags & 0x01) == 0) return unload(immediate);
  if (cartridge_ == nullptr) return failed(sense(scsi::key::not_ready, 0x3a, 0x00));
  if ((flags & 0x08) != 0) {
    if (state_ == State::loaded) return invalid_field();
    state_ = State::held;
    return {};
  }
  if (state_ == State::loaded) return rewind(immediate);
  finish_loading();
  attentions_.clear();  // the initiator that loads needs no telling
  Outcome outcome;
  outcome.charge.kind = Charge::Kind::motion;
  outcome.charge.immediate = immediate;
  outcome.charge.seconds.load = media::load_s(cartridge_->personality());
  return outcome;
}

}  // namespace reelway::vtl
