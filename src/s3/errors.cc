#include "s3/errors.h"

#include <array>

#include "s3/xml_writer.h"

namespace reelway::s3 {

namespace {

using enum ErrorCode;

constexpr std::array<ErrorRow, kErrorCodeCount> kRows{{
    {access_control_list_not_supported, "AccessControlListNotSupported", 400,
     "The bucket does not allow ACLs"},
    {access_denied, "AccessDenied", 403, "Access Denied"},
    {access_forbidden, "AccessForbidden", 403, "CORSResponse: CORS is not enabled for this bucket."},
    {authorization_header_malformed, "AuthorizationHeaderMalformed", 400,
     "The authorization header is malformed."},
    {authorization_query_parameters_error, "AuthorizationQueryParametersError", 400,
     "The query parameters that carry the authorization are malformed."},
    {bad_digest, "BadDigest", 400, "The digest you specified did not match the content received."},
    {bad_request, "BadRequest", 400, "Bad Request"},
    {bucket_already_exists, "BucketAlreadyExists", 409,
     "The requested bucket name is not available. Select a different name and try again."},
    {bucket_already_owned_by_you, "BucketAlreadyOwnedByYou", 409,
     "Your previous request to create the named bucket succeeded and you already own it."},
    {bucket_not_empty, "BucketNotEmpty", 409, "The bucket you tried to delete is not empty"},
    {conditional_request_conflict, "ConditionalRequestConflict", 409,
     "A conflicting operation occurred while the conditional request was in progress."},
    {entity_too_large, "EntityTooLarge", 400, "Your proposed upload exceeds the maximum allowed size"},
    {entity_too_small, "EntityTooSmall", 400,
     "Your proposed upload is smaller than the minimum allowed size"},
    {existing_object_is_directory, "ExistingObjectIsDirectory", 409,
     "The key names a folder that holds objects."},
    {expired_token, "ExpiredToken", 400, "The provided token has expired."},
    {glacier_expedited_retrieval_not_available, "GlacierExpeditedRetrievalNotAvailable", 503,
     "Expedited retrievals are not available at the moment. Try again later."},
    {incomplete_body, "IncompleteBody", 400,
     "The request body ended before, or went on after, the length it was declared to have."},
    {insufficient_storage, "InsufficientStorage", 507, "There is not enough space to store the object."},
    {internal_error, "InternalError", 500, "We encountered an internal error. Please try again."},
    {invalid_access_key_id, "InvalidAccessKeyId", 403,
     "The AWS Access Key Id you provided does not exist in our records."},
    {ErrorCode::invalid_argument, "InvalidArgument", 400, "Invalid Argument"},
    {invalid_bucket_name, "InvalidBucketName", 400, "The specified bucket is not valid."},
    {invalid_bucket_state, "InvalidBucketState", 409,
     "The request is not valid for the current state of the bucket."},
    {invalid_chunk_size_error, "InvalidChunkSizeError", 400,
     "Only the last chunk is allowed to have a size less than 8192 bytes"},
    {invalid_digest, "InvalidDigest", 400, "The Content-MD5 you specified was invalid."},
    {invalid_location_constraint, "InvalidLocationConstraint", 400,
     "The specified location-constraint is not valid"},
    {invalid_object_state, "InvalidObjectState", 403,
     "The operation is not valid for the object's storage class"},
    {invalid_part, "InvalidPart", 400,
     "One or more of the specified parts could not be found. The part may not have been uploaded, or the "
     "specified entity tag "
     "may not match the part's entity tag."},
    {invalid_part_number, "InvalidPartNumber", 416, "The requested partnumber is not satisfiable"},
    {invalid_part_order, "InvalidPartOrder", 400,
     "The list of parts was not in ascending order. Parts must be ordered by part number."},
    {invalid_range, "InvalidRange", 416, "The requested range is not satisfiable"},
    {invalid_rdma_token, "InvalidRDMAToken", 400, "The RDMA token is malformed."},
    {invalid_request, "InvalidRequest", 400, "Invalid Request"},
    {invalid_storage_class, "InvalidStorageClass", 400, "The storage class you specified is not valid"},
    {invalid_tag, "InvalidTag", 400, "The tag provided was not a valid tag."},
    {invalid_token, "InvalidToken", 400, "The provided token is malformed or otherwise invalid."},
    {invalid_uri, "InvalidURI", 400, "Couldn't parse the specified URI."},
    {key_too_long_error, "KeyTooLongError", 400, "Your key is too long"},
    {malformed_acl_error, "MalformedACLError", 400,
     "The XML you provided was not well-formed or did not validate against our published schema"},
    {malformed_policy, "MalformedPolicy", 400, "The policy is not valid."},
    {malformed_post_request, "MalformedPOSTRequest", 400,
     "The body of your POST request is not well-formed multipart/form-data."},
    {malformed_trailer_error, "MalformedTrailerError", 400,
     "The request contained trailing data that was not well-formed or did not conform to our published "
     "schema."},
    {malformed_xml, "MalformedXML", 400,
     "The XML you provided was not well-formed or did not validate against our published schema"},
    {max_message_length_exceeded, "MaxMessageLengthExceeded", 400, "Your request was too big."},
    {metadata_too_large, "MetadataTooLarge", 400,
     "Your metadata headers exceed the maximum allowed metadata size"},
    {method_not_allowed, "MethodNotAllowed", 405,
     "The specified method is not allowed against this resource."},
    {missing_content_length, "MissingContentLength", 411, "You must provide the Content-Length HTTP header."},
    {missing_request_body_error, "MissingRequestBodyError", 400, "Request Body is empty"},
    {missing_security_header, "MissingSecurityHeader", 400, "Your request was missing a required header"},
    {no_such_bucket, "NoSuchBucket", 404, "The specified bucket does not exist"},
    {no_such_bucket_policy, "NoSuchBucketPolicy", 404, "The bucket policy does not exist"},
    {no_such_cors_configuration, "NoSuchCORSConfiguration", 404, "The CORS configuration does not exist"},
    {no_such_key, "NoSuchKey", 404, "The specified key does not exist."},
    {no_such_lifecycle_configuration, "NoSuchLifecycleConfiguration", 404,
     "The lifecycle configuration does not exist"},
    {no_such_object_lock_configuration, "NoSuchObjectLockConfiguration", 404,
     "The specified object does not have a ObjectLock configuration"},
    {no_such_public_access_block_configuration, "NoSuchPublicAccessBlockConfiguration", 404,
     "The public access block configuration was not found"},
    {no_such_tag_set, "NoSuchTagSet", 404, "The TagSet does not exist"},
    {no_such_upload, "NoSuchUpload", 404,
     "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted "
     "or completed."},
    {no_such_version, "NoSuchVersion", 404, "The specified version does not exist."},
    {no_such_website_configuration, "NoSuchWebsiteConfiguration", 404,
     "The specified bucket does not have a website configuration"},
    {not_implemented, "NotImplemented", 501,
     "A header or parameter you provided implies functionality that is not implemented"},
    {not_modified, "NotModified", 304, "Not Modified"},
    {object_lock_configuration_not_found_error, "ObjectLockConfigurationNotFoundError", 404,
     "Object Lock configuration does not exist for this bucket"},
    {object_parent_is_file, "ObjectParentIsFile", 409, "A folder in the key's path is an object."},
    {operation_aborted, "OperationAborted", 409,
     "A conflicting conditional operation is currently in progress against this resource. Please try again."},
    {ownership_controls_not_found_error, "OwnershipControlsNotFoundError", 404,
     "The bucket ownership controls were not found"},
    {precondition_failed, "PreconditionFailed", 412,
     "At least one of the pre-conditions you specified did not hold"},
    {quota_exceeded, "QuotaExceeded", 403, "The quota of the bucket or account is used up."},
    {rdma_not_supported, "RDMANotSupported", 501,
     "The request's RDMA offer cannot be served; send the bytes by HTTP."},
    {rdma_transfer_failed, "RDMATransferFailed", 500, "The out-of-band transfer failed. Please try again."},
    {replication_configuration_not_found_error, "ReplicationConfigurationNotFoundError", 404,
     "The replication configuration was not found"},
    {request_header_section_too_large, "RequestHeaderSectionTooLarge", 400,
     "Your request header section exceeds the maximum allowed request header section size."},
    {request_time_too_skewed, "RequestTimeTooSkewed", 403,
     "The difference between the request time and the current time is too large."},
    {request_timeout, "RequestTimeout", 400,
     "Your socket connection to the server was not read from or written to within the timeout period."},
    {restore_already_in_progress, "RestoreAlreadyInProgress", 409, "Object restore is already in progress"},
    {server_side_encryption_configuration_not_found_error, "ServerSideEncryptionConfigurationNotFoundError",
     404, "The server side encryption configuration was not found"},
    {service_unavailable, "ServiceUnavailable", 503,
     "The service cannot answer at the moment. Please try again."},
    {signature_does_not_match, "SignatureDoesNotMatch", 403,
     "The request signature we calculated does not match the signature you provided. Check your key and "
     "signing method."},
    {slow_down, "SlowDown", 503, "Please reduce your request rate."},
    {unexpected_content, "UnexpectedContent", 400, "This request does not support content"},
    {x_amz_content_sha256_mismatch, "XAmzContentSHA256Mismatch", 400,
     "The provided 'x-amz-content-sha256' header does not match what was computed."},
}};

constexpr bool rows_are_in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].code != static_cast<ErrorCode>(i)) return false;
  }
  return true;
}
static_assert(rows_are_in_order());

Fault not_found_fault(const base::Error& error, std::string_view bucket, std::string_view key) {
  switch (error.scope) {
    case base::Scope::library:
      return fault(no_such_bucket, {{"BucketName", std::string(bucket)}});
    case base::Scope::connection:
      return fault(no_such_upload);
    case base::Scope::request:
    case base::Scope::object:
    case base::Scope::peer:
    case base::Scope::cartridge:
    case base::Scope::drive:
    case base::Scope::node:
      break;
  }
  return fault(no_such_key, {{"Key", std::string(key)}});
}

/// A deadline that a slow client missed is the client's; any other is ours.
bool is_of_client(const base::Error& error) {
  return error.scope == base::Scope::connection || error.scope == base::Scope::peer;
}

}  // namespace

const ErrorRow& error_row(ErrorCode code) { return kRows[static_cast<std::size_t>(code)]; }

Fault fault(ErrorCode code, std::vector<std::pair<std::string, std::string>> fields) {
  return Fault{.code = code, .message = {}, .fields = std::move(fields), .headers = {}};
}

Fault fault_saying(ErrorCode code, std::string message,
                   std::vector<std::pair<std::string, std::string>> fields) {
  return Fault{.code = code, .message = std::move(message), .fields = std::move(fields), .headers = {}};
}

Fault invalid_argument(std::string message, std::string name, std::string value) {
  return fault_saying(ErrorCode::invalid_argument, std::move(message),
                      {{"ArgumentName", std::move(name)}, {"ArgumentValue", std::move(value)}});
}

Fault to_fault(const base::Error& error, std::string_view bucket, std::string_view key) {
  switch (error.code) {
    case base::Code::invalid_argument:
      return fault(ErrorCode::invalid_argument);
    case base::Code::not_found:
      return not_found_fault(error, bucket, key);
    case base::Code::already_exists:
      return fault(bucket_already_exists, {{"BucketName", std::string(bucket)}});
    case base::Code::not_empty:
      return fault(bucket_not_empty, {{"BucketName", std::string(bucket)}});
    case base::Code::precondition_failed:
      return fault(precondition_failed);
    case base::Code::not_modified:
      return fault(not_modified);
    case base::Code::out_of_range:
      return fault(invalid_range);
    case base::Code::access_denied:
      return fault(access_denied);
    case base::Code::not_resident:
      return fault(invalid_object_state);
    case base::Code::busy:
      return fault(slow_down);
    case base::Code::deadline_exceeded:
      return fault(is_of_client(error) ? request_timeout : service_unavailable);
    case base::Code::cancelled:
      return fault(service_unavailable);
    case base::Code::unavailable:
      return fault(service_unavailable);
    case base::Code::data_loss:
      return fault(internal_error);
    case base::Code::checksum_mismatch:
      return fault(bad_digest);
    case base::Code::no_space:
      return fault(insufficient_storage);
    case base::Code::too_large:
      return fault(entity_too_large);
    case base::Code::unsupported:
      return fault(not_implemented);
    case base::Code::closed:
      return fault(incomplete_body);
    case base::Code::internal:
      return fault(internal_error);
  }
  return fault(internal_error);
}

std::string error_document(const Fault& fault, const ErrorContext& context) {
  XmlWriter xml;
  xml.open("Error");
  xml.text("Code", fault.name());
  xml.text("Message",
           fault.message.empty() ? error_row(fault.code).message : std::string_view(fault.message));
  for (const auto& [name, value] : fault.fields) xml.text(name, value);
  if (!context.resource.empty()) xml.text("Resource", context.resource);
  xml.text("RequestId", context.request_id);
  xml.text("HostId", context.host_id);
  xml.close("Error");
  return std::move(xml).take();
}

}  // namespace reelway::s3
