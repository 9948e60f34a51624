// Takes a chunked body apart whole and byte by byte; both must see the same payload and end.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "http/chunked.h"

static std::string decode(std::string_view text, std::size_t step, bool& done) {
  reelway::http::ChunkedDecoder decoder;
  std::string payload;
  while (!text.empty() && !decoder.done()) {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>({decoder.data_left(), text.size(), step}));
    payload += text.substr(0, count);
    if (count > 0) decoder.take(count);
    const auto used = count > 0 ? count : decoder.advance(text.substr(0, step)).value_or(SIZE_MAX);
    if (used > text.size()) break;
    text.remove_prefix(used);
  }
  done = decoder.done();
  return payload;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  bool whole_done = false, stepped_done = false;
  if (decode(text, size, whole_done) != decode(text, 1, stepped_done) || whole_done != stepped_done)
    std::abort();
  return 0;
}
