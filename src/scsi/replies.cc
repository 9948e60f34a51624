#include "scsi/replies.h"

#include <fmt/format.h>

#include <algorithm>

#include "scsi/fields.h"

namespace reelway::scsi {
namespace {

base::Error malformed(std::string_view what) {
  return base::fail(base::Code::data_loss, fmt::format("malformed reply: {}", what), base::Scope::drive);
}

std::string trimmed(base::ByteView bytes) {
  std::string_view text = base::as_text(bytes);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\0')) text.remove_suffix(1);
  return std::string(text);
}

}  // namespace

base::Result<Inquiry> parse_inquiry(base::ByteView reply) {
  if (reply.size() < 36) return malformed("INQUIRY of under 36 bytes");
  return Inquiry{.device_type = static_cast<std::uint8_t>(get_u8(reply, 0) & 0x1f),
                 .removable = (get_u8(reply, 1) & 0x80) != 0,
                 .vendor = trimmed(reply.subspan(8, 8)),
                 .product = trimmed(reply.subspan(16, 16)),
                 .revision = trimmed(reply.subspan(32, 4))};
}

base::Result<std::string> parse_unit_serial(base::ByteView reply) {
  if (reply.size() < 4 || get_u8(reply, 1) != 0x80) return malformed("no unit serial number page");
  const std::size_t length = get_u16(reply, 2);
  if (length > reply.size() - 4) return malformed("unit serial number cut short");
  return trimmed(reply.subspan(4, length));
}

base::Result<BlockLimits> parse_block_limits(base::ByteView reply) {
  if (reply.size() < 6) return malformed("READ BLOCK LIMITS of under 6 bytes");
  return BlockLimits{.max_bytes = get_u24(reply, 1), .min_bytes = get_u16(reply, 4)};
}

base::Result<Position> parse_position(PositionForm form, base::ByteView reply) {
  if (reply.size() < (form == PositionForm::short_form ? 20U : 32U))
    return malformed("READ POSITION cut short");
  const std::uint8_t flags = get_u8(reply, 0);
  Position position{.beginning_of_partition = (flags & 0x80) != 0,
                    .early_warning = (flags & 0x40) != 0,
                    .programmable_early_warning = (flags & 0x01) != 0};
  switch (form) {
    case PositionForm::short_form:
      position.unknown = (flags & 0x04) != 0;
      position.partition = get_u8(reply, 1);
      position.block = get_u32(reply, 4);
      position.blocks_in_buffer = get_u24(reply, 13);
      position.bytes_in_buffer = get_u32(reply, 16);
      break;
    case PositionForm::long_form:
      position.unknown = (flags & 0x0c) != 0;  // MPU, LONU
      position.partition = get_u32(reply, 4);
      position.block = get_u64(reply, 8);
      position.filemarks = get_u64(reply, 16);
      break;
    case PositionForm::extended_form:
      position.unknown = (flags & 0x04) != 0;
      position.partition = get_u8(reply, 1);
      position.blocks_in_buffer = get_u24(reply, 5);
      position.block = get_u64(reply, 8);
      position.bytes_in_buffer = get_u64(reply, 24);
      break;
  }
  return position;
}

const ModePage* ModeData::find(std::uint8_t page, std::uint8_t subpage) const {
  const auto at = std::ranges::find_if(
      pages, [&](const ModePage& each) { return each.page == page && each.subpage == subpage; });
  return at == pages.end() ? nullptr : &*at;
}

base::Result<ModeData> parse_mode_data(base::ByteView reply) {
  if (reply.size() < 8) return malformed("MODE SENSE of under 8 bytes");
  const std::size_t end = std::min<std::size_t>(reply.size(), 2U + get_u16(reply, 0));
  const std::size_t descriptors = get_u16(reply, 6);
  if (end < 8 || descriptors > end - 8) return malformed("mode block descriptors cut short");
  ModeData data{.medium_type = get_u8(reply, 2), .write_protected = (get_u8(reply, 3) & 0x80) != 0};
  if (descriptors >= 8) {
    data.density_code = get_u8(reply, 8);
    data.block_length = get_u24(reply, 13);
  }
  for (std::size_t at = 8 + descriptors; at < end;) {
    const base::ByteView rest = reply.subspan(at, end - at);
    const bool long_header = (get_u8(rest, 0) & 0x40) != 0;
    const std::size_t header = long_header ? 4 : 2;
    if (rest.size() < header) return malformed("mode page header cut short");
    const std::size_t length = header + (long_header ? get_u16(rest, 2) : get_u8(rest, 1));
    if (length > rest.size()) return malformed("mode page cut short");
    data.pages.push_back(
        {.page = static_cast<std::uint8_t>(get_u8(rest, 0) & 0x3f),
         .subpage = long_header ? get_u8(rest, 1) : std::uint8_t{0},
         .bytes = base::Bytes(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(length))});
    at += length;
  }
  return data;
}

base::Bytes encode_mode_select(const std::vector<ModePage>& pages) {
  base::Bytes list(8);
  put_field(list, 3, 1, 0x10);  // buffered mode
  for (const ModePage& page : pages) {
    if (page.bytes.empty()) continue;
    const std::size_t at = list.size();
    list.insert(list.end(), page.bytes.begin(), page.bytes.end());
    list[at] &= std::byte{0x7f};  // PS is reserved in MODE SELECT
  }
  return list;
}

base::Result<MediumPartitions> parse_medium_partitions(base::ByteView page) {
  if (page.size() < 8 || (get_u8(page, 0) & 0x3f) != 0x11) return malformed("no medium partition page");
  MediumPartitions partitions{.additional_max = get_u8(page, 2),
                              .additional = get_u8(page, 3),
                              .unit_power = static_cast<std::uint8_t>(get_u8(page, 6) & 0x0f)};
  for (std::size_t at = 8; at + 2 <= page.size() && partitions.sizes.size() <= partitions.additional;
       at += 2) {
    partitions.sizes.push_back(get_u16(page, at));
  }
  return partitions;
}

ModePage encode_medium_partitions(const MediumPartitions& partitions) {
  ModePage page{.page = 0x11, .bytes = base::Bytes(8 + 2 * partitions.sizes.size())};
  put_field(page.bytes, 0, 1, 0x11);
  put_field(page.bytes, 1, 1, page.bytes.size() - 2);
  put_field(page.bytes, 2, 1, partitions.additional_max);
  put_field(page.bytes, 3, 1, partitions.additional);
  put_field(page.bytes, 4, 1, 0x20 | 0x18);  // IDP; PSUM 3: sizes in powers of ten
  put_field(page.bytes, 6, 1, partitions.unit_power);
  for (std::size_t i = 0; i < partitions.sizes.size(); ++i)
    put_field(page.bytes, 8 + 2 * i, 2, partitions.sizes[i]);
  return page;
}

base::Result<ElementAddresses> parse_element_addresses(base::ByteView page) {
  if (page.size() < 18 || (get_u8(page, 0) & 0x3f) != 0x1d)
    return malformed("no element address assignment page");
  return ElementAddresses{.first_picker = get_u16(page, 2),
                          .picker_count = get_u16(page, 4),
                          .first_slot = get_u16(page, 6),
                          .slot_count = get_u16(page, 8),
                          .first_mail_slot = get_u16(page, 10),
                          .mail_slot_count = get_u16(page, 12),
                          .first_drive_bay = get_u16(page, 14),
                          .drive_bay_count = get_u16(page, 16)};
}

std::string Attribute::text() const { return trimmed(value); }

base::Result<std::vector<Attribute>> parse_attributes(base::ByteView reply) {
  if (reply.size() < 4) return malformed("READ ATTRIBUTE of under 4 bytes");
  const base::ByteView data = reply.subspan(4, std::min<std::size_t>(reply.size() - 4, get_u32(reply, 0)));
  std::vector<Attribute> attributes;
  for (std::size_t at = 0; at + 5 <= data.size();) {
    const std::size_t length = get_u16(data, at + 3);
    if (length > data.size() - at - 5) break;  // cut by the allocation length
    const base::ByteView value = data.subspan(at + 5, length);
    attributes.push_back(
        {.id = get_u16(data, at),
         .format = static_cast<AttributeFormat>(std::min<unsigned>(get_u8(data, at + 2) & 0x03U, 2)),
         .read_only = (get_u8(data, at + 2) & 0x80) != 0,
         .value = base::Bytes(value.begin(), value.end())});
    at += 5 + length;
  }
  return attributes;
}

base::Result<std::vector<std::uint16_t>> parse_attribute_list(base::ByteView reply) {
  if (reply.size() < 4) return malformed("READ ATTRIBUTE of under 4 bytes");
  const base::ByteView data = reply.subspan(4, std::min<std::size_t>(reply.size() - 4, get_u32(reply, 0)));
  std::vector<std::uint16_t> ids;
  for (std::size_t at = 0; at + 2 <= data.size(); at += 2) ids.push_back(get_u16(data, at));
  return ids;
}

base::Bytes encode_attributes(const std::vector<Attribute>& attributes) {
  base::Bytes list(4);
  for (const Attribute& attribute : attributes) {
    const std::size_t at = list.size();
    list.resize(at + 5);
    put_field(list, at, 2, attribute.id);
    put_field(list, at + 2, 1,
              static_cast<std::uint8_t>(attribute.format) | (attribute.read_only ? 0x80U : 0U));
    put_field(list, at + 3, 2, attribute.value.size());
    list.insert(list.end(), attribute.value.begin(), attribute.value.end());
  }
  put_field(list, 0, 4, list.size() - 4);
  return list;
}

std::uint64_t LogParameter::number() const {
  const std::size_t width = std::min<std::size_t>(value.size(), 8);
  return get_field(value, value.size() - width, width);
}

const LogParameter* LogPage::find(std::uint16_t code) const {
  const auto at = std::ranges::find(parameters, code, &LogParameter::code);
  return at == parameters.end() ? nullptr : &*at;
}

base::Result<LogPage> parse_log_page(base::ByteView reply) {
  if (reply.size() < 4) return malformed("LOG SENSE of under 4 bytes");
  const base::ByteView data = reply.subspan(4, std::min<std::size_t>(reply.size() - 4, get_u16(reply, 2)));
  LogPage page{.page = static_cast<std::uint8_t>(get_u8(reply, 0) & 0x3f), .parameters = {}};
  for (std::size_t at = 0; at + 4 <= data.size();) {
    const std::size_t length = get_u8(data, at + 3);
    if (length > data.size() - at - 4) break;  // cut by the allocation length
    const base::ByteView value = data.subspan(at + 4, length);
    page.parameters.push_back({.code = get_u16(data, at), .value = base::Bytes(value.begin(), value.end())});
    at += 4 + length;
  }
  return page;
}

std::vector<std::uint16_t> tape_alerts(const LogPage& page) {
  std::vector<std::uint16_t> flags;
  for (const LogParameter& parameter : page.parameters) {
    if (parameter.code >= 1 && parameter.code <= 64 && (parameter.number() & 1) != 0)
      flags.push_back(parameter.code);
  }
  return flags;
}

base::Result<std::vector<PartitionCapacity>> tape_capacities(const LogPage& page) {
  if (page.page != 0x31) return malformed("no tape capacity page");
  // Codes 1 and 2: remaining in partitions 0 and 1; 3 and 4: their maxima (LTO drives).
  std::vector<PartitionCapacity> capacities;
  for (std::uint16_t partition = 0; partition < 2; ++partition) {
    const LogParameter* remaining = page.find(static_cast<std::uint16_t>(1 + partition));
    const LogParameter* maximum = page.find(static_cast<std::uint16_t>(3 + partition));
    if (remaining == nullptr || maximum == nullptr) return malformed("tape capacity page lacks a partition");
    if (partition > 0 && maximum->number() == 0) break;
    capacities.push_back({.remaining_mib = remaining->number(), .maximum_mib = maximum->number()});
  }
  return capacities;
}

base::Result<std::vector<CommandTimeout>> parse_opcodes(base::ByteView reply) {
  if (reply.size() < 4) return malformed("supported operation codes of under 4 bytes");
  const base::ByteView data = reply.subspan(4, std::min<std::size_t>(reply.size() - 4, get_u32(reply, 0)));
  std::vector<CommandTimeout> timeouts;
  for (std::size_t at = 0; at + 8 <= data.size();) {
    const std::uint8_t flags = get_u8(data, at + 5);
    CommandTimeout timeout{.opcode = get_u8(data, at)};
    if ((flags & 0x01) != 0) timeout.service_action = get_u16(data, at + 2);
    at += 8;
    if ((flags & 0x02) != 0) {  // CTDP: a timeouts descriptor follows
      if (data.size() - at < 2) break;
      const std::size_t length = 2U + get_u16(data, at);
      if (length < 12 || length > data.size() - at) break;
      timeout.nominal_s = get_u32(data, at + 4);
      timeout.recommended_s = get_u32(data, at + 8);
      at += length;
    }
    timeouts.push_back(timeout);
  }
  return timeouts;
}

}  // namespace reelway::scsi
