#pragma once
// The one authorization decision. Pure: it depends on its arguments only, is made once per request (once per key for DeleteObjects, once more for
// the source of a copy), and comes before any side effect. Actions are those of AWS's service authorization reference for S3.

#include <cstdint>
#include <string_view>

#include "iam/accounts.h"

namespace reelway::iam {

enum class Action : std::uint8_t {
  list_all_my_buckets,
  create_bucket,
  delete_bucket,
  list_bucket,  // HeadBucket, ListObjects, ListObjectsV2
  get_bucket_location,
  list_bucket_multipart_uploads,
  get_object,  // HeadObject too
  put_object,  // the writing half of multipart uploads and of copies too
  delete_object,
  abort_multipart_upload,
  list_multipart_upload_parts,
  restore_object,
  read_service_description,  // GET /.well-known/reelway
  administer,                // the admin API
};

std::string_view to_string(Action action);  ///< "s3:GetObject"

struct Resource {
  std::string_view bucket;  ///< empty: the service
  std::string_view key;     ///< empty: the bucket
};

enum class Decision : std::uint8_t { allow, deny };

Decision decide(const Principal& principal, Action action, const Resource& resource);
inline bool allow(const Principal& principal, Action action, const Resource& resource) {
  return decide(principal, action, resource) == Decision::allow;
}

}  // namespace reelway::iam
