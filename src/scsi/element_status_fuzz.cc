#include "scsi/replies.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  (void)reelway::scsi::parse_element_status(bytes);
  return 0;
}
