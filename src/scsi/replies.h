#pragma once
// Decoders for what devices answer. The bytes come from outside: every length in them is checked against what
// arrived; what does not fit is data_loss of scope drive. Trailing bytes beyond what is known of are ignored.
// SPC-5, SSC-5, SMC-3.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/encoding.h"
#include "base/result.h"
#include "scsi/commands.h"

namespace reelway::scsi {

struct Inquiry {
  std::uint8_t device_type = 0;  ///< 1 tape, 8 changer
  bool removable = false;
  std::string vendor, product, revision;  ///< trailing spaces cut
};
base::Result<Inquiry> parse_inquiry(base::ByteView reply);
/// VPD page 80h.
base::Result<std::string> parse_unit_serial(base::ByteView reply);

struct BlockLimits {
  std::uint32_t max_bytes = 0;
  std::uint16_t min_bytes = 0;
};
base::Result<BlockLimits> parse_block_limits(base::ByteView reply);

struct Position {
  bool beginning_of_partition = false;
  bool early_warning = false;  ///< between early warning and the end
  bool programmable_early_warning = false;
  bool unknown = false;  ///< the numbers mean nothing
  std::uint32_t partition = 0;
  std::uint64_t block = 0;
  std::uint64_t filemarks = 0;         ///< before the position; long form only
  std::uint64_t blocks_in_buffer = 0;  ///< not on tape yet; short and extended form only
  std::uint64_t bytes_in_buffer = 0;
};
base::Result<Position> parse_position(PositionForm form, base::ByteView reply);

struct ModePage {
  std::uint8_t page = 0;
  std::uint8_t subpage = 0;
  base::Bytes bytes = {};  ///< the whole page, its header included
};
struct ModeData {
  std::uint8_t medium_type = 0;
  bool write_protected = false;
  std::uint8_t density_code = 0;
  std::uint32_t block_length = 0;  ///< 0: variable
  std::vector<ModePage> pages = {};
  const ModePage* find(std::uint8_t page, std::uint8_t subpage = 0) const;
};
base::Result<ModeData> parse_mode_data(base::ByteView reply);  ///< MODE SENSE(10)
/// The parameter list of MODE SELECT(10) for these pages (PS bits cleared, variable blocks).
base::Bytes encode_mode_select(const std::vector<ModePage>& pages);

/// Mode page 11h.
struct MediumPartitions {
  std::uint8_t additional_max = 0;
  std::uint8_t additional = 0;
  std::uint8_t unit_power = 9;            ///< sizes are in 10^unit_power bytes
  std::vector<std::uint16_t> sizes = {};  ///< 0xffff: the rest
};
base::Result<MediumPartitions> parse_medium_partitions(base::ByteView page);
ModePage encode_medium_partitions(const MediumPartitions& partitions);

/// Mode page 1Dh of a changer.
struct ElementAddresses {
  std::uint16_t first_picker = 0, picker_count = 0;
  std::uint16_t first_slot = 0, slot_count = 0;
  std::uint16_t first_mail_slot = 0, mail_slot_count = 0;
  std::uint16_t first_drive_bay = 0, drive_bay_count = 0;
};
base::Result<ElementAddresses> parse_element_addresses(base::ByteView page);

enum class AttributeFormat : std::uint8_t { binary = 0, ascii = 1, text = 2 };
/// One attribute of the cartridge memory (SPC-5 section 7.4).
struct Attribute {
  std::uint16_t id = 0;
  AttributeFormat format = AttributeFormat::binary;
  bool read_only = false;
  base::Bytes value = {};
  std::string text() const;  ///< trailing spaces and zeros cut
};
namespace attribute {
inline constexpr std::uint16_t remaining_capacity = 0x0000, maximum_capacity = 0x0001, load_count = 0x0003,
                               volume_change_reference = 0x0009, medium_manufacturer = 0x0400,
                               medium_serial = 0x0401, medium_length = 0x0402, medium_density = 0x0405,
                               medium_type = 0x0408, application_vendor = 0x0800, application_name = 0x0801,
                               application_version = 0x0802, user_label = 0x0803, text_localization = 0x0805,
                               barcode = 0x0806, media_pool = 0x0808, application_format_version = 0x080b,
                               volume_coherency = 0x080c, volume_lock = 0x1623;
}  // namespace attribute
/// READ ATTRIBUTE, service action 0: the attributes that arrived whole.
base::Result<std::vector<Attribute>> parse_attributes(base::ByteView reply);
/// READ ATTRIBUTE, service action 1.
base::Result<std::vector<std::uint16_t>> parse_attribute_list(base::ByteView reply);
base::Bytes encode_attributes(const std::vector<Attribute>& attributes);  ///< for WRITE ATTRIBUTE

struct LogParameter {
  std::uint16_t code = 0;
  base::Bytes value = {};
  std::uint64_t number() const;  ///< big-endian, the last 8 bytes
};
struct LogPage {
  std::uint8_t page = 0;
  std::vector<LogParameter> parameters;
  const LogParameter* find(std::uint16_t code) const;
};
base::Result<LogPage> parse_log_page(base::ByteView reply);
/// Page 2Eh: the numbers of the flags that are set.
std::vector<std::uint16_t> tape_alerts(const LogPage& page);
/// Page 31h: MiB per partition, as LTO drives have it.
struct PartitionCapacity {
  std::uint64_t remaining_mib = 0;
  std::uint64_t maximum_mib = 0;
};
base::Result<std::vector<PartitionCapacity>> tape_capacities(const LogPage& page);

struct Element {
  ElementType type = ElementType::slot;
  std::uint16_t address = 0;
  bool full = false;
  bool accessible = false;
  bool exception = false;
  bool by_operator = false;  ///< IMPEXP: put there by hand
  std::uint8_t asc = 0, ascq = 0;
  std::optional<std::uint16_t> source = {};  ///< the storage element the medium came from
  std::string barcode = {};                  ///< empty: none read
  std::string device_id = {};                ///< drives with DVCID: the serial number
};
base::Result<std::vector<Element>> parse_element_status(base::ByteView reply);

struct CommandTimeout {
  std::uint8_t opcode = 0;
  std::optional<std::uint16_t> service_action = {};
  std::uint32_t nominal_s = 0;
  std::uint32_t recommended_s = 0;
};
base::Result<std::vector<CommandTimeout>> parse_opcodes(base::ByteView reply);

}  // namespace reelway::scsi
