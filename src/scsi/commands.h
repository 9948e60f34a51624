#pragma once
// Builders for the commands that Reelway sends: each returns a whole Command (CDB, memory, a fitting
// timeout). Memory stays the caller's. Layouts: SPC-5 (common), SSC-5 (tape), SMC-3 (changer). Blocks are
// variable length throughout.

#include <cstdint>
#include <optional>

#include "scsi/device.h"

namespace reelway::scsi {

namespace op {
inline constexpr std::uint8_t test_unit_ready = 0x00, rewind = 0x01, request_sense = 0x03,
                              format_medium = 0x04, read_block_limits = 0x05,
                              initialize_element_status = 0x07, read_6 = 0x08, write_6 = 0x0a,
                              set_capacity = 0x0b, write_filemarks_6 = 0x10, space_6 = 0x11, inquiry = 0x12,
                              mode_select_6 = 0x15, reserve_6 = 0x16, release_6 = 0x17, erase = 0x19,
                              mode_sense_6 = 0x1a, load_unload = 0x1b, prevent_allow = 0x1e, locate_10 = 0x2b,
                              read_position = 0x34, initialize_element_status_range = 0x37,
                              report_density = 0x44, log_sense = 0x4d, mode_select_10 = 0x55,
                              mode_sense_10 = 0x5a, write_filemarks_16 = 0x80, allow_overwrite = 0x82,
                              read_attribute = 0x8c, write_attribute = 0x8d, space_16 = 0x91,
                              locate_16 = 0x92, report_luns = 0xa0, maintenance_in = 0xa3, move_medium = 0xa5,
                              read_element_status = 0xb8;
}  // namespace op

// Every device.
Command test_unit_ready();
Command inquiry(base::MutableBytes in);
Command inquiry_page(std::uint8_t page, base::MutableBytes in);
Command request_sense(base::MutableBytes in);
Command mode_sense(std::uint8_t page, std::uint8_t subpage,
                   base::MutableBytes in);                    ///< MODE SENSE(10), current values
Command mode_select(base::ByteView parameters);               ///< MODE SELECT(10), page format
Command log_sense(std::uint8_t page, base::MutableBytes in);  ///< cumulative values
Command prevent_removal(bool prevent);
Command reserve();                              ///< RESERVE(6)
Command release();                              ///< RELEASE(6)
Command report_opcodes(base::MutableBytes in);  ///< all commands, with timeouts (RCTD)

// Tape drives.
enum class Immediate : bool { no, yes };
Command read(base::MutableBytes block,
             bool suppress_incorrect_length);  ///< one block of at most block.size() bytes
Command write(base::ByteView block);
Command write_filemarks(std::uint32_t count,
                        Immediate immediate);  ///< count 0, Immediate::no: the synchronising flush
enum class PositionForm : std::uint8_t { short_form = 0x00, long_form = 0x06, extended_form = 0x08 };
Command read_position(PositionForm form, base::MutableBytes in);  ///< 20 bytes short, 32 else
enum class LocateTo : std::uint8_t { object = 0, file = 1, end_of_data = 3 };
/// LOCATE(16); `partition` given: change to it.
Command locate(LocateTo to, std::uint64_t identifier, std::optional<std::uint8_t> partition);
enum class SpaceOver : std::uint8_t { blocks = 0, filemarks = 1, sequential_filemarks = 2, end_of_data = 3 };
Command space(SpaceOver over, std::int64_t count);  ///< SPACE(16)
Command rewind(Immediate immediate);
Command load();
Command load_hold();  ///< not threaded: the cartridge memory is readable
Command unload();
Command read_block_limits(base::MutableBytes in);
enum class FormatKind : std::uint8_t { one_partition = 0, by_mode_page = 1, destroy_and_partition = 2 };
Command format_medium(FormatKind kind);
Command set_capacity(std::uint16_t proportion);  ///< of 65535
Command erase(bool whole);  ///< from the position to the end; short: writes end of data only
Command allow_overwrite(std::uint8_t mode, std::uint8_t partition, std::uint64_t block);
Command read_attribute(std::uint8_t partition, std::uint16_t first, base::MutableBytes in);
Command list_attributes(std::uint8_t partition, base::MutableBytes in);
Command write_attribute(std::uint8_t partition, base::ByteView parameters);
Command report_density(bool of_medium, base::MutableBytes in);

// Changers.
enum class ElementType : std::uint8_t { all = 0, picker = 1, slot = 2, mail_slot = 3, drive_bay = 4 };
struct ElementQuery {
  ElementType type = ElementType::all;
  std::uint16_t first = 0;
  std::uint16_t count_max = 0xffff;
  bool volume_tags = true;
  bool device_ids = true;  ///< DVCID: the serial number of each drive
};
Command read_element_status(const ElementQuery& query, base::MutableBytes in);
struct Move {
  std::uint16_t picker = 0;
  std::uint16_t source = 0;
  std::uint16_t destination = 0;
};
Command move_medium(const Move& move);
Command initialize_element_status();
Command initialize_element_status_range(std::uint16_t first, std::uint16_t count);

}  // namespace reelway::scsi
