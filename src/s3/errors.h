#pragma once
// Errors as S3 clients see them. A Fault is a code of AWS's set, an optional message of its own, and the
// code's extra members; one table gives each code its AWS name, HTTP status and default message. to_fault()
// is the only place where an internal base::Error becomes a Fault; its detail never reaches a client.
// Functions of this room return Outcome<T>; TRY works on it. Source: Amazon S3 API Reference, "Error
// Responses"; docs/architecture.md on errors.

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/http_head.h"
#include "base/result.h"

namespace reelway::s3 {

enum class ErrorCode : std::uint8_t {
  access_control_list_not_supported,
  access_denied,
  access_forbidden,
  authorization_header_malformed,
  authorization_query_parameters_error,
  bad_digest,
  bad_request,
  bucket_already_exists,
  bucket_already_owned_by_you,
  bucket_not_empty,
  conditional_request_conflict,
  entity_too_large,
  entity_too_small,
  existing_object_is_directory,
  expired_token,
  glacier_expedited_retrieval_not_available,
  incomplete_body,
  insufficient_storage,
  internal_error,
  invalid_access_key_id,
  invalid_argument,
  invalid_bucket_name,
  invalid_bucket_state,
  invalid_chunk_size_error,
  invalid_digest,
  invalid_location_constraint,
  invalid_object_state,
  invalid_part,
  invalid_part_number,
  invalid_part_order,
  invalid_range,
  invalid_rdma_token,
  invalid_request,
  invalid_storage_class,
  invalid_tag,
  invalid_token,
  invalid_uri,
  key_too_long_error,
  malformed_acl_error,
  malformed_policy,
  malformed_post_request,
  malformed_trailer_error,
  malformed_xml,
  max_message_length_exceeded,
  metadata_too_large,
  method_not_allowed,
  missing_content_length,
  missing_request_body_error,
  missing_security_header,
  no_such_bucket,
  no_such_bucket_policy,
  no_such_cors_configuration,
  no_such_key,
  no_such_lifecycle_configuration,
  no_such_object_lock_configuration,
  no_such_public_access_block_configuration,
  no_such_tag_set,
  no_such_upload,
  no_such_version,
  no_such_website_configuration,
  not_implemented,
  not_modified,
  object_lock_configuration_not_found_error,
  object_parent_is_file,
  operation_aborted,
  ownership_controls_not_found_error,
  precondition_failed,
  quota_exceeded,
  rdma_not_supported,
  rdma_transfer_failed,
  replication_configuration_not_found_error,
  request_header_section_too_large,
  request_time_too_skewed,
  request_timeout,
  restore_already_in_progress,
  server_side_encryption_configuration_not_found_error,
  service_unavailable,
  signature_does_not_match,
  slow_down,
  unexpected_content,
  x_amz_content_sha256_mismatch,
};
inline constexpr std::size_t kErrorCodeCount =
    static_cast<std::size_t>(ErrorCode::x_amz_content_sha256_mismatch) + 1;

struct ErrorRow {
  ErrorCode code;
  std::string_view name;  ///< "NoSuchKey"
  int status;
  std::string_view message;
};
const ErrorRow& error_row(ErrorCode code);

struct Fault {
  ErrorCode code = ErrorCode::internal_error;
  std::string message;                                      ///< empty: the table's
  std::vector<std::pair<std::string, std::string>> fields;  ///< extra members of the document, in order
  base::HttpFields headers;                                 ///< extra response headers (Allow, Retry-After)

  int status() const { return error_row(code).status; }
  std::string_view name() const { return error_row(code).name; }
};

/// fault(ErrorCode::invalid_range, {{"RangeRequested", "bytes=9-"}}).
Fault fault(ErrorCode code, std::vector<std::pair<std::string, std::string>> fields = {});
Fault fault_saying(ErrorCode code, std::string message,
                   std::vector<std::pair<std::string, std::string>> fields = {});
/// InvalidArgument with ArgumentName and ArgumentValue.
Fault invalid_argument(std::string message, std::string name, std::string value);

template <class T>
class [[nodiscard]] Outcome : public std::expected<T, Fault> {
 public:
  using std::expected<T, Fault>::expected;
  Outcome(Fault fault) : std::expected<T, Fault>(std::unexpect, std::move(fault)) {}
};

/// What an error of a store or a transfer means to the client. `bucket`, `key` fill BucketName and Key where
/// the code has them.
Fault to_fault(const base::Error& error, std::string_view bucket = {}, std::string_view key = {});

struct ErrorContext {
  std::string resource;  ///< "/bucket/key"
  std::string request_id;
  std::string host_id;
};
/// The <Error> document (content type application/xml).
std::string error_document(const Fault& fault, const ErrorContext& context);

/// The same document read by a client.
struct ParsedError {
  std::string code;
  std::string message;
  std::string request_id;
};
base::Result<ParsedError> parse_error_document(std::string_view xml);

}  // namespace reelway::s3
