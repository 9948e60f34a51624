// Copies, multipart uploads, deletes, offers, defaults.
#include <gmock/gmock.h>

#include "s3/request_test_kit.h"
#include "s3/sigv4.h"

namespace reelway::s3 {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(Operation, Copy) {
  const auto copy = parsed<CopyObject>("PUT", "/bucket/k",
                                       {{"x-amz-copy-source", "/src/a%20b%2Bc?versionId=v%201"},
                                        {"x-amz-copy-source-if-match", "\"e\""},
                                        {"x-amz-metadata-directive", "REPLACE"},
                                        {"x-amz-meta-a", "1"},
                                        {"x-amz-storage-class", "STANDARD_IA"},
                                        {"x-amz-checksum-algorithm", "SHA256"}});
  EXPECT_EQ(copy.source, (CopySource{"src", "a b+c", "v 1"}));
  EXPECT_THAT(copy.source_conditions.if_match, ElementsAre("e"));
  EXPECT_TRUE(copy.replace_metadata);
  EXPECT_THAT(copy.attributes.user, ElementsAre(Pair("a", "1")));
  EXPECT_EQ(copy.storage_class, "STANDARD_IA");
  EXPECT_EQ(copy.checksum_kind, base::ChecksumKind::sha256);
  EXPECT_EQ(fault_name("PUT", "/bucket/k", {{"x-amz-copy-source", "bucket/k"}}), "InvalidRequest");
  EXPECT_EQ(fault_name("PUT", "/bucket/k",
                       {{"x-amz-copy-source", "bucket/k"}, {"x-amz-metadata-directive", "REPLACE"}}),
            "CopyObject");
  EXPECT_EQ(fault_name("PUT", "/bucket/k",
                       {{"x-amz-copy-source", "bucket/l"}, {"x-amz-metadata-directive", "MOVE"}}),
            "InvalidArgument");
  for (const std::string_view method : {"GET", "HEAD", "DELETE"}) {
    EXPECT_EQ(fault_name(method, "/bucket/k", {{"x-amz-copy-source", "bucket/l"}}), "InvalidArgument");
  }
  const auto part =
      parsed<UploadPartCopy>("PUT", "/bucket/k?uploadId=u&partNumber=2",
                             {{"x-amz-copy-source", "src/k"}, {"x-amz-copy-source-range", "bytes=0-9"}});
  EXPECT_EQ(part.range, (Range{0, 9}));
  EXPECT_EQ(part.part_number, 2U);
}

TEST(Operation, Multipart) {
  const auto create = [](const Fields& fields) {
    return parsed<CreateMultipartUpload>("POST", "/bucket/k?uploads", fields);
  };
  EXPECT_FALSE(create({}).checksum_kind);
  EXPECT_FALSE(create({{"x-amz-checksum-algorithm", "CRC32"}}).checksum_full_object);
  EXPECT_TRUE(create({{"x-amz-checksum-algorithm", "CRC64NVME"}}).checksum_full_object);
  EXPECT_TRUE(create({{"x-amz-checksum-algorithm", "CRC32C"}, {"x-amz-checksum-type", "FULL_OBJECT"}})
                  .checksum_full_object);
  const auto refused = [](const Fields& fields) { return fault_name("POST", "/bucket/k?uploads", fields); };
  EXPECT_EQ(refused({{"x-amz-checksum-algorithm", "SHA1"}, {"x-amz-checksum-type", "FULL_OBJECT"}}),
            "InvalidRequest");
  EXPECT_EQ(refused({{"x-amz-checksum-algorithm", "CRC64NVME"}, {"x-amz-checksum-type", "COMPOSITE"}}),
            "InvalidRequest");
  EXPECT_EQ(refused({{"x-amz-checksum-type", "COMPOSITE"}}), "InvalidRequest");
  const auto complete = parsed<CompleteMultipartUpload>("POST", "/bucket/k?uploadId=u",
                                                        {{"x-amz-checksum-crc32", "NhCmhg==-3"},
                                                         {"x-amz-checksum-type", "COMPOSITE"},
                                                         {"x-amz-mp-object-size", "12"},
                                                         {"If-Match", "e"}});
  EXPECT_EQ(complete.checksum->composite_part_count, 3U);
  EXPECT_EQ(complete.checksum_full_object, false);
  EXPECT_EQ(complete.object_size, 12U);
  EXPECT_EQ(fault_name("POST", "/bucket/k?uploadId=", {}), "NoSuchUpload");
}

TEST(Operation, DeleteObjectsWantsADigestOfEitherKind) {
  EXPECT_EQ(fault_name("POST", "/bucket?delete"), "InvalidRequest");
  EXPECT_EQ(fault_name("POST", "/bucket?delete", {{"Content-MD5", "XUFAKrxLKna5cZ2REBfFkg=="}}),
            "DeleteObjects");
  EXPECT_EQ(fault_name("POST", "/bucket?delete", {{"x-amz-checksum-crc32", "NhCmhg=="}}), "DeleteObjects");
}

TEST(Operation, RdmaOffersAreSeenUnderEachName) {
  for (const std::string name :
       {"x-amz-rdma-token", "X-CuObj-RDMA-Descr", "x-rdma-info", "x-amz-meta-rdma-token", "x-scal-rdma"}) {
    const auto request = parse("GET", "/bucket/k", {{name, " token "}, {"x-amz-rdma-mode", "require"}});
    ASSERT_TRUE(request);
    EXPECT_TRUE(request->rdma) << name;
    EXPECT_EQ(request->rdma.token, "token");
    EXPECT_EQ(request->rdma.mode, "require");
  }
  EXPECT_FALSE(parse("GET", "/bucket/k")->rdma);
}

TEST(Operation, MethodNotAllowedNamesWhatIs) {
  const auto request = parse("DELETE", "/bucket?acl");
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().headers.get("Allow"), "GET, PUT");
  EXPECT_THAT(request.error().fields, ElementsAre(Pair("Method", "DELETE"), Pair("ResourceType", "ACL")));
  EXPECT_EQ(parse("PATCH", "/bucket").error().headers.get("Allow"), "GET, HEAD, PUT, DELETE, POST");
}

TEST(Operation, ObjectLength) {
  auto head = head_of("PUT", "/bucket/k");
  EXPECT_EQ(object_length(head).error().name(), "MissingContentLength");
  head.content_length = 7;
  EXPECT_EQ(object_length(head).value(), 7U);
  head.content_length = kObjectBytesMax + 1;
  EXPECT_EQ(object_length(head).error().name(), "EntityTooLarge");
  head.fields.add("x-amz-content-sha256", std::string(kStreamingUnsignedTrailer));
  EXPECT_EQ(object_length(head).error().name(), "MissingContentLength");
  head.fields.add("x-amz-decoded-content-length", "5");
  head.content_length.reset();
  EXPECT_EQ(object_length(head).value(), 5U);
  head.fields.set("x-amz-decoded-content-length", "-5");
  EXPECT_EQ(object_length(head).error().name(), "InvalidArgument");
}

TEST(Operation, EveryDefaultConfigurationHasItsAnswer) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"/bucket?accelerate", "<AccelerateConfiguration"},
      {"/bucket?acl", "FULL_CONTROL"},
      {"/bucket?cors", "NoSuchCORSConfiguration"},
      {"/bucket?encryption", "ServerSideEncryptionConfigurationNotFoundError"},
      {"/bucket?lifecycle", "NoSuchLifecycleConfiguration"},
      {"/bucket?logging", "<BucketLoggingStatus"},
      {"/bucket?notification", "<NotificationConfiguration"},
      {"/bucket?object-lock", "ObjectLockConfigurationNotFoundError"},
      {"/bucket?ownershipControls", "OwnershipControlsNotFoundError"},
      {"/bucket?policy", "NoSuchBucketPolicy"},
      {"/bucket?policyStatus", "NoSuchBucketPolicy"},
      {"/bucket?publicAccessBlock", "NoSuchPublicAccessBlockConfiguration"},
      {"/bucket?replication", "ReplicationConfigurationNotFoundError"},
      {"/bucket?requestPayment", "<Payer>BucketOwner</Payer>"},
      {"/bucket?tagging", "NoSuchTagSet"},
      {"/bucket?versioning", "<VersioningConfiguration"},
      {"/bucket?website", "NoSuchWebsiteConfiguration"},
      {"/bucket/k?acl", "<ID>me</ID>"},
      {"/bucket/k?legal-hold", "NoSuchObjectLockConfiguration"},
      {"/bucket/k?retention", "NoSuchObjectLockConfiguration"},
      {"/bucket/k?tagging", "<TagSet></TagSet>"},
  };
  for (const auto& [target, answer] : cases) {
    const auto configuration = parsed<DefaultConfiguration>("GET", target);
    EXPECT_EQ(configuration.of_object, target.contains("/k?"));
    EXPECT_TRUE(configuration.action.starts_with("s3:Get"));
    const auto got = default_answer(configuration, "bucket", {.id = "me", .display_name = "Me"});
    EXPECT_THAT(got ? *got : std::string(got.error().name()), testing::HasSubstr(answer)) << target;
  }
}

TEST(Operation, EveryOperationHasItsAction) {
  EXPECT_EQ(operation_row(PutObject{}).action, "s3:PutObject");
  EXPECT_EQ(operation_row(HeadObject{}).action, "s3:GetObject");
  EXPECT_EQ(operation_row(RestoreObject{}).action, "s3:RestoreObject");
  EXPECT_EQ(operation_row(RestoreObject{}).body, BodyKind::xml);
  EXPECT_EQ(operation_row(ListMultipartUploads{}).name, "ListMultipartUploads");
  EXPECT_EQ(operation_row(UploadPart{}).body, BodyKind::object);
  EXPECT_EQ(operation_row(CopyObject{}).body, BodyKind::none);
}

}  // namespace
}  // namespace reelway::s3
