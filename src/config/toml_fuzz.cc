// Configuration files of any content.
#include <cstddef>
#include <cstdint>

#include "config/toml_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)reelway::config::parse_toml({reinterpret_cast<const char*>(data), size}, "fuzz");
  return 0;
}
