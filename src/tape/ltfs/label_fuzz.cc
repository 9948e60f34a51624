// Both label records, and the coherency information of the cartridge memory.
#include <cstdlib>

#include "tape/ltfs/coherency.h"
#include "tape/ltfs/label.h"

namespace format = reelway::tape::ltfs;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto label = format::decode_label(bytes)) {
    const auto text = format::encode_label(*label);
    const auto again = format::decode_label(reelway::base::as_bytes(text));
    if (!again || !(*again == *label)) std::abort();
  }
  (void)format::decode_vol1(bytes);
  (void)format::decode_change_reference(bytes);
  if (const auto coherency = format::decode_coherency(bytes)) {
    const auto again = format::decode_coherency(format::encode_coherency(*coherency));
    if (!again || again->generation != coherency->generation) std::abort();
  }
  return 0;
}
