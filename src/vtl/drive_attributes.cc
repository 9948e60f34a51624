// READ and WRITE ATTRIBUTE: the cartridge memory (SPC-5 sections 6.16, 6.41 and 7.4).

#include <algorithm>
#include <map>

#include "scsi/fields.h"
#include "vtl/drive_model.h"

namespace reelway::vtl {
namespace {

using scsi::Attribute;
using scsi::AttributeFormat;
using scsi::get_u16;
using scsi::get_u32;
using scsi::get_u8;
namespace attribute = scsi::attribute;

Attribute number(std::uint16_t id, std::size_t width, std::uint64_t value) {
  Attribute made{.id = id, .read_only = true, .value = base::Bytes(width)};
  scsi::put_field(made.value, 0, width, value);
  return made;
}

Attribute text(std::uint16_t id, std::size_t width, std::string_view value) {
  Attribute made{.id = id,
                 .format = AttributeFormat::ascii,
                 .read_only = true,
                 .value = base::Bytes(width, std::byte{' '})};
  for (std::size_t i = 0; i < std::min(width, value.size()); ++i)
    made.value[i] = static_cast<std::byte>(value[i]);
  return made;
}

/// Host attributes, and the host's part of the vendor range (volume lock, 1623h).
bool host_may_write(std::uint16_t id) {
  return (id >= 0x0800 && id <= 0x0bff) || (id >= 0x1400 && id <= 0x17ff);
}

}  // namespace

std::vector<Attribute> DriveModel::all_attributes(std::uint8_t partition) {
  const media::Personality& medium = cartridge_->personality();
  const std::uint64_t capacity = cartridge_->capacity_bytes(partition);
  const std::uint64_t used = std::min(capacity, cartridge_->partition(partition).bytes());
  std::map<std::uint16_t, Attribute> all;
  const auto add = [&](Attribute each) { all[each.id] = std::move(each); };
  add(number(attribute::remaining_capacity, 8, (capacity - used) / base::kMiB));
  add(number(attribute::maximum_capacity, 8, capacity / base::kMiB));
  add(number(attribute::load_count, 8, cartridge_->load_count()));
  add(number(attribute::volume_change_reference, 4, cartridge_->change_reference()));
  add(text(attribute::medium_manufacturer, 8, "REELWAY"));
  add(text(attribute::medium_serial, 32, cartridge_->medium_serial()));
  add(number(attribute::medium_length, 4, static_cast<std::uint64_t>(medium.length_m)));
  add(number(attribute::medium_density, 1, medium.density_code));
  add(number(attribute::medium_type, 1, 0));  // a data cartridge
  const auto& stored = cartridge_->attributes();
  for (auto at = stored.lower_bound({partition, 0}); at != stored.end() && at->first.first == partition;
       ++at) {
    add(at->second);
  }
  std::vector<Attribute> sorted;
  for (auto& [id, each] : all) sorted.push_back(std::move(each));
  return sorted;
}

Outcome DriveModel::read_attribute(const scsi::Command& command) {
  const base::ByteView cdb = cdb_of(command);
  const std::uint8_t action = get_u8(cdb, 1) & 0x1f;
  const std::uint8_t partition = get_u8(cdb, 7);
  const std::uint16_t first = get_u16(cdb, 8);
  if (action > 1 || partition >= cartridge_->partition_count()) return invalid_field();
  std::vector<Attribute> attributes = all_attributes(partition);
  std::erase_if(attributes, [&](const Attribute& each) { return each.id < first; });
  // A host asks for one by its number; what is not there is told as such.
  if (first != 0 && (attributes.empty() || attributes.front().id != first)) return invalid_field();
  base::Bytes reply;
  if (action == 0) {
    for (const Attribute& each : attributes) {
      if (each.id == attribute::volume_change_reference) change_reference_used_ = true;
    }
    reply = scsi::encode_attributes(attributes);
  } else {
    reply.resize(4 + 2 * attributes.size());
    scsi::put_field(reply, 0, 4, reply.size() - 4);
    for (std::size_t i = 0; i < attributes.size(); ++i)
      scsi::put_field(reply, 4 + 2 * i, 2, attributes[i].id);
  }
  return data_reply(command, reply, get_u32(cdb, 10));
}

Outcome DriveModel::write_attribute(const scsi::Command& command) {
  const base::ByteView cdb = cdb_of(command);
  const std::uint8_t partition = get_u8(cdb, 7);
  const std::size_t length = get_u32(cdb, 10);
  if (partition >= cartridge_->partition_count()) return invalid_field();
  if (length == 0) return {};
  if (length > command.data_out.size() || length < 4) return illegal(0x1a, 0x00);
  const base::ByteView list = command.data_out.first(length);
  if (get_u32(list, 0) != length - 4) return illegal(0x1a, 0x00);
  // All or none: everything is checked before anything is stored.
  for (std::size_t at = 4; at < length;) {
    if (length - at < 5) return illegal(0x1a, 0x00);
    const std::size_t value = get_u16(list, at + 3);
    if (value > length - at - 5) return illegal(0x1a, 0x00);
    if (!host_may_write(get_u16(list, at)) || (get_u8(list, at + 2) & 0x03) > 2) return illegal(0x26, 0x00);
    at += 5 + value;
  }
  if (cartridge_->write_protected()) return failed(sense(scsi::key::data_protect, 0x27, 0x00));
  const auto attributes = scsi::parse_attributes(list);
  if (!attributes || !cartridge_->store(partition, *attributes))
    return failed(sense(scsi::key::hardware_error, 0x44, 0x00));
  change_reference_used_ = true;
  return {};
}

}  // namespace reelway::vtl
