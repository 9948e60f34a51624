// What unpacks must pack to the same bytes again.
#include <algorithm>
#include <cstdlib>

#include "store/posix/attribute.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reelway::store::posix;
  const reelway::base::ByteView whole = std::as_bytes(std::span(data, size));
  reelway::base::ByteView rest = whole;
  const auto record = unpack_record(rest, std::nullopt, "");
  if (!record || whole[6] != std::byte{0}) return 0;
  const auto packed = pack_record(*record, std::nullopt, "");
  if (!std::ranges::equal(packed, whole.first(whole.size() - rest.size()))) std::abort();
  return 0;
}
