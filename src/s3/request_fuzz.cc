// Input: method, target and header lines, separated by newlines ("name: value").
#include "s3/fuzz_head.h"
#include "s3/request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto head = reelway::s3::fuzz_head({reinterpret_cast<const char*>(data), size});
  (void)reelway::s3::parse_request(head, {.virtual_host_domains = {"example.com"}});
  (void)reelway::s3::object_length(head);
  return 0;
}
