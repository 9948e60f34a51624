#include "store/posix/attribute.h"

#include <algorithm>
#include <array>

#include "base/checksum.h"

namespace reelway::store::posix {

namespace {

constexpr std::array<std::byte, 4> kMagic{std::byte{'R'}, std::byte{'L'}, std::byte{'W'}, std::byte{'Y'}};
constexpr std::byte kVersion{1};
constexpr std::byte kFlagHmac{1};
constexpr std::size_t kHeaderBytes = 12;  // magic 4, version 1, kind 1, flags 1, zero 1, payload length 4
constexpr std::size_t kHmacBytes = 32;
constexpr std::size_t kCrcBytes = 4;

void put_u32(base::Bytes& out, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<std::byte>(value >> shift));
}

std::uint32_t get_u32(base::ByteView bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return value;
}

base::Bytes hmac_of(const base::Bytes& key, std::string_view binding, base::ByteView header_and_payload) {
  base::Bytes message;
  put_u32(message, static_cast<std::uint32_t>(binding.size()));
  std::ranges::copy(base::as_bytes(binding), std::back_inserter(message));
  std::ranges::copy(header_and_payload, std::back_inserter(message));
  return base::hmac_sha256(key, message);
}

/// In a time that does not tell where the first difference lies.
bool equal_digests(base::ByteView a, base::ByteView b) {
  std::byte difference{0};
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{0};
}

base::Error broken(const char* what) { return base::fail(base::Code::data_loss, what, base::Scope::object); }

}  // namespace

base::Bytes pack_record(const Record& record, const std::optional<base::Bytes>& key,
                        std::string_view binding) {
  base::Bytes out(kMagic.begin(), kMagic.end());
  out.push_back(kVersion);
  out.push_back(static_cast<std::byte>(record.kind));
  out.push_back(key ? kFlagHmac : std::byte{0});
  out.push_back(std::byte{0});
  put_u32(out, static_cast<std::uint32_t>(record.payload.size()));
  out.insert(out.end(), record.payload.begin(), record.payload.end());
  if (key) std::ranges::copy(hmac_of(*key, binding, out), std::back_inserter(out));
  put_u32(out, base::crc32c(0, out));
  return out;
}

base::Result<Record> unpack_record(base::ByteView& bytes, const std::optional<base::Bytes>& key,
                                   std::string_view binding) {
  if (bytes.size() < kHeaderBytes) return broken("record: too short");
  if (!std::ranges::equal(bytes.first(4), kMagic)) return broken("record: no magic");
  if (bytes[4] != kVersion) return broken("record: of another version");
  const auto kind = std::to_integer<std::uint8_t>(bytes[5]);
  if (kind > static_cast<std::uint8_t>(RecordKind::inode)) return broken("record: of no known kind");
  if ((bytes[6] | kFlagHmac) != kFlagHmac || bytes[7] != std::byte{0}) return broken("record: unknown flags");
  const std::size_t payload_bytes = get_u32(bytes.subspan(8));
  const bool has_hmac = bytes[6] == kFlagHmac;
  const std::size_t covered = kHeaderBytes + payload_bytes;
  const std::size_t total = covered + (has_hmac ? kHmacBytes : 0) + kCrcBytes;
  if (bytes.size() < total) return broken("record: cut short");
  if (base::crc32c(0, bytes.first(total - kCrcBytes)) != get_u32(bytes.subspan(total - kCrcBytes)))
    return broken("record: wrong CRC");
  if (key) {
    if (!has_hmac) return base::fail(base::Code::access_denied, "record: not signed", base::Scope::object);
    if (!equal_digests(bytes.subspan(covered, kHmacBytes), hmac_of(*key, binding, bytes.first(covered))))
      return base::fail(base::Code::access_denied, "record: wrong HMAC", base::Scope::object);
  }
  const base::ByteView payload = bytes.subspan(kHeaderBytes, payload_bytes);
  Record record{.kind = static_cast<RecordKind>(kind), .payload = {payload.begin(), payload.end()}};
  bytes = bytes.subspan(total);
  return record;
}

}  // namespace reelway::store::posix
