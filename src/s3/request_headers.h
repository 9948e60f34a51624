#pragma once
// The parts of a request's headers that several operations share, decoded and checked. Only for this room.

#include "base/http_head.h"
#include "s3/errors.h"
#include "s3/types.h"

namespace reelway::s3 {

/// System headers and x-amz-meta-*. MetadataTooLarge.
Outcome<Attributes> parse_attributes(const base::HttpFields& fields);
/// x-amz-storage-class where present. InvalidStorageClass.
Outcome<std::optional<std::string>> parse_storage_class(const base::HttpFields& fields);
/// Content-MD5, x-amz-checksum-*, x-amz-trailer, x-amz-sdk-checksum-algorithm. InvalidDigest, InvalidRequest.
Outcome<Integrity> parse_integrity(const base::HttpFields& fields);
/// The x-amz-checksum-* value of a whole multipart object, where "-<parts>" may follow.
Outcome<std::optional<Checksum>> parse_checksum(const base::HttpFields& fields, bool composite_allowed);
/// x-amz-checksum-algorithm or x-amz-sdk-checksum-algorithm.
Outcome<std::optional<base::ChecksumKind>> parse_algorithm(const base::HttpFields& fields,
                                                           std::string_view header);

/// `prefix` is empty or "x-amz-copy-source-".
Conditions parse_read_conditions(const base::HttpFields& fields, std::string_view prefix = {});
/// If-Match or If-None-Match: *. NotImplemented for anything more.
Outcome<Conditions> parse_write_conditions(const base::HttpFields& fields);
/// If-Match. NotImplemented for the conditions that only directory buckets have.
Outcome<Conditions> parse_delete_conditions(const base::HttpFields& fields);

/// Headers whose meaning would be lost if they were ignored (encryption, tags, locks, ACLs, appends):
/// NotImplemented or AccessControlListNotSupported.
Outcome<void> refuse_unsupported_headers(const base::HttpFields& fields);

}  // namespace reelway::s3
