// Manifest bodies and trailers: what is accepted is written back to something that means the same.
#include <cstdlib>

#include "tape/ltfs/manifest.h"

namespace format = reelway::tape::ltfs;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto manifest = format::decode_manifest(reelway::base::as_text(bytes))) {
    const auto text = format::encode_manifest(*manifest);
    const auto again = format::decode_manifest(text);
    if (!again || format::encode_manifest(*again) != text) std::abort();
  }
  if (const auto trailer = format::decode_trailer(bytes)) {
    const auto text = format::encode_trailer(*trailer);
    if (!format::decode_trailer(reelway::base::as_bytes(text))) std::abort();
  }
  return 0;
}
