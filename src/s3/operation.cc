#include "s3/operation.h"

#include <array>

#include "s3/xml_writer.h"

namespace reelway::s3 {

namespace {

using base::kMiB;

// In the order of Operation's alternatives; the last two carry their own names.
constexpr std::array<OperationRow, std::variant_size_v<Operation>> kRows{{
    {"WellKnown", "reelway:GetCapabilities"},
    {"ListBuckets", "s3:ListAllMyBuckets"},
    {"CreateBucket", "s3:CreateBucket", BodyKind::xml, 64 * base::kKiB},
    {"HeadBucket", "s3:ListBucket"},
    {"DeleteBucket", "s3:DeleteBucket"},
    {"GetBucketLocation", "s3:GetBucketLocation"},
    {"PutObject", "s3:PutObject", BodyKind::object, kObjectBytesMax},
    {"GetObject", "s3:GetObject"},
    {"HeadObject", "s3:GetObject"},
    {"DeleteObject", "s3:DeleteObject"},
    {"CopyObject", "s3:PutObject"},
    {"DeleteObjects", "s3:DeleteObject", BodyKind::xml, 8 * kMiB},
    {"ListObjects", "s3:ListBucket"},
    {"ListObjectsV2", "s3:ListBucket"},
    {"CreateMultipartUpload", "s3:PutObject"},
    {"UploadPart", "s3:PutObject", BodyKind::object, kObjectBytesMax},
    {"UploadPartCopy", "s3:PutObject"},
    {"CompleteMultipartUpload", "s3:PutObject", BodyKind::xml, 8 * kMiB},
    {"AbortMultipartUpload", "s3:AbortMultipartUpload"},
    {"ListParts", "s3:ListMultipartUploadParts"},
    {"ListMultipartUploads", "s3:ListBucketMultipartUploads"},
    {"RestoreObject", "s3:RestoreObject", BodyKind::xml, 64 * base::kKiB},
    {},
    {},
}};

std::string empty_document(std::string_view root) {
  XmlWriter xml;
  xml.open_root(root);
  xml.close(root);
  return std::move(xml).take();
}

std::string payment_document() {
  XmlWriter xml;
  xml.open_root("RequestPaymentConfiguration");
  xml.text("Payer", "BucketOwner");
  xml.close("RequestPaymentConfiguration");
  return std::move(xml).take();
}

std::string acl_document(const Owner& owner) {
  const auto owner_members = [&](XmlWriter& xml) {
    xml.text("ID", owner.id);
    xml.text("DisplayName", owner.display_name);
  };
  XmlWriter xml;
  xml.open_root("AccessControlPolicy");
  xml.open("Owner");
  owner_members(xml);
  xml.close("Owner");
  xml.open("AccessControlList");
  xml.open("Grant");
  xml.raw(R"(<Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="CanonicalUser">)");
  owner_members(xml);
  xml.close("Grantee");
  xml.text("Permission", "FULL_CONTROL");
  xml.close("Grant");
  xml.close("AccessControlList");
  xml.close("AccessControlPolicy");
  return std::move(xml).take();
}

}  // namespace

OperationRow operation_row(const Operation& operation) {
  if (const auto* configuration = std::get_if<DefaultConfiguration>(&operation)) {
    return {.name = configuration->name, .action = configuration->action};
  }
  if (const auto* unsupported = std::get_if<Unsupported>(&operation)) {
    return {.name = unsupported->name, .action = unsupported->action};
  }
  return kRows[operation.index()];
}

Outcome<std::string> default_answer(const DefaultConfiguration& operation, std::string_view bucket,
                                    const Owner& owner) {
  const auto of_bucket = [&](ErrorCode code) { return fault(code, {{"BucketName", std::string(bucket)}}); };
  switch (operation.feature) {
    case Feature::bucket_accelerate:
      return empty_document("AccelerateConfiguration");
    case Feature::bucket_acl:
      return acl_document(owner);
    case Feature::bucket_cors:
      return of_bucket(ErrorCode::no_such_cors_configuration);
    case Feature::bucket_encryption:
      return of_bucket(ErrorCode::server_side_encryption_configuration_not_found_error);
    case Feature::bucket_lifecycle:
      return of_bucket(ErrorCode::no_such_lifecycle_configuration);
    case Feature::bucket_logging:
      return empty_document("BucketLoggingStatus");
    case Feature::bucket_notification:
      return empty_document("NotificationConfiguration");
    case Feature::bucket_object_lock:
      return of_bucket(ErrorCode::object_lock_configuration_not_found_error);
    case Feature::bucket_ownership_controls:
      return of_bucket(ErrorCode::ownership_controls_not_found_error);
    case Feature::bucket_policy:
      return of_bucket(ErrorCode::no_such_bucket_policy);
    case Feature::bucket_policy_status:
      return of_bucket(ErrorCode::no_such_bucket_policy);
    case Feature::bucket_public_access_block:
      return of_bucket(ErrorCode::no_such_public_access_block_configuration);
    case Feature::bucket_replication:
      return of_bucket(ErrorCode::replication_configuration_not_found_error);
    case Feature::bucket_request_payment:
      return payment_document();
    case Feature::bucket_tagging:
      return of_bucket(ErrorCode::no_such_tag_set);
    case Feature::bucket_versioning:
      return empty_document("VersioningConfiguration");
    case Feature::bucket_website:
      return of_bucket(ErrorCode::no_such_website_configuration);
    case Feature::object_acl:
      return acl_document(owner);
    case Feature::object_legal_hold:
      return fault(ErrorCode::no_such_object_lock_configuration);
    case Feature::object_retention:
      return fault(ErrorCode::no_such_object_lock_configuration);
    case Feature::object_tagging: {
      XmlWriter xml;
      xml.open_root("Tagging");
      xml.raw("<TagSet></TagSet>");
      xml.close("Tagging");
      return std::move(xml).take();
    }
  }
  return fault(ErrorCode::internal_error);
}

Fault unsupported_fault(const Unsupported& operation) {
  if (operation.name == "PreflightRequest") return fault(ErrorCode::access_forbidden);
  return fault(ErrorCode::not_implemented, {{"Header", operation.detail}});
}

}  // namespace reelway::s3
