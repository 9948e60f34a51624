#include "scsi/commands.h"

#include "scsi/fields.h"

namespace reelway::scsi {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr base::Duration kQuick = minutes{2};
constexpr base::Duration kTransfer = minutes{25};  // error recovery of a drive takes many minutes
constexpr base::Duration kPosition = minutes{40};  // end to end, with recovery
constexpr base::Duration kLoad = hours{3};  // LTO-9 characterizes a new cartridge for up to 132 minutes
constexpr base::Duration kFormat = hours{4};
constexpr base::Duration kWholeErase = hours{20};
constexpr base::Duration kRobot = minutes{15};

class Builder {
 public:
  Builder(std::uint8_t opcode, std::uint8_t length, base::Duration timeout) {
    command_.cdb.bytes[0] = opcode;
    command_.cdb.length = length;
    command_.timeout = timeout;
  }
  Builder& put(std::size_t offset, std::size_t width, std::uint64_t value) {
    put_field(std::as_writable_bytes(std::span(command_.cdb.bytes)), offset, width, value);
    return *this;
  }
  Builder& in(base::MutableBytes bytes) {
    command_.data_in = bytes;
    return *this;
  }
  Builder& out(base::ByteView bytes) {
    command_.data_out = bytes;
    return *this;
  }
  operator Command() const { return command_; }  // NOLINT(google-explicit-constructor)

 private:
  Command command_;
};

}  // namespace

Command test_unit_ready() { return Builder(op::test_unit_ready, 6, kQuick); }

Command inquiry(base::MutableBytes in) { return Builder(op::inquiry, 6, kQuick).put(3, 2, in.size()).in(in); }

Command inquiry_page(std::uint8_t page, base::MutableBytes in) {
  return Builder(op::inquiry, 6, kQuick).put(1, 1, 0x01).put(2, 1, page).put(3, 2, in.size()).in(in);
}

Command request_sense(base::MutableBytes in) {
  return Builder(op::request_sense, 6, kQuick).put(4, 1, in.size()).in(in);
}

Command mode_sense(std::uint8_t page, std::uint8_t subpage, base::MutableBytes in) {
  return Builder(op::mode_sense_10, 10, kQuick)
      .put(2, 1, page)
      .put(3, 1, subpage)
      .put(7, 2, in.size())
      .in(in);
}

Command mode_select(base::ByteView parameters) {
  return Builder(op::mode_select_10, 10, kQuick).put(1, 1, 0x10).put(7, 2, parameters.size()).out(parameters);
}

Command log_sense(std::uint8_t page, base::MutableBytes in) {
  return Builder(op::log_sense, 10, kQuick).put(2, 1, 0x40U | page).put(7, 2, in.size()).in(in);
}

Command prevent_removal(bool prevent) {
  return Builder(op::prevent_allow, 6, kQuick).put(4, 1, prevent ? 1 : 0);
}

Command reserve() { return Builder(op::reserve_6, 6, kQuick); }

Command release() { return Builder(op::release_6, 6, kQuick); }

Command report_opcodes(base::MutableBytes in) {
  return Builder(op::maintenance_in, 12, kQuick).put(1, 1, 0x0c).put(2, 1, 0x80).put(6, 4, in.size()).in(in);
}

Command read(base::MutableBytes block, bool suppress_incorrect_length) {
  return Builder(op::read_6, 6, kTransfer)
      .put(1, 1, suppress_incorrect_length ? 0x02 : 0)
      .put(2, 3, block.size())
      .in(block);
}

Command write(base::ByteView block) {
  return Builder(op::write_6, 6, kTransfer).put(2, 3, block.size()).out(block);
}

Command write_filemarks(std::uint32_t count, Immediate immediate) {
  return Builder(op::write_filemarks_6, 6, kTransfer)
      .put(1, 1, immediate == Immediate::yes ? 1 : 0)
      .put(2, 3, count);
}

Command read_position(PositionForm form, base::MutableBytes in) {
  // Only the extended form has an allocation length; the others must leave it zero (SSC-5 section 7.7).
  const std::uint64_t allocation = form == PositionForm::extended_form ? in.size() : 0;
  return Builder(op::read_position, 10, kQuick)
      .put(1, 1, static_cast<std::uint8_t>(form))
      .put(7, 2, allocation)
      .in(in);
}

Command locate(LocateTo to, std::uint64_t identifier, std::optional<std::uint8_t> partition) {
  const unsigned flags = static_cast<unsigned>(to) << 3 | (partition ? 0x02U : 0U);
  return Builder(op::locate_16, 16, kPosition)
      .put(1, 1, flags)
      .put(3, 1, partition.value_or(0))
      .put(4, 8, identifier);
}

Command space(SpaceOver over, std::int64_t count) {
  return Builder(op::space_16, 16, kPosition)
      .put(1, 1, static_cast<std::uint8_t>(over))
      .put(4, 8, static_cast<std::uint64_t>(count));
}

Command rewind(Immediate immediate) {
  return Builder(op::rewind, 6, kPosition).put(1, 1, immediate == Immediate::yes ? 1 : 0);
}

Command load() { return Builder(op::load_unload, 6, kLoad).put(4, 1, 0x01); }

Command load_hold() { return Builder(op::load_unload, 6, kLoad).put(4, 1, 0x09); }

Command unload() { return Builder(op::load_unload, 6, kPosition); }

Command read_block_limits(base::MutableBytes in) { return Builder(op::read_block_limits, 6, kQuick).in(in); }

Command format_medium(FormatKind kind) {
  return Builder(op::format_medium, 6, kFormat).put(2, 1, static_cast<std::uint8_t>(kind));
}

Command set_capacity(std::uint16_t proportion) {
  return Builder(op::set_capacity, 6, kFormat).put(3, 2, proportion);
}

Command erase(bool whole) {
  return Builder(op::erase, 6, whole ? kWholeErase : kPosition).put(1, 1, whole ? 1 : 0);
}

Command allow_overwrite(std::uint8_t mode, std::uint8_t partition, std::uint64_t block) {
  return Builder(op::allow_overwrite, 16, kQuick).put(2, 1, mode).put(3, 1, partition).put(4, 8, block);
}

Command read_attribute(std::uint8_t partition, std::uint16_t first, base::MutableBytes in) {
  return Builder(op::read_attribute, 16, kQuick)
      .put(7, 1, partition)
      .put(8, 2, first)
      .put(10, 4, in.size())
      .in(in);
}

Command list_attributes(std::uint8_t partition, base::MutableBytes in) {
  return Builder(op::read_attribute, 16, kQuick)
      .put(1, 1, 0x01)
      .put(7, 1, partition)
      .put(10, 4, in.size())
      .in(in);
}

Command write_attribute(std::uint8_t partition, base::ByteView parameters) {
  return Builder(op::write_attribute, 16, kQuick)
      .put(1, 1, 0x01)  // WTC: through to the cartridge memory, not only the cache
      .put(7, 1, partition)
      .put(10, 4, parameters.size())
      .out(parameters);
}

Command report_density(bool of_medium, base::MutableBytes in) {
  return Builder(op::report_density, 10, kQuick).put(1, 1, of_medium ? 1 : 0).put(7, 2, in.size()).in(in);
}

Command read_element_status(const ElementQuery& query, base::MutableBytes in) {
  const unsigned flags = (query.volume_tags ? 0x10U : 0U) | static_cast<unsigned>(query.type);
  return Builder(op::read_element_status, 12, kRobot)
      .put(1, 1, flags)
      .put(2, 2, query.first)
      .put(4, 2, query.count_max)
      .put(6, 1, query.device_ids ? 0x01 : 0)
      .put(7, 3, in.size())
      .in(in);
}

Command move_medium(const Move& move) {
  return Builder(op::move_medium, 12, kRobot)
      .put(2, 2, move.picker)
      .put(4, 2, move.source)
      .put(6, 2, move.destination);
}

Command initialize_element_status() { return Builder(op::initialize_element_status, 6, hours{1}); }

Command initialize_element_status_range(std::uint16_t first, std::uint16_t count) {
  return Builder(op::initialize_element_status_range, 10, hours{1})
      .put(1, 1, 0x01)
      .put(2, 2, first)
      .put(6, 2, count);
}

}  // namespace reelway::scsi
