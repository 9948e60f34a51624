#pragma once
// The answers that a client reads. For this room, and for whoever drives a multipart upload by Client::call.

#include "s3client/client.h"

namespace reelway::s3client {

/// ListBucketResult (v2, encoding-type=url).
base::Result<ListResult> parse_list_result(std::string_view xml);
base::Result<std::vector<s3::BucketEntry>> parse_bucket_list(std::string_view xml);
base::Result<std::string> parse_upload_id(std::string_view xml);
/// The ETag of a CompleteMultipartUploadResult; the error inside a 200.
base::Result<std::string> parse_complete_result(std::string_view xml);
std::string write_complete_request(const std::vector<s3::CompletedPart>& parts);
std::string write_restore_request(const RestoreOptions& options);

std::string unquote(std::string_view etag);

}  // namespace reelway::s3client
