#pragma once
// What the whole of a multipart upload is worth, from its parts alone; nothing is read again.
// Source: Amazon S3 User Guide, "Checking object integrity": composite and full-object checksums.

#include <span>
#include <string>

#include "s3/errors.h"
#include "s3/types.h"

namespace reelway::s3 {

struct PartDigest {
  std::uint64_t size = 0;
  std::string etag;
  std::vector<Checksum> checksums;
};

/// "<md5 of the parts' binary MD5s>-<count>". For parts whose ETag is no MD5 (crc64nvme-...), the MD5 of the
/// ETags' text instead: still unique to the parts and their order.
std::string multipart_etag(std::span<const PartDigest> parts);

/// The checksum of part checksums, "<base64>-<count>". invalid_argument when a part lacks it or for
/// CRC64NVME.
base::Result<Checksum> composite_checksum(base::ChecksumKind kind, std::span<const PartDigest> parts);
/// The checksum over all bytes, combined from the parts' CRCs and lengths. invalid_argument when a part lacks
/// it or for a kind that is no CRC.
base::Result<Checksum> full_object_checksum(base::ChecksumKind kind, std::span<const PartDigest> parts);

/// Which multipart checksum types a kind has: CRC64NVME is never composite, SHA1 and SHA256 are never
/// full-object.
bool may_be_composite(base::ChecksumKind kind);
bool may_be_full_object(base::ChecksumKind kind);

}  // namespace reelway::s3
