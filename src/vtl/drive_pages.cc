// Identity, mode pages, log pages (SPC-5 section 6 and 7, SSC-5 section 8, LTO SCSI references).

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scsi/commands.h"
#include "scsi/fields.h"
#include "vtl/drive_model.h"

namespace reelway::vtl {
namespace {

using scsi::get_u16;
using scsi::get_u32;
using scsi::get_u8;
using scsi::put_field;

constexpr std::uint8_t kAllPages = 0x3f;
constexpr std::uint64_t kBytesPerMb = 1'000'000;
constexpr std::array<std::uint8_t, 5> kLogPages{0x00, 0x17, 0x2e, 0x31, 0x0c};

void put_text(base::Bytes& out, std::size_t offset, std::size_t width, std::string_view text) {
  for (std::size_t i = 0; i < width; ++i)
    out[offset + i] = static_cast<std::byte>(i < text.size() ? text[i] : ' ');
}

void add_parameter(base::Bytes& page, std::uint16_t code, base::ByteView value) {
  const std::size_t at = page.size();
  page.resize(at + 4);
  put_field(page, at, 2, code);
  put_field(page, at + 2, 1, 0x03);  // binary list
  put_field(page, at + 3, 1, value.size());
  page.insert(page.end(), value.begin(), value.end());
}

void add_number(base::Bytes& page, std::uint16_t code, std::size_t width, std::uint64_t number) {
  base::Bytes value(width);
  put_field(value, 0, width, number);
  add_parameter(page, code, value);
}

base::Bytes log_header(std::uint8_t page) {
  base::Bytes bytes(4);
  put_field(bytes, 0, 1, page);
  return bytes;
}

}  // namespace

Outcome DriveModel::inquiry(const scsi::Command& command) {
  const base::ByteView cdb = cdb_of(command);
  const std::size_t allocation = get_u16(cdb, 3);
  const std::uint8_t page = get_u8(cdb, 2);
  base::Bytes reply;
  if ((get_u8(cdb, 1) & 0x01) == 0) {
    if (page != 0) return invalid_field();
    reply.resize(96);
    put_field(reply, 0, 1, 0x01);
    put_field(reply, 1, 1, 0x80);
    put_field(reply, 2, 1, 0x06);  // SPC-4
    put_field(reply, 3, 1, 0x02);
    put_field(reply, 4, 1, reply.size() - 5);
    put_text(reply, 8, 8, "REELWAY");
    put_text(reply, 16, 16, fmt::format("VIRTUAL {}", media::personality(generation_).name));
    put_text(reply, 32, 4, "0001");
    return data_reply(command, reply, allocation);
  }
  reply.resize(4);
  put_field(reply, 0, 1, 0x01);
  put_field(reply, 1, 1, page);
  switch (page) {
    case 0x00:
      for (const unsigned each : {0x00U, 0x80U, 0x83U, 0xb0U, 0xb1U})
        reply.push_back(static_cast<std::byte>(each));
      break;
    case 0x80:
    case 0xb1:
      reply.resize(4 + serial_.size());
      put_text(reply, 4, serial_.size(), serial_);
      break;
    case 0x83: {
      const std::string id = fmt::format("REELWAY {}", serial_);
      reply.resize(8 + id.size());
      put_field(reply, 4, 1, 0x02);  // ASCII
      put_field(reply, 5, 1, 0x01);  // T10 vendor identification
      put_field(reply, 7, 1, id.size());
      put_text(reply, 8, id.size(), id);
      break;
    }
    case 0xb0:
      reply.resize(6);
      break;  // no WORM, no SPC-4 extensions
    default:
      return invalid_field();
  }
  put_field(reply, 2, 2, reply.size() - 4);
  return data_reply(command, reply, allocation);
}

Outcome DriveModel::request_sense(const scsi::Command& command) {
  const scsi::Sense told = attentions_.empty() ? scsi::Sense{} : attentions_.take();
  return data_reply(command, scsi::encode_fixed_sense(told), get_u8(cdb_of(command), 4));
}

base::Bytes DriveModel::medium_partition_page() {
  const bool here = cartridge_ != nullptr;
  const std::uint8_t additional =
      here ? static_cast<std::uint8_t>(cartridge_->partition_count() - 1) : std::uint8_t{0};
  constexpr std::uint64_t kGigabyte = 1'000'000'000;
  scsi::MediumPartitions partitions{.additional_max = 1, .additional = additional, .unit_power = 9};
  for (std::uint8_t number = 0; here && number <= additional; ++number) {
    const std::uint64_t units =
        std::min<std::uint64_t>(cartridge_->capacity_bytes(number) / kGigabyte, 0xfffe);
    partitions.sizes.push_back(static_cast<std::uint16_t>(units));
  }
  return scsi::encode_medium_partitions(partitions).bytes;
}

base::Bytes DriveModel::mode_page(std::uint8_t page, std::uint8_t subpage) {
  const auto blank = [&](std::size_t length) {
    base::Bytes bytes(2 + length);
    put_field(bytes, 0, 1, page);
    put_field(bytes, 1, 1, length);
    return bytes;
  };
  if (page == 0x0f && subpage == 0) {
    base::Bytes bytes = blank(0x0e);
    put_field(bytes, 2, 1, compression_ ? 0xc0 : 0x40);  // DCE, DCC
    put_field(bytes, 3, 1, 0x80);                        // DDE
    put_field(bytes, 4, 4, 1);
    put_field(bytes, 8, 4, 1);
    return bytes;
  }
  if (page == 0x10 && subpage == 0) {
    base::Bytes bytes = blank(0x0e);
    put_field(bytes, 3, 1, partition_);
    put_field(bytes, 7, 1, 0x64);   // write delay, 100 ms each
    put_field(bytes, 8, 1, 0x40);   // BLR: block identifiers are supported
    put_field(bytes, 10, 1, 0x18);  // EEG, SEW: end of data is made and early warning is told
    put_field(bytes, 14, 1, compression_ ? 1 : 0);
    return bytes;
  }
  if (page == 0x10 && subpage == 1) {
    base::Bytes bytes(32);
    put_field(bytes, 0, 1, 0x50);
    put_field(bytes, 1, 1, 1);
    put_field(bytes, 2, 2, 28);
    put_field(bytes, 6, 2, programmable_warning_mb_);
    return bytes;
  }
  if (page == 0x11 && subpage == 0) return medium_partition_page();
  if (page == 0x1d && subpage == 0) return blank(0x1e);  // no WORM
  return {};
}

Outcome DriveModel::mode_sense(const scsi::Command& command, bool ten) {
  const base::ByteView cdb = cdb_of(command);
  const std::uint8_t control = get_u8(cdb, 2) >> 6;
  const std::uint8_t wanted = get_u8(cdb, 2) & 0x3f;
  const std::uint8_t subpage = get_u8(cdb, 3);
  if (control == 3) return illegal(0x39, 0x00);  // no saved parameters
  if (control == 1) return invalid_field();
  base::Bytes pages;
  constexpr std::array<std::pair<std::uint8_t, std::uint8_t>, 5> kModePages{
      {{0x0f, 0}, {0x10, 0}, {0x10, 1}, {0x11, 0}, {0x1d, 0}}};
  for (const auto& [page, sub] : kModePages) {
    const bool page_fits = wanted == kAllPages || wanted == page;
    const bool sub_fits = subpage == 0xff || subpage == sub;
    if (!page_fits || !sub_fits) continue;
    const base::Bytes bytes = mode_page(page, sub);
    pages.insert(pages.end(), bytes.begin(), bytes.end());
  }
  if (pages.empty()) return invalid_field();

  const bool with_descriptor = (get_u8(cdb, 1) & 0x08) == 0;
  const std::size_t header = ten ? 8 : 4;
  base::Bytes reply(header + (with_descriptor ? 8 : 0));
  const bool loaded = state_ == State::loaded;
  const media::Personality& medium = loaded ? cartridge_->personality() : media::personality(generation_);
  const unsigned device = 0x10U | (loaded && cartridge_->write_protected() ? 0x80U : 0U);
  if (with_descriptor) put_field(reply, header, 1, loaded ? medium.density_code : 0);
  reply.insert(reply.end(), pages.begin(), pages.end());
  const std::size_t type_at = ten ? 2 : 1;
  put_field(reply, 0, ten ? 2 : 1, reply.size() - (ten ? 2 : 1));
  put_field(reply, type_at, 1, loaded ? medium.medium_type : 0);
  put_field(reply, type_at + 1, 1, device);
  put_field(reply, ten ? 7 : 3, 1, with_descriptor ? 8 : 0);
  return data_reply(command, reply, ten ? get_u16(cdb, 7) : get_u8(cdb, 4));
}

Outcome DriveModel::mode_select(const scsi::Command& command, bool ten) {
  const base::ByteView cdb = cdb_of(command);
  const std::size_t length = ten ? get_u16(cdb, 7) : get_u8(cdb, 4);
  if (length == 0) return {};
  const std::size_t header = ten ? 8 : 4;
  if (length > command.data_out.size() || length < header) return illegal(0x1a, 0x00);
  const base::ByteView list = command.data_out.first(length);
  const std::size_t descriptors = ten ? get_u16(list, 6) : get_u8(list, 3);
  if (descriptors > length - header) return illegal(0x1a, 0x00);
  if (descriptors >= 8 && scsi::get_u24(list, header + 5) != 0)
    return illegal(0x26, 0x00);  // variable blocks only
  for (std::size_t at = header + descriptors; at < length;) {
    const base::ByteView rest = list.subspan(at);
    const bool long_header = (get_u8(rest, 0) & 0x40) != 0;
    const std::size_t page_header = long_header ? 4 : 2;
    if (rest.size() < page_header) return illegal(0x1a, 0x00);
    const std::size_t page_length = page_header + (long_header ? get_u16(rest, 2) : get_u8(rest, 1));
    if (page_length > rest.size()) return illegal(0x1a, 0x00);
    if (!take_mode_page(rest.first(page_length))) return illegal(0x26, 0x00);
    at += page_length;
  }
  return {};
}

/// False when the page cannot be set so.
bool DriveModel::take_mode_page(base::ByteView page) {
  const std::uint8_t code = get_u8(page, 0) & 0x3f;
  const std::uint8_t subpage = (get_u8(page, 0) & 0x40) != 0 ? get_u8(page, 1) : std::uint8_t{0};
  if (code == 0x0f && subpage == 0 && page.size() == 16) {
    compression_ = (get_u8(page, 2) & 0x80) != 0;
    return true;
  }
  if (code == 0x10 && subpage == 0 && page.size() == 16) {
    compression_ = get_u8(page, 14) != 0;
    return true;
  }
  if (code == 0x10 && subpage == 1 && page.size() == 32) {
    if ((get_u8(page, 5) >> 4) != 0) return false;  // append-only mode
    programmable_warning_mb_ = get_u16(page, 6);
    told_programmable_warning_ = false;
    return true;
  }
  if (code == 0x11 && subpage == 0) {
    const auto partitions = scsi::parse_medium_partitions(page);
    // One layout with two partitions: a wrap pair, and the rest.
    if (!partitions || partitions->additional > 1) return false;
    if (partitions->additional == 1 && (partitions->sizes.size() != 2 || partitions->sizes[1] != 0xffff))
      return false;
    next_additional_partitions_ = partitions->additional;
    return true;
  }
  return false;
}

base::Bytes DriveModel::volume_statistics() {
  base::Bytes page = log_header(0x17);
  if (state_ != State::loaded) {
    add_number(page, 0x0000, 1, 0);  // not valid
    return page;
  }
  add_number(page, 0x0000, 1, 1);
  add_number(page, 0x0001, 4, cartridge_->load_count());
  add_number(page, 0x000e, 4, written_this_load_ / kBytesPerMb);
  add_number(page, 0x000f, 4, read_this_load_ / kBytesPerMb);
  add_number(page, 0x0010, 8, (cartridge_->written_bytes() + written_this_load_) / kBytesPerMb);
  add_number(page, 0x0011, 8, (cartridge_->read_bytes() + read_this_load_) / kBytesPerMb);
  std::uint64_t capacity = 0;
  std::uint64_t used = 0;
  std::array<base::Bytes, 3> records;  // native, used, remaining: one entry for each partition
  for (std::uint8_t number = 0; number < cartridge_->partition_count(); ++number) {
    const std::uint64_t total = cartridge_->capacity_bytes(number);
    const std::uint64_t filled = cartridge_->partition(number).bytes();
    capacity += total;
    used += filled;
    const std::array values{total, filled, total - std::min(total, filled)};
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t at = records[i].size();
      records[i].resize(at + 8);
      put_field(records[i], at, 1, 7);
      put_field(records[i], at + 2, 2, number);
      put_field(records[i], at + 4, 4, values[i] / kBytesPerMb);
    }
  }
  add_number(page, 0x0016, 4, capacity / kBytesPerMb);
  add_number(page, 0x0017, 4, used / kBytesPerMb);
  base::Bytes barcode(32);
  put_text(barcode, 0, barcode.size(), cartridge_->barcode());
  add_parameter(page, 0x0040, barcode);
  add_parameter(page, 0x0042, barcode);
  add_number(page, 0x0080, 1, cartridge_->write_protected() ? 1 : 0);
  add_number(page, 0x0081, 1, 0);
  for (std::size_t i = 0; i < records.size(); ++i)
    add_parameter(page, static_cast<std::uint16_t>(0x0202 + i), records[i]);
  return page;
}

base::Bytes DriveModel::tape_capacity() {
  base::Bytes page = log_header(0x31);
  std::array<std::uint64_t, 2> remaining{};
  std::array<std::uint64_t, 2> maximum{};
  for (std::uint8_t number = 0; state_ == State::loaded && number < cartridge_->partition_count(); ++number) {
    const std::uint64_t total = cartridge_->capacity_bytes(number);
    const std::uint64_t used = std::min(total, cartridge_->partition(number).bytes());
    maximum[number] = total / base::kMiB;
    remaining[number] = (total - used) / base::kMiB;
  }
  add_number(page, 1, 4, remaining[0]);
  add_number(page, 2, 4, remaining[1]);
  add_number(page, 3, 4, maximum[0]);
  add_number(page, 4, 4, maximum[1]);
  return page;
}

base::Bytes DriveModel::tape_alert_page() {
  base::Bytes page = log_header(0x2e);
  for (std::uint16_t flag = 1; flag <= 64; ++flag) {
    const bool set = flag < 64 && (alerts_ >> flag & 1) != 0;
    add_number(page, flag, 1, set ? 1 : 0);
  }
  alerts_ = 0;  // reading clears
  return page;
}

Outcome DriveModel::log_sense(const scsi::Command& command) {
  const base::ByteView cdb = cdb_of(command);
  base::Bytes page;
  switch (get_u8(cdb, 2) & 0x3f) {
    case 0x00:
      page = log_header(0x00);
      for (const std::uint8_t each : kLogPages) page.push_back(static_cast<std::byte>(each));
      std::sort(page.begin() + 4, page.end());
      break;
    case 0x0c:
      page = log_header(0x0c);
      add_number(page, 0x0001, 8, written_this_load_);
      add_number(page, 0x0002, 8, read_this_load_);
      add_number(page, 0x0100, 4, 0);  // no cleaning wanted
      break;
    case 0x17:
      page = volume_statistics();
      break;
    case 0x2e:
      page = tape_alert_page();
      break;
    case 0x31:
      page = tape_capacity();
      break;
    default:
      return invalid_field();
  }
  put_field(page, 2, 2, page.size() - 4);
  return data_reply(command, page, get_u16(cdb, 7));
}

Outcome DriveModel::report_density(const scsi::Command& command) {
  const base::ByteView cdb = cdb_of(command);
  const bool of_medium = (get_u8(cdb, 1) & 0x01) != 0;
  if (of_medium && state_ != State::loaded) return failed(sense(scsi::key::not_ready, 0x3a, 0x00));
  const media::Personality& medium = of_medium ? cartridge_->personality() : media::personality(generation_);
  base::Bytes reply(4 + 52);
  put_field(reply, 0, 2, reply.size() - 2);
  put_field(reply, 4, 1, medium.density_code);
  put_field(reply, 5, 1, medium.density_code);
  put_field(reply, 6, 1, 0xa0);  // WRTOK, DEFLT
  put_field(reply, 12, 2, 127);  // tape width, tenths of a millimetre
  put_field(reply, 14, 2, medium.wrap_count * 32);
  put_field(reply, 16, 4, medium.capacity_bytes / kBytesPerMb);
  put_text(reply, 20, 8, "LTO-CVE");
  put_text(reply, 28, 8, medium.generation == media::Generation::lto8 ? "U-832" : "U-932");
  put_text(reply, 36, 20,
           fmt::format("Ultrium {}/32T", medium.generation == media::Generation::lto8 ? 8 : 9));
  return data_reply(command, reply, get_u16(cdb, 7));
}

Outcome DriveModel::report_opcodes(const scsi::Command& command) {
  struct Supported {
    std::uint8_t opcode, cdb_length;
    std::uint32_t nominal_s, recommended_s;
  };
  namespace op = scsi::op;
  // Recommended timeouts in the range of LTO-9 drives' own reports.
  static constexpr Supported kSupported[] = {{op::test_unit_ready, 6, 1, 60},
                                             {op::rewind, 6, 62, 2040},
                                             {op::request_sense, 6, 1, 60},
                                             {op::format_medium, 6, 60, 3000},
                                             {op::read_block_limits, 6, 1, 60},
                                             {op::read_6, 6, 1, 2040},
                                             {op::write_6, 6, 1, 1560},
                                             {op::set_capacity, 6, 60, 1980},
                                             {op::write_filemarks_6, 6, 3, 1680},
                                             {op::space_6, 6, 65, 2940},
                                             {op::inquiry, 6, 1, 60},
                                             {op::mode_select_6, 6, 1, 60},
                                             {op::reserve_6, 6, 1, 60},
                                             {op::release_6, 6, 1, 60},
                                             {op::erase, 6, 60, 71000},
                                             {op::mode_sense_6, 6, 1, 60},
                                             {op::load_unload, 6, 16, 8700},
                                             {op::prevent_allow, 6, 1, 60},
                                             {op::locate_10, 10, 65, 2940},
                                             {op::read_position, 10, 1, 60},
                                             {op::report_density, 10, 1, 60},
                                             {op::log_sense, 10, 1, 60},
                                             {op::mode_select_10, 10, 1, 60},
                                             {op::mode_sense_10, 10, 1, 60},
                                             {op::write_filemarks_16, 16, 3, 1680},
                                             {op::read_attribute, 16, 1, 60},
                                             {op::write_attribute, 16, 1, 60},
                                             {op::space_16, 16, 65, 2940},
                                             {op::locate_16, 16, 65, 2940},
                                             {op::maintenance_in, 12, 1, 60}};
  const base::ByteView cdb = cdb_of(command);
  if ((get_u8(cdb, 1) & 0x1f) != 0x0c) return illegal(0x20, 0x00);
  if ((get_u8(cdb, 2) & 0x07) != 0) return invalid_field();  // all commands only
  const bool timeouts = (get_u8(cdb, 2) & 0x80) != 0;
  base::Bytes reply(4);
  for (const Supported& each : kSupported) {
    const std::size_t at = reply.size();
    reply.resize(at + 8 + (timeouts ? 12 : 0));
    const bool has_action = each.opcode == op::maintenance_in;
    put_field(reply, at, 1, each.opcode);
    put_field(reply, at + 2, 2, has_action ? 0x0c : 0);
    put_field(reply, at + 5, 1, (timeouts ? 0x02U : 0U) | (has_action ? 0x01U : 0U));
    put_field(reply, at + 6, 2, each.cdb_length);
    if (!timeouts) continue;
    put_field(reply, at + 8, 2, 10);
    put_field(reply, at + 12, 4, each.nominal_s);
    put_field(reply, at + 16, 4, each.recommended_s);
  }
  put_field(reply, 0, 4, reply.size() - 4);
  return data_reply(command, reply, get_u32(cdb, 6));
}

}  // namespace reelway::vtl
