#pragma once
// Words for memory and for parts of objects. A range is half-open: [offset, offset + length).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace reelway::base {

using ByteView = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t end() const { return offset + length; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

inline ByteView as_bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;

}  // namespace reelway::base
