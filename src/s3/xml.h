#pragma once
// XML bodies of S3: the four that a gateway reads (size and depth capped, no DTD, no entities of the sender's
// own) and the documents it writes. Writing escapes control characters as &#xNN;; with encode_url keys,
// prefixes, markers and delimiters are percent-encoded instead. Source: Amazon S3 API Reference,
// "Request/Response Syntax" of each operation; namespace http://s3.amazonaws.com/doc/2006-03-01/.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "s3/errors.h"
#include "s3/types.h"

namespace reelway::s3 {

// ---- read ----

struct CompletedPart {
  std::uint32_t part_number = 0;
  std::string etag;  ///< without quotes
  std::vector<Checksum> checksums;
};
/// MalformedXML; InvalidPartOrder unless ascending; InvalidArgument for a number out of range.
Outcome<std::vector<CompletedPart>> parse_complete_multipart_upload(std::string_view xml);

struct DeleteEntry {
  std::string key;
  std::string version_id;
  std::optional<std::string> etag;  ///< a condition
};
struct DeleteBody {
  std::vector<DeleteEntry> objects;  ///< 1 to 1000
  bool quiet = false;
};
Outcome<DeleteBody> parse_delete(std::string_view xml);

struct CreateBucketBody {
  std::string location;  ///< empty: not given
};
/// An empty body is fine.
Outcome<CreateBucketBody> parse_create_bucket(std::string_view xml);

struct RestoreBody {
  std::uint32_t days = 0;
  std::string tier = "Standard";  ///< Expedited, Standard, Bulk
  std::string description;
};
Outcome<RestoreBody> parse_restore(std::string_view xml);

// ---- written ----

struct BucketEntry {
  std::string name;
  base::TimePoint created{};
};
std::string write_list_buckets(const Owner& owner, const std::vector<BucketEntry>& buckets,
                               std::string_view prefix, std::string_view next_continuation_token);

std::string write_location(std::string_view region);  ///< empty element for us-east-1

struct ObjectEntry {
  std::string key;
  std::uint64_t size = 0;
  std::string etag;
  base::TimePoint last_modified{};
  std::string storage_class = "STANDARD";
  std::vector<Checksum> checksums;
  std::optional<Owner> owner;
  std::optional<RestoreState> restore;
};
struct ListResult {
  std::string bucket;
  std::string prefix;
  std::string delimiter;
  std::uint32_t max_keys = kPageMax;
  bool encode_url = false;
  bool truncated = false;
  std::vector<ObjectEntry> objects;
  std::vector<std::string> common_prefixes;
};
/// v1. NextMarker is written when truncated and a delimiter is given.
std::string write_list_objects(const ListResult& result, std::string_view marker,
                               std::string_view next_marker);
struct ListV2Extra {
  std::string start_after;
  std::string continuation_token;       ///< as the client sent it
  std::string next_continuation_token;  ///< when truncated
};
std::string write_list_objects_v2(const ListResult& result, const ListV2Extra& extra);

std::string write_copy_object(std::string_view etag, base::TimePoint last_modified,
                              const std::vector<Checksum>& checksums);
std::string write_copy_part(std::string_view etag, base::TimePoint last_modified,
                            const std::vector<Checksum>& checksums);

struct DeletedEntry {
  std::string key;
  std::string version_id;
};
struct DeleteErrorEntry {
  std::string key;
  std::string version_id;
  Fault fault;
};
/// `deleted` is left out when quiet.
std::string write_delete_result(const std::vector<DeletedEntry>& deleted,
                                const std::vector<DeleteErrorEntry>& errors, bool quiet);

std::string write_initiate_multipart(std::string_view bucket, std::string_view key,
                                     std::string_view upload_id);
std::string write_complete_multipart(std::string_view location, std::string_view bucket, std::string_view key,
                                     std::string_view etag, const std::vector<Checksum>& checksums);

struct PartEntry {
  std::uint32_t part_number = 0;
  std::uint64_t size = 0;
  std::string etag;
  base::TimePoint last_modified{};
  std::vector<Checksum> checksums;
};
struct ListPartsResult {
  std::string bucket;
  std::string key;
  std::string upload_id;
  Owner owner;
  std::string storage_class = "STANDARD";
  std::optional<base::ChecksumKind> checksum_kind;
  bool checksum_full_object = false;
  std::uint32_t part_number_marker = 0;
  std::uint32_t max_parts = kPageMax;
  bool truncated = false;
  bool encode_url = false;
  std::vector<PartEntry> parts;
};
std::string write_list_parts(const ListPartsResult& result);

struct UploadEntry {
  std::string key;
  std::string upload_id;
  base::TimePoint initiated{};
  Owner owner;
  std::string storage_class = "STANDARD";
  std::optional<base::ChecksumKind> checksum_kind;
  bool checksum_full_object = false;
};
struct ListUploadsResult {
  std::string bucket;
  std::string prefix;
  std::string delimiter;
  std::string key_marker;
  std::string upload_id_marker;
  std::string next_key_marker;
  std::string next_upload_id_marker;
  std::uint32_t max_uploads = kPageMax;
  bool truncated = false;
  bool encode_url = false;
  std::vector<UploadEntry> uploads;
  std::vector<std::string> common_prefixes;
};
std::string write_list_uploads(const ListUploadsResult& result);

/// Text content of an element: & < > and control characters escaped.
std::string xml_escape(std::string_view text);

}  // namespace reelway::s3
