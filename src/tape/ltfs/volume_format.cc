// Making a volume.

#include <algorithm>

#include "scsi/replies.h"
#include "tape/ltfs/volume_state.h"

namespace reelway::tape::ltfs {

using async::Task;
using base::Code;
using base::fail;
using base::Result;
using base::Scope;

namespace {

constexpr std::size_t kSerialBytes = 6;

std::string make_uuid(base::Rng& rng) {
  std::array<std::byte, 16> bytes{};
  rng.fill(bytes);
  bytes[6] = (bytes[6] & std::byte{0x0F}) | std::byte{0x40};  // RFC 9562: version 4, variant 10
  bytes[8] = (bytes[8] & std::byte{0x3F}) | std::byte{0x80};
  auto hex = base::to_hex(bytes);
  for (const std::size_t dash : {8U, 13U, 18U, 23U}) hex.insert(dash, 1, '-');
  return hex;
}

/// The first 6 characters of a barcode, where a VOL1 label can hold them.
std::string serial_of(const std::string& barcode) {
  const auto serial = barcode.substr(0, kSerialBytes);
  const bool fits = serial.size() == kSerialBytes && std::ranges::all_of(serial, [](char c) {
                      return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
                    });
  return fits ? serial : "";
}

base::Bytes padded(std::string_view text, std::size_t width) {
  std::string value(text.substr(0, width));
  value.resize(width, ' ');
  const auto bytes = base::as_bytes(value);
  return {bytes.begin(), bytes.end()};
}

Task<void> check_blank(Drive& drive) {
  CO_TRY_VOID(co_await drive.locate({.partition = 0, .block = 0}));
  base::Bytes first(kBlockBytesMin);
  const auto read = co_await drive.read_block(first);
  if (read && read->end == ReadEnd::end_of_data) co_return Result<void>{};
  if (!read && read.error().code != Code::too_large) co_return read.error();
  co_return fail(Code::already_exists, "the cartridge is not blank", Scope::cartridge);
}

Task<void> write_labels(Drive& drive, const Label& label, std::string_view serial, std::uint32_t partition) {
  CO_TRY_VOID(co_await drive.locate({.partition = partition, .block = 0}));
  const auto vol1 = encode_vol1(serial);
  CO_TRY_VOID(co_await drive.write_block(vol1));
  CO_TRY_VOID(co_await drive.write_filemarks(1, true));
  const auto text = encode_label(label);
  CO_TRY_VOID(co_await drive.write_block(base::as_bytes(text)));
  CO_TRY_VOID(co_await drive.write_filemarks(1, false));
  co_return co_await drive.confirm_position();
}

/// What LTFS asks for in the cartridge memory (annex F), of the whole cartridge.
Task<void> write_host_attributes(Drive& drive, const FormatOptions& options) {
  using scsi::AttributeFormat;
  namespace id = scsi::attribute;
  std::vector<scsi::Attribute> attributes{
      {.id = id::application_vendor, .format = AttributeFormat::ascii, .value = padded("REELWAY", 8)},
      {.id = id::application_name, .format = AttributeFormat::ascii, .value = padded("Reelway", 32)},
      {.id = id::application_version, .format = AttributeFormat::ascii, .value = padded(REELWAY_VERSION, 8)},
      {.id = id::user_label, .format = AttributeFormat::text, .value = padded(options.volume_name, 160)},
      {.id = id::text_localization, .format = AttributeFormat::binary, .value = {std::byte{0x81}}},
      {.id = id::barcode, .format = AttributeFormat::ascii, .value = padded(options.barcode, 32)},
      {.id = id::media_pool, .format = AttributeFormat::text, .value = padded(options.media_pool, 160)},
      {.id = id::application_format_version, .format = AttributeFormat::ascii, .value = padded("2.4.0", 16)}};
  for (auto& attribute : attributes) {
    const auto written = co_await drive.write_attribute(kIndexPartition, std::move(attribute));
    if (!written && written.error().scope != Scope::request) co_return written.error();
  }
  co_return Result<void>{};  // a cartridge memory that does not take them only costs the fast mount
}

base::Result<void> check_options(const FormatOptions& options) {
  const bool sound = options.block_bytes >= kBlockBytesMin && options.block_bytes <= kBlockBytesMax;
  if (!sound) return fail(Code::invalid_argument, "LTFS blocks have 4 KiB to 8 MiB");
  return {};
}

}  // namespace

Task<std::unique_ptr<Volume>> Volume::format(Drive& drive, Environment environment, FormatOptions options,
                                             MountOptions mount_options) {
  CO_TRY_VOID(check_options(options));
  CO_TRY(const auto is_protected, co_await drive.is_write_protected());
  if (is_protected) co_return fail(Code::access_denied, "the cartridge is write protected", Scope::cartridge);
  if (!options.overwrite) CO_TRY_VOID(co_await check_blank(drive));
  CO_TRY_VOID(co_await drive.format_two_partitions());

  State state(drive, environment, mount_options);
  const auto now = environment.clock.now();
  state.change_count = drive.change_count();
  state.serial = serial_of(options.barcode);
  state.label = {.creator = state.creator("format"),
                 .format_time = base::to_ltfs_time(now),
                 .volume_uuid = make_uuid(environment.rng),
                 .block_bytes = options.block_bytes};
  auto other = state.label;
  other.location = 'b';
  CO_TRY_VOID(co_await write_labels(drive, other, state.serial, kDataPartition));
  CO_TRY_VOID(co_await write_labels(drive, state.label, state.serial, kIndexPartition));

  auto& index = state.index;
  index.volume_uuid = state.label.volume_uuid;
  index.volume_name = options.volume_name;
  index.root.uid = 1;
  index.root.times = {now, now, now, now, now};
  state.index_changed = true;
  CO_TRY_VOID(co_await state.write_data_index());
  CO_TRY_VOID(co_await state.write_index_partition());
  CO_TRY_VOID(co_await write_host_attributes(drive, options));
  CO_TRY_VOID(co_await state.write_coherency());
  co_return co_await mount(drive, environment, mount_options);
}

}  // namespace reelway::tape::ltfs
