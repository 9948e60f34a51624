// Input: a byte for the form, a byte for the size of the pieces fed, then the body.
#include <algorithm>
#include <cstdlib>

#include "s3/aws_chunked.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reelway;
  if (size < 2) return 0;
  constexpr std::uint64_t kLength = 9000;
  s3::ChunkedOptions options{.form = static_cast<s3::PayloadForm>(2 + data[0] % 3),
                             .signing = {},
                             .decoded_length = kLength,
                             .trailer = {}};
  if ((data[0] & 64) != 0) options.trailer = base::ChecksumKind::crc32;
  s3::ChunkedDecoder decoder(std::move(options));
  auto rest = std::as_bytes(std::span(data + 2, size - 2));
  std::uint64_t given = 0;
  while (!rest.empty()) {
    const auto step = decoder.feed(rest.first(std::min<std::size_t>(rest.size(), 1U + data[1])));
    if (!step) return 0;
    given += step->data.size();
    rest = rest.subspan(step->consumed);
  }
  if (given > kLength || (decoder.done() && given != kLength)) std::abort();
  return 0;
}
