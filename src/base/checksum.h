#pragma once
// The checksums that S3 and LTFS name, behind one streaming interface. CRC values in their byte form are
// big-endian, as S3's base64 has them. CRC32 (ISO-HDLC), CRC32C (Castagnoli), CRC64NVME (check value of
// "123456789": ae8b14860a799888), SHA-1, SHA-256 (FIPS 180-4), MD5.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/encoding.h"

namespace reelway::base {

enum class ChecksumKind : std::uint8_t { crc32, crc32c, crc64nvme, sha1, sha256, md5 };

std::string_view to_string(ChecksumKind kind);                      ///< "crc32", ... as in x-amz-checksum-*
std::optional<ChecksumKind> parse_checksum_kind(std::string_view);  ///< either case
std::size_t digest_size(ChecksumKind kind);                         ///< bytes
inline bool is_crc(ChecksumKind kind) { return kind <= ChecksumKind::crc64nvme; }

class Hasher {
 public:
  virtual ~Hasher() = default;
  virtual void update(ByteView bytes) = 0;
  /// The digest of all bytes so far; the hasher goes on as before.
  virtual Bytes digest() const = 0;
};
std::unique_ptr<Hasher> make_hasher(ChecksumKind kind);
Bytes digest_of(ChecksumKind kind, ByteView bytes);

std::uint32_t crc32c(std::uint32_t crc, ByteView bytes);  ///< crc = 0 to start; chains
std::uint32_t crc32(std::uint32_t crc, ByteView bytes);
std::uint64_t crc64nvme(std::uint64_t crc, ByteView bytes);
/// The CRC of A followed by B from theirs (values as digest gives them, as numbers) and B's length.
std::uint64_t combine_crc(ChecksumKind kind, std::uint64_t a, std::uint64_t b, std::uint64_t b_length);

Bytes hmac_sha256(ByteView key, ByteView message);

}  // namespace reelway::base
