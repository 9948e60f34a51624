// Tar headers, pax records and the table of contents. The first byte says in which pieces the rest is fed.
#include <algorithm>

#include "tape/bundle/bundle.h"

namespace format = reelway::tape::bundle;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t step = data[0] + 1U;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  format::Reader reader;
  for (auto rest = bytes; !rest.empty(); rest = rest.subspan(std::min(step, rest.size()))) {
    if (!reader.feed(rest.first(std::min(step, rest.size())))) break;
    (void)reader.take_found();
    reader.skip(reader.skippable() / 2);
  }
  const auto location =
      format::find_toc(bytes.last(std::min(bytes.size(), format::kTailBytes)), bytes.size());
  if (!location) return 0;
  const auto offset = static_cast<std::size_t>(location->offset);
  (void)format::decode_toc(bytes.subspan(offset, static_cast<std::size_t>(location->length)), *location);
  return 0;
}
