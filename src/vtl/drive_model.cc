#include "vtl/drive_model.h"

#include <fmt/format.h>

#include "scsi/commands.h"
#include "scsi/fields.h"

namespace reelway::vtl {
namespace {

using scsi::get_field;
using scsi::get_u24;
using scsi::get_u8;
namespace op = scsi::op;

const scsi::Sense kPowerOn = sense(scsi::key::unit_attention, 0x29, 0x00);
const scsi::Sense kMediumChanged = sense(scsi::key::unit_attention, 0x28, 0x00);

std::int64_t sign_extended(std::uint32_t value24) { return static_cast<std::int32_t>(value24 << 8) >> 8; }

bool always_answers(std::uint8_t opcode) {
  return opcode == op::inquiry || opcode == op::request_sense || opcode == op::report_luns;
}

}  // namespace

DriveModel::DriveModel(std::uint32_t index, media::Generation generation)
    : generation_(generation), serial_(fmt::format("RWDRV{:05}", index)) {
  attentions_.add(kPowerOn);
}

Outcome DriveModel::execute(const scsi::Command& command, double now_s) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::loading && now_s >= ready_s_) finish_loading();
  const std::uint8_t opcode = command.cdb.bytes[0];
  if (!attentions_.empty() && !always_answers(opcode)) return failed(attentions_.take());
  return dispatch(command, now_s);
}

void DriveModel::finish_loading() {
  state_ = State::loaded;
  partition_ = 0;
  block_ = bytes_at_ = 0;
  attentions_.add(kMediumChanged);
  // A memory that cannot be written shows at the next write; loading goes on as with a worn chip.
  (void)cartridge_->count_load();
}

std::optional<scsi::Sense> DriveModel::not_ready(double now_s) {
  switch (state_) {
    case State::loaded:
      return std::nullopt;
    case State::loading:
      if (now_s >= ready_s_) return std::nullopt;
      return sense(scsi::key::not_ready, 0x04, 0x01);
    case State::held:
      return sense(scsi::key::not_ready, 0x3a, 0x04);
    case State::empty:
    case State::unloaded:
      break;
  }
  return sense(scsi::key::not_ready, 0x3a, 0x00);
}

Outcome DriveModel::dispatch(const scsi::Command& command, double now_s) {
  const base::ByteView cdb = cdb_of(command);
  switch (get_u8(cdb, 0)) {
    case op::inquiry:
      return inquiry(command);
    case op::request_sense:
      return request_sense(command);
    case op::read_block_limits: {
      base::Bytes limits(6);
      scsi::put_field(limits, 1, 3, kBlockBytesMax);
      scsi::put_field(limits, 4, 2, 1);
      return data_reply(command, limits, limits.size());
    }
    case op::mode_sense_6:
      return mode_sense(command, false);
    case op::mode_sense_10:
      return mode_sense(command, true);
    case op::mode_select_6:
      return mode_select(command, false);
    case op::mode_select_10:
      return mode_select(command, true);
    case op::log_sense:
      return log_sense(command);
    case op::report_density:
      return report_density(command);
    case op::maintenance_in:
      return report_opcodes(command);
    case op::prevent_allow:
      prevented_ = (get_u8(cdb, 4) & 0x01) != 0;
      return {};
    case op::reserve_6:
    case op::release_6:
      return {};  // one initiator: the process that owns the library
    case op::load_unload:
      return load_unload(command);
    default:
      break;
  }
  const bool held = state_ == State::held;
  if (const auto why = not_ready(now_s)) {
    const std::uint8_t opcode = get_u8(cdb, 0);
    const bool memory_only = held && (opcode == op::read_attribute || opcode == op::write_attribute);
    if (!memory_only) return failed(*why);
  }
  switch (get_u8(cdb, 0)) {
    case op::test_unit_ready:
      return {};
    case op::rewind:
      return rewind((get_u8(cdb, 1) & 0x01) != 0);
    case op::format_medium:
      return format_medium(command);
    case op::read_6:
      return read(command);
    case op::write_6:
      return write(command);
    case op::set_capacity:
      return set_capacity(command);
    case op::write_filemarks_6:
      return write_filemarks(command, get_u24(cdb, 2));
    case op::write_filemarks_16:
      return write_filemarks(command, get_u24(cdb, 12));
    case op::space_6:
      return space(command, sign_extended(get_u24(cdb, 2)));
    case op::space_16:
      return space(command, static_cast<std::int64_t>(get_field(cdb, 4, 8)));
    case op::erase:
      return erase(command);
    case op::locate_10:
    case op::locate_16:
      return locate(command);
    case op::read_position:
      return read_position(command);
    case op::read_attribute:
      return read_attribute(command);
    case op::write_attribute:
      return write_attribute(command);
    default:
      return illegal(0x20, 0x00);
  }
}

bool DriveModel::empty() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::empty;
}

bool DriveModel::loaded() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::loading || state_ == State::held || state_ == State::loaded;
}

bool DriveModel::removal_prevented() const {
  const std::lock_guard lock(mutex_);
  return prevented_;
}

void DriveModel::insert(std::shared_ptr<Cartridge> cartridge, double ready_s) {
  const std::lock_guard lock(mutex_);
  cartridge_ = std::move(cartridge);
  state_ = State::loading;
  ready_s_ = ready_s;
  written_this_load_ = read_this_load_ = 0;
  change_reference_used_ = true;
  told_programmable_warning_ = false;
  next_additional_partitions_ = static_cast<std::uint8_t>(cartridge_->partition_count() - 1);
}

std::shared_ptr<Cartridge> DriveModel::eject() {
  const std::lock_guard lock(mutex_);
  state_ = State::empty;
  return std::exchange(cartridge_, nullptr);
}

std::shared_ptr<Cartridge> DriveModel::cartridge() const {
  const std::lock_guard lock(mutex_);
  return cartridge_;
}

void DriveModel::power_on() {
  const std::lock_guard lock(mutex_);
  if (cartridge_ != nullptr) {
    state_ = State::loading;
    ready_s_ = 0;
    finish_loading();
  }
  prevented_ = false;
  written_this_load_ = read_this_load_ = 0;
  change_reference_used_ = true;
  told_programmable_warning_ = false;
  programmable_warning_mb_ = 0;
  alerts_ = 0;
  attentions_.clear();
  attentions_.add(kPowerOn);
}

}  // namespace reelway::vtl
