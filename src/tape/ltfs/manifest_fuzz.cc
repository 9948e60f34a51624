// Manifest bodies and trailers: what is accepted is written back to something that means the same.
#include <cstdlib>

#include "tape/ltfs/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reelway::tape::ltfs;
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto manifest = decode_manifest(reelway::base::as_text(bytes))) {
    const auto text = encode_manifest(*manifest);
    const auto again = decode_manifest(text);
    if (!again || encode_manifest(*again) != text) std::abort();
  }
  if (const auto trailer = decode_trailer(bytes)) {
    const auto text = encode_trailer(*trailer);
    if (!decode_trailer(reelway::base::as_bytes(text))) std::abort();
  }
  return 0;
}
