#pragma once
// Big-endian fields of CDBs and replies. The caller checks bounds; offsets are bytes.

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace reelway::scsi {

/// `width` bytes (1 to 8) at `offset`.
inline std::uint64_t get_field(base::ByteView bytes, std::size_t offset, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i)
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[offset + i]);
  return value;
}

inline void put_field(base::MutableBytes bytes, std::size_t offset, std::size_t width, std::uint64_t value) {
  for (std::size_t i = width; i-- > 0; value >>= 8) bytes[offset + i] = static_cast<std::byte>(value & 0xff);
}

inline std::uint8_t get_u8(base::ByteView bytes, std::size_t offset) {
  return std::to_integer<std::uint8_t>(bytes[offset]);
}
inline std::uint16_t get_u16(base::ByteView bytes, std::size_t offset) {
  return static_cast<std::uint16_t>(get_field(bytes, offset, 2));
}
inline std::uint32_t get_u24(base::ByteView bytes, std::size_t offset) {
  return static_cast<std::uint32_t>(get_field(bytes, offset, 3));
}
inline std::uint32_t get_u32(base::ByteView bytes, std::size_t offset) {
  return static_cast<std::uint32_t>(get_field(bytes, offset, 4));
}
inline std::uint64_t get_u64(base::ByteView bytes, std::size_t offset) { return get_field(bytes, offset, 8); }

inline base::ByteView bytes_of(const auto& cdb) {
  return std::as_bytes(std::span(cdb.bytes)).first(cdb.length);
}

}  // namespace reelway::scsi
