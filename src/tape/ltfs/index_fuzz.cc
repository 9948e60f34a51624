// An index that is read can be written, and reads back to the same text.
#include <cstdlib>

#include "tape/ltfs/index.h"

using reelway::tape::ltfs::Index;

static reelway::base::Result<Index> parse(reelway::base::ByteView text) {
  reelway::tape::ltfs::IndexParser parser({.xml_bytes_max = 1 << 20, .entry_count_max = 10'000});
  TRY_VOID(parser.feed(text));
  return parser.finish();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto index = parse(std::as_bytes(std::span(data, size)));
  if (!index) return 0;
  std::string first;
  std::string second;
  reelway::tape::ltfs::IndexSerializer(*index).fill(first, SIZE_MAX);
  const auto again = parse(reelway::base::as_bytes(first));
  if (!again) std::abort();
  reelway::tape::ltfs::IndexSerializer(*again).fill(second, SIZE_MAX);
  if (first != second) std::abort();
  return 0;
}
