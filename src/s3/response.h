#pragma once
// Response headers of an object (GET, HEAD; PUT and UploadPart use the parts they need). HEAD is GET without
// the body. Source: Amazon S3 API Reference, GetObject and HeadObject; RFC 9110 section 14.4 for
// Content-Range.

#include "base/http_head.h"
#include "s3/types.h"

namespace reelway::s3 {

struct ObjectView {
  std::uint64_t size = 0;
  std::string etag;
  base::TimePoint last_modified{};
  Attributes attributes;
  std::string storage_class = "STANDARD";
  std::vector<Checksum> checksums;
  std::vector<std::uint64_t> part_sizes;  ///< empty unless made by multipart upload
  std::optional<RestoreState> restore;
};

struct ObjectHeaderOptions {
  std::map<std::string, std::string> overrides;  ///< lower-case header -> value
  bool checksum_mode = false;                    ///< full-object sums are left out of a partial answer
  std::optional<std::uint32_t> part_number;      ///< then x-amz-mp-parts-count
  std::optional<base::ByteRange> range;          ///< then Content-Range
};
/// ETag, Last-Modified, Accept-Ranges, Content-Type (binary/octet-stream by default), the stored headers,
/// x-amz-meta-*, x-amz-storage-class (not for STANDARD), x-amz-restore, checksums with x-amz-checksum-type.
/// Content-Length is the caller's.
void add_object_headers(base::HttpFields& fields, const ObjectView& object,
                        const ObjectHeaderOptions& options);

/// x-amz-checksum-* and x-amz-checksum-type.
void add_checksum_headers(base::HttpFields& fields, const std::vector<Checksum>& checksums);

std::string quote_etag(std::string_view etag);
/// `ongoing-request="false", expiry-date="..."`
std::string restore_header(const RestoreState& state);
/// GLACIER and DEEP_ARCHIVE: classes that RestoreObject applies to.
bool is_archive_class(std::string_view storage_class);

}  // namespace reelway::s3
