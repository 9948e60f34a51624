#include "object/cbor_reader.h"

#include <limits>

namespace reelway::object {

namespace {

constexpr int kDepthMax = 4;

// RFC 8949, section 3.1: major types.
constexpr std::uint8_t kUnsigned = 0, kNegative = 1, kBytes = 2, kText = 3, kArray = 4, kMap = 5, kTag = 6;

base::Error malformed(const char* what) {
  return base::fail(base::Code::data_loss, std::string("CBOR: ") + what, base::Scope::object);
}

}  // namespace

base::Result<base::ByteView> CborReader::take(std::uint64_t count) {
  if (count > rest_.size()) return malformed("ends too early");
  const base::ByteView taken = rest_.first(count);
  rest_ = rest_.subspan(count);
  return taken;
}

base::Result<CborReader::Head> CborReader::head() {
  TRY(const base::ByteView first, take(1));
  const auto initial = static_cast<std::uint8_t>(first.front());
  const std::uint8_t low = initial & 0x1f;
  Head head{.major = static_cast<std::uint8_t>(initial >> 5), .argument = low};
  if (low < 24) return head;
  if (low > 27) return malformed("an indefinite or reserved length");
  TRY(const base::ByteView more, take(std::uint64_t{1} << (low - 24)));
  head.argument = 0;
  for (const std::byte byte : more) head.argument = head.argument << 8 | static_cast<std::uint8_t>(byte);
  return head;
}

base::Result<std::uint64_t> CborReader::argument_of(std::uint8_t major) {
  TRY(const Head found, head());
  if (found.major != major) return malformed("another type than expected");
  return found.argument;
}

base::Result<std::uint64_t> CborReader::map_size() { return argument_of(kMap); }

base::Result<std::uint64_t> CborReader::array_size() { return argument_of(kArray); }

base::Result<std::uint64_t> CborReader::unsigned_number() { return argument_of(kUnsigned); }

base::Result<std::string_view> CborReader::text() {
  TRY(const std::uint64_t size, argument_of(kText));
  TRY(const base::ByteView bytes, take(size));
  return base::as_text(bytes);
}

base::Result<base::ByteView> CborReader::byte_string() {
  TRY(const std::uint64_t size, argument_of(kBytes));
  return take(size);
}

base::Result<std::int64_t> CborReader::number() {
  TRY(const Head found, head());
  const bool fits = found.argument <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!fits || (found.major != kUnsigned && found.major != kNegative))
    return malformed("no number that fits");
  const auto value = static_cast<std::int64_t>(found.argument);
  return found.major == kUnsigned ? value : -1 - value;
}

base::Result<void> CborReader::skip() { return skip(1); }

base::Result<void> CborReader::skip(int depth) {
  if (depth > kDepthMax) return malformed("nested too deep");
  TRY(const Head found, head());
  switch (found.major) {
    case kBytes:
    case kText:
      TRY_VOID(take(found.argument));
      return {};
    case kArray:
    case kMap: {
      // Each item takes a byte at least, so a count beyond the rest is a lie.
      if (found.argument > rest_.size()) return malformed("ends too early");
      const std::uint64_t items = found.major == kMap ? 2 * found.argument : found.argument;
      for (std::uint64_t item = 0; item < items; ++item) TRY_VOID(skip(depth + 1));
      return {};
    }
    case kTag:
      return skip(depth + 1);
    default:
      return {};  // numbers, simple values and floats: all in the head
  }
}

}  // namespace reelway::object
