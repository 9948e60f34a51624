#include "s3/multipart.h"

#include <algorithm>

#include "base/encoding.h"

namespace reelway::s3 {

namespace {

const Checksum* find_checksum(const PartDigest& part, base::ChecksumKind kind) {
  const auto it = std::ranges::find(part.checksums, kind, &Checksum::kind);
  return it == part.checksums.end() ? nullptr : &*it;
}

base::Error missing(base::ChecksumKind kind) {
  return base::fail(base::Code::invalid_argument, "a part has no " + std::string(base::to_string(kind)));
}

std::uint64_t to_number(base::ByteView big_endian) {
  std::uint64_t number = 0;
  for (const std::byte byte : big_endian) number = number << 8 | std::to_integer<std::uint64_t>(byte);
  return number;
}

base::Bytes to_big_endian(std::uint64_t number, std::size_t size) {
  base::Bytes bytes(size);
  for (std::size_t i = size; i-- > 0; number >>= 8) bytes[i] = static_cast<std::byte>(number & 0xFF);
  return bytes;
}

}  // namespace

std::string multipart_etag(std::span<const PartDigest> parts) {
  const auto hasher = base::make_hasher(base::ChecksumKind::md5);
  for (const PartDigest& part : parts) {
    const auto md5 = base::from_hex(part.etag);
    const bool is_md5 = md5 && md5->size() == base::digest_size(base::ChecksumKind::md5);
    hasher->update(is_md5 ? base::ByteView(*md5) : base::as_bytes(part.etag));
  }
  return base::to_hex(hasher->digest()) + "-" + std::to_string(parts.size());
}

bool may_be_composite(base::ChecksumKind kind) { return kind != base::ChecksumKind::crc64nvme; }

bool may_be_full_object(base::ChecksumKind kind) { return base::is_crc(kind); }

base::Result<Checksum> composite_checksum(base::ChecksumKind kind, std::span<const PartDigest> parts) {
  if (!may_be_composite(kind))
    return base::fail(base::Code::invalid_argument, "CRC64NVME is never composite");
  const auto hasher = base::make_hasher(kind);
  for (const PartDigest& part : parts) {
    const Checksum* checksum = find_checksum(part, kind);
    if (checksum == nullptr) return missing(kind);
    hasher->update(checksum->value);
  }
  return Checksum{.kind = kind,
                  .value = hasher->digest(),
                  .composite_part_count = static_cast<std::uint32_t>(parts.size())};
}

base::Result<Checksum> full_object_checksum(base::ChecksumKind kind, std::span<const PartDigest> parts) {
  if (!may_be_full_object(kind)) {
    return base::fail(base::Code::invalid_argument,
                      std::string(base::to_string(kind)) + " cannot be combined from parts");
  }
  std::uint64_t crc = 0;
  for (const PartDigest& part : parts) {
    const Checksum* checksum = find_checksum(part, kind);
    if (checksum == nullptr) return missing(kind);
    crc = base::combine_crc(kind, crc, to_number(checksum->value), part.size);
  }
  return Checksum{.kind = kind, .value = to_big_endian(crc, base::digest_size(kind))};
}

}  // namespace reelway::s3
