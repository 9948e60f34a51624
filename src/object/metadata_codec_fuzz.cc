// What decodes must encode and decode to the same again.
#include <cstdlib>

#include "object/metadata_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reelway;
  const auto first = object::decode_metadata(std::as_bytes(std::span(data, size)));
  if (!first) return 0;
  const base::Bytes encoded = object::encode_metadata(*first);
  const auto second = object::decode_metadata(encoded);
  if (!second || object::encode_metadata(*second) != encoded) std::abort();
  return 0;
}
