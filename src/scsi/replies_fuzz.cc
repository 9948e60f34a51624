#include "scsi/replies.h"

// The first byte picks the decoder, so that one corpus serves them all.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace scsi = reelway::scsi;
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  switch (data[0] % 12) {
    case 0:
      (void)scsi::parse_inquiry(bytes);
      break;
    case 1:
      (void)scsi::parse_unit_serial(bytes);
      break;
    case 2:
      (void)scsi::parse_block_limits(bytes);
      break;
    case 3:
      (void)scsi::parse_position(scsi::PositionForm::short_form, bytes);
      break;
    case 4:
      (void)scsi::parse_position(scsi::PositionForm::long_form, bytes);
      break;
    case 5:
      (void)scsi::parse_position(scsi::PositionForm::extended_form, bytes);
      break;
    case 6:
      (void)scsi::parse_mode_data(bytes);
      break;
    case 7:
      (void)scsi::parse_medium_partitions(bytes);
      break;
    case 8:
      (void)scsi::parse_element_addresses(bytes);
      break;
    case 9:
      (void)scsi::parse_attributes(bytes);
      break;
    case 10:
      (void)scsi::parse_opcodes(bytes);
      break;
    case 11:
      if (const auto page = scsi::parse_log_page(bytes)) (void)scsi::tape_capacities(*page);
      break;
  }
  return 0;
}
