// Input as for request_fuzz. Whatever parses is verified with a fixed key, which must never succeed by
// chance.
#include <cstdlib>

#include "s3/fuzz_head.h"
#include "s3/sigv4.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reelway;
  const auto head = s3::fuzz_head({reinterpret_cast<const char*>(data), size});
  const auto authorization = s3::parse_authorization(head);
  if (!authorization || !*authorization) return 0;
  const s3::SigningKey key{};
  const base::TimePoint now{std::chrono::sys_days{std::chrono::year{2013} / 5 / 24}};
  if (s3::verify(**authorization, head, key, "us-east-1", now)) std::abort();
  return 0;
}
