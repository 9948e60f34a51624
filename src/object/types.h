#pragma once
// What an object is to every layer above a store.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/clock.h"

namespace reelway::object {

/// Raw bytes of the bucket's and the key's names, already percent-decoded.
struct ObjectName {
  std::string bucket;
  std::string key;
  friend auto operator<=>(const ObjectName&, const ObjectName&) = default;
};

/// A checksum in its byte form. `composite` is S3's checksum of part checksums, with the number of parts.
struct Checksum {
  base::ChecksumKind kind{};
  base::Bytes value;
  std::uint32_t composite_part_count = 0;  ///< 0: over the full object
  friend bool operator==(const Checksum&, const Checksum&) = default;
};

/// What a client sent along and gets back unchanged.
struct Attributes {
  /// System headers by lower-case name: content-type, cache-control, content-disposition, content-encoding,
  /// content-language, expires.
  std::map<std::string, std::string> headers;
  /// x-amz-meta-*, by lower-case name without the prefix.
  std::map<std::string, std::string> user;
  std::string storage_class = "STANDARD";
  std::string owner;  ///< account's canonical id
  friend bool operator==(const Attributes&, const Attributes&) = default;
};

/// resident: all bytes on disk (also dual: disk and tape). evicted: on tape only.
enum class Residency : std::uint8_t { resident, evicted };

struct RestoreStatus {
  bool ongoing = false;
  std::optional<base::TimePoint> expiry;
};

struct ObjectInfo {
  ObjectName name;
  std::uint64_t size = 0;
  std::string etag;  ///< without quotes
  base::TimePoint last_modified{};
  std::string generation;  ///< ULID of this version of the content; empty for a file born by POSIX that was
                           ///< never archived
  Attributes attributes;
  std::vector<Checksum> checksums;
  std::vector<std::uint64_t> part_sizes;  ///< in order; empty unless made by multipart upload
  Residency residency = Residency::resident;
  std::optional<RestoreStatus> restore;  ///< filled by store/archive
};

/// HTTP's preconditions (RFC 9110 section 13, AWS GetObject, PutObject). ETags without quotes; "*" is any.
struct Conditions {
  std::vector<std::string> if_match;
  std::vector<std::string> if_none_match;
  std::optional<base::TimePoint> if_modified_since;
  std::optional<base::TimePoint> if_unmodified_since;
  bool empty() const {
    return if_match.empty() && if_none_match.empty() && !if_modified_since && !if_unmodified_since;
  }
};

/// For reads: success, not_modified or precondition_failed, by the order of RFC 9110 section 13.2.2 with S3's
/// exceptions (If-Match true wins over If-Unmodified-Since false; If-None-Match false wins over
/// If-Modified-Since true). Times compare by whole seconds.
base::Result<void> check_read_conditions(const Conditions& conditions, const ObjectInfo& info);
/// For writes: `current` is absent when there is no such object. precondition_failed, or not_found for
/// If-Match on nothing.
base::Result<void> check_write_conditions(const Conditions& conditions, const ObjectInfo* current);

struct BucketInfo {
  std::string name;
  base::TimePoint created{};
  std::string owner;
  std::string region;
};

}  // namespace reelway::object
