#include "iam/authorize.h"

namespace reelway::iam {

std::string_view to_string(Action action) {
  switch (action) {
    case Action::list_all_my_buckets: return "s3:ListAllMyBuckets";
    case Action::create_bucket: return "s3:CreateBucket";
    case Action::delete_bucket: return "s3:DeleteBucket";
    case Action::list_bucket: return "s3:ListBucket";
    case Action::get_bucket_location: return "s3:GetBucketLocation";
    case Action::list_bucket_multipart_uploads: return "s3:ListBucketMultipartUploads";
    case Action::get_object: return "s3:GetObject";
    case Action::put_object: return "s3:PutObject";
    case Action::delete_object: return "s3:DeleteObject";
    case Action::abort_multipart_upload: return "s3:AbortMultipartUpload";
    case Action::list_multipart_upload_parts: return "s3:ListMultipartUploadParts";
    case Action::restore_object: return "s3:RestoreObject";
    case Action::read_service_description: return "reelway:ReadServiceDescription";
    case Action::administer: return "reelway:Administer";
  }
  return "reelway:Unknown";
}

Decision decide(const Principal& principal, Action /*action*/, const Resource& /*resource*/) {
  // Without policies and ACLs the role alone decides; they will be consulted here, and deny stays the last word.
  switch (principal.role) {
    case Role::root: return Decision::allow;
    case Role::anonymous: return Decision::deny;
  }
  return Decision::deny;
}

}  // namespace reelway::iam
