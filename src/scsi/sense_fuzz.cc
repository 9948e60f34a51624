#include "scsi/sense.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto sense = reelway::scsi::parse_sense(bytes);
  if (sense) (void)reelway::scsi::to_error(*sense, "fuzz");
  return 0;
}
