// Both label records, and the coherency information of the cartridge memory.
#include <cstdlib>

#include "tape/ltfs/coherency.h"
#include "tape/ltfs/label.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reelway::tape::ltfs;
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto label = decode_label(bytes)) {
    const auto text = encode_label(*label);
    const auto again = decode_label(reelway::base::as_bytes(text));
    if (!again || !(*again == *label)) std::abort();
  }
  (void)decode_vol1(bytes);
  (void)decode_change_reference(bytes);
  if (const auto coherency = decode_coherency(bytes)) {
    const auto again = decode_coherency(encode_coherency(*coherency));
    if (!again || again->generation != coherency->generation) std::abort();
  }
  return 0;
}
