#pragma once
// Builders of operations: one function per operation of the routing table, from query and headers. Only for
// this room.

#include "base/http_head.h"
#include "s3/request.h"

namespace reelway::s3 {

/// What a builder looks at. `fields` are the request's headers with the x-amz-* parameters of a presigned URL
/// among them.
struct BuildInput {
  const Query& query;
  const base::HttpFields& fields;
  std::string_view bucket;
  std::string_view key;
};

Outcome<Operation> build_list_buckets(const BuildInput& input);
Outcome<Operation> build_list_objects(const BuildInput& input);  ///< v1 and v2
Outcome<Operation> build_list_uploads(const BuildInput& input);
Outcome<Operation> build_list_parts(const BuildInput& input);
Outcome<Operation> build_delete_objects(const BuildInput& input);
Outcome<Operation> build_get_object(const BuildInput& input);
Outcome<Operation> build_head_object(const BuildInput& input);
Outcome<Operation> build_put_object(const BuildInput& input);   ///< and CopyObject
Outcome<Operation> build_upload_part(const BuildInput& input);  ///< and UploadPartCopy
Outcome<Operation> build_delete_object(const BuildInput& input);
Outcome<Operation> build_create_upload(const BuildInput& input);
Outcome<Operation> build_complete_upload(const BuildInput& input);
Outcome<Operation> build_abort_upload(const BuildInput& input);
Outcome<Operation> build_restore_object(const BuildInput& input);
Outcome<Operation> build_post_bucket(const BuildInput& input);

template <class Plain>
Outcome<Operation> build_plain(const BuildInput&) {
  return Operation(Plain{});
}

}  // namespace reelway::s3
