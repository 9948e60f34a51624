#pragma once
// Plain values of the S3 protocol, shared by requests, XML documents and response headers. Names are raw
// bytes, already percent-decoded; ETags carry no quotes; times are UTC. Nothing here knows of stores: the
// gateway converts to and from object/types.h field by field. Source: Amazon S3 API Reference, "Common
// Request Headers" and the pages of the operations.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/clock.h"

namespace reelway::s3 {

inline constexpr std::uint64_t kObjectBytesMax = 5 * base::kGiB;  ///< a single PUT, a part, a copy source
inline constexpr std::uint64_t kPartBytesMin = 5 * base::kMiB;    ///< every part but the last
inline constexpr std::uint32_t kPartNumberMax = 10'000;
inline constexpr std::uint32_t kPageMax = 1000;  ///< keys, parts, uploads in one answer
inline constexpr std::size_t kKeyBytesMax = 1024;
inline constexpr std::size_t kUserMetadataBytesMax = 2048;

struct Checksum {
  base::ChecksumKind kind{};
  base::Bytes value;
  std::uint32_t composite_part_count = 0;  ///< 0: over the full object; else its text form ends in "-<count>"
  friend bool operator==(const Checksum&, const Checksum&) = default;
};
/// "rosUhgp5mIg=" or "<base64>-<parts>".
std::string to_text(const Checksum& checksum);
/// "x-amz-checksum-crc32", and "ChecksumCRC32" for XML.
std::string checksum_header(base::ChecksumKind kind);
std::string_view checksum_element(base::ChecksumKind kind);
/// "CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256", as in x-amz-checksum-algorithm.
std::string_view checksum_algorithm(base::ChecksumKind kind);

/// What a client sends along with an object and gets back unchanged.
struct Attributes {
  /// content-type, cache-control, content-disposition, content-encoding (without aws-chunked),
  /// content-language, expires; by lower-case name.
  std::map<std::string, std::string> headers;
  std::map<std::string, std::string> user;  ///< x-amz-meta-*, by lower-case name without the prefix
  friend bool operator==(const Attributes&, const Attributes&) = default;
};

/// Preconditions. "*" in a list is any.
struct Conditions {
  std::vector<std::string> if_match;
  std::vector<std::string> if_none_match;
  std::optional<base::TimePoint> if_modified_since;
  std::optional<base::TimePoint> if_unmodified_since;
  bool empty() const {
    return if_match.empty() && if_none_match.empty() && !if_modified_since && !if_unmodified_since;
  }
  friend bool operator==(const Conditions&, const Conditions&) = default;
};

/// first-last (inclusive), first-, or -last (the last `last` bytes, `first` absent).
struct Range {
  std::optional<std::uint64_t> first;
  std::optional<std::uint64_t> last;
  friend bool operator==(const Range&, const Range&) = default;
};

struct CopySource {
  std::string bucket;
  std::string key;
  std::string version_id;  ///< empty: the current one
  friend bool operator==(const CopySource&, const CopySource&) = default;
};

/// What the client says about the bytes it sends.
struct Integrity {
  std::optional<base::Bytes> content_md5;     ///< 16 bytes
  std::optional<Checksum> checksum;           ///< an x-amz-checksum-* header
  std::optional<base::ChecksumKind> trailer;  ///< the checksum that x-amz-trailer announces
  std::optional<base::ChecksumKind>
      algorithm;  ///< x-amz-sdk-checksum-algorithm: what to compute where no value is given
};

struct Owner {
  std::string id;
  std::string display_name;
};

struct RestoreState {
  bool ongoing = false;
  std::optional<base::TimePoint> expiry;
};

}  // namespace reelway::s3
