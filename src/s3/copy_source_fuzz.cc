#include <cstdlib>

#include "s3/request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reelway::s3;
  const auto source = parse_copy_source({reinterpret_cast<const char*>(data), size});
  if (source && (!check_bucket_name(source->bucket) || !check_key(source->key))) std::abort();
  return 0;
}
