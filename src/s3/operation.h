#pragma once
// One aggregate per S3 operation, with its parameters decoded and checked; bucket and key are in Request
// (s3/request.h). XML bodies are not part of it: read at most body_max bytes and hand them to s3/xml.h. A
// sub-resource that exists in S3 but not here is Unsupported (501), one that nobody configured yet is
// DefaultConfiguration (its empty document or NoSuch... error); an unknown one never becomes a plain GET, PUT
// or LIST. Source: Amazon S3 API Reference, "Actions"; Service Authorization Reference for the IAM actions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "s3/errors.h"
#include "s3/types.h"

namespace reelway::s3 {

/// GET /.well-known/reelway: what a client needs to know of this gateway.
struct WellKnown {};

struct ListBuckets {
  std::string prefix;
  std::uint32_t max_buckets = 10'000;
  std::string continuation_token;
};
struct CreateBucket {};
struct HeadBucket {};
struct DeleteBucket {};
struct GetBucketLocation {};

struct PutObject {
  Attributes attributes;
  std::string storage_class = "STANDARD";
  Conditions conditions;  ///< one of If-Match, If-None-Match: *
  Integrity integrity;
};
struct GetObject {
  Conditions conditions;
  std::optional<Range> range;
  std::optional<std::uint32_t> part_number;  ///< excludes range
  std::map<std::string, std::string>
      overrides;  ///< response-content-type=... as content-type; for a 200 or 206 to a signed request
  bool checksum_mode = false;  ///< x-amz-checksum-mode: ENABLED
  std::string version_id;      ///< empty or "null": the current one
};
struct HeadObject {
  Conditions conditions;
  std::optional<Range> range;
  std::optional<std::uint32_t> part_number;
  std::map<std::string, std::string> overrides;
  bool checksum_mode = false;
  std::string version_id;
};
struct DeleteObject {
  Conditions conditions;  ///< if_match only
  std::string version_id;
};
struct CopyObject {
  CopySource source;
  Conditions source_conditions;
  Conditions conditions;
  bool replace_metadata = false;  ///< x-amz-metadata-directive: REPLACE
  Attributes attributes;          ///< with replace_metadata
  std::optional<std::string> storage_class;
  std::optional<base::ChecksumKind> checksum_kind;  ///< x-amz-checksum-algorithm
};
struct DeleteObjects {
  Integrity integrity;  ///< content_md5 or a checksum is present (of the XML)
};
struct ListObjects {
  std::string prefix;
  std::string delimiter;
  std::string marker;
  std::uint32_t max_keys = kPageMax;
  bool encode_url = false;
  bool restore_status = false;  ///< x-amz-optional-object-attributes: RestoreStatus
};
struct ListObjectsV2 {
  std::string prefix;
  std::string delimiter;
  std::string start_after;
  std::string continuation_token;  ///< as decode_continuation_token() wants it
  bool fetch_owner = false;
  std::uint32_t max_keys = kPageMax;
  bool encode_url = false;
  bool restore_status = false;
};
struct CreateMultipartUpload {
  Attributes attributes;
  std::string storage_class = "STANDARD";
  std::optional<base::ChecksumKind> checksum_kind;  ///< x-amz-checksum-algorithm
  bool checksum_full_object = false;  ///< x-amz-checksum-type: FULL_OBJECT, and CRC64NVME's default
};
struct UploadPart {
  std::string upload_id;
  std::uint32_t part_number = 0;
  Integrity integrity;
};
struct UploadPartCopy {
  std::string upload_id;
  std::uint32_t part_number = 0;
  CopySource source;
  std::optional<Range> range;  ///< both ends present
  Conditions source_conditions;
};
struct CompleteMultipartUpload {
  std::string upload_id;
  Conditions conditions;
  std::optional<Checksum> checksum;          ///< of the whole object, as the client wants it checked
  std::optional<bool> checksum_full_object;  ///< x-amz-checksum-type
  std::optional<std::uint64_t> object_size;  ///< x-amz-mp-object-size
};
struct AbortMultipartUpload {
  std::string upload_id;
};
struct ListParts {
  std::string upload_id;
  std::uint32_t part_number_marker = 0;
  std::uint32_t max_parts = kPageMax;
  bool encode_url = false;
};
struct ListMultipartUploads {
  std::string prefix;
  std::string delimiter;
  std::string key_marker;
  std::string upload_id_marker;
  std::uint32_t max_uploads = kPageMax;
  bool encode_url = false;
};
struct RestoreObject {
  std::string version_id;
};

/// A configuration that nobody can set here yet, asked for by GET.
enum class Feature : std::uint8_t {
  bucket_accelerate,
  bucket_acl,
  bucket_cors,
  bucket_encryption,
  bucket_lifecycle,
  bucket_logging,
  bucket_notification,
  bucket_object_lock,
  bucket_ownership_controls,
  bucket_policy,
  bucket_policy_status,
  bucket_public_access_block,
  bucket_replication,
  bucket_request_payment,
  bucket_tagging,
  bucket_versioning,
  bucket_website,
  object_acl,
  object_legal_hold,
  object_retention,
  object_tagging,
};
struct DefaultConfiguration {
  Feature feature{};
  std::string_view name;    ///< "GetBucketVersioning"
  std::string_view action;  ///< "s3:GetBucketVersioning"
  bool of_object = false;   ///< the object must exist
};
/// The document of a 200, or the NoSuch... fault. The bucket (and the object) must have been found.
Outcome<std::string> default_answer(const DefaultConfiguration& operation, std::string_view bucket,
                                    const Owner& owner);

struct Unsupported {
  std::string_view name;    ///< "PutBucketLifecycle"; "Unknown" when not known
  std::string_view action;  ///< empty when not known
  bool known = false;
  std::string detail;  ///< the query parameter or header
};
/// 501 NotImplemented; 403 AccessForbidden for a CORS preflight.
Fault unsupported_fault(const Unsupported& operation);

using Operation = std::variant<WellKnown, ListBuckets, CreateBucket, HeadBucket, DeleteBucket,
                               GetBucketLocation, PutObject, GetObject, HeadObject, DeleteObject, CopyObject,
                               DeleteObjects, ListObjects, ListObjectsV2, CreateMultipartUpload, UploadPart,
                               UploadPartCopy, CompleteMultipartUpload, AbortMultipartUpload, ListParts,
                               ListMultipartUploads, RestoreObject, DefaultConfiguration, Unsupported>;

enum class BodyKind : std::uint8_t { none, xml, object };

struct OperationRow {
  std::string_view name;    ///< "PutObject"
  std::string_view action;  ///< "s3:PutObject": on the bucket or the key of the request; copies also need
                            ///< s3:GetObject on the source
  BodyKind body = BodyKind::none;
  std::uint64_t body_max = 0;  ///< bytes
};
/// The row of an operation; name and action of DefaultConfiguration and Unsupported are their own.
OperationRow operation_row(const Operation& operation);

}  // namespace reelway::s3
