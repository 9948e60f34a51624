// Ranges, dates and ETag lists.
#include <cstdlib>

#include "s3/request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reelway::s3;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto range = parse_range(text);
  if (range && range->first && range->last && *range->first > *range->last) std::abort();
  (void)parse_copy_range(text);
  (void)parse_http_date(text);
  (void)parse_iso8601(text);
  (void)parse_etag_list(text);
  return 0;
}
