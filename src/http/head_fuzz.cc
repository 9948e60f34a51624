// Heads of requests and responses through the functions that server and client use, whole and byte by byte.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "http/head_parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reelway::http;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  HeadScan whole;
  const auto end = find_head_end(text, whole);
  HeadScan stepped;
  std::expected<std::size_t, HeadError> step = 0U;
  for (std::size_t i = 1; i <= size && step.has_value() && *step == 0; ++i)
    step = find_head_end(text.substr(0, i), stepped);
  if (step.has_value() != end.has_value() || (end.has_value() && *step != *end)) std::abort();
  if (!end.has_value() || *end == 0) return 0;
  if (const auto request = parse_request_head(text.substr(0, *end)); request.has_value()) {
    if (request->head.chunked && request->head.content_length) std::abort();
    if (request->head.target.find_first_of("\r\n ") != std::string::npos) std::abort();
  }
  (void)parse_response_head(text.substr(0, *end));
  return 0;
}
