#include <gmock/gmock.h>

#include "s3/request_test_kit.h"
#include "s3/sigv4.h"

namespace reelway::s3 {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Pair;

struct Case {
  std::string_view method;
  std::string_view target;
  std::string_view name;
};

TEST(Request, MethodAndTargetNameTheOperation) {
  constexpr Case kCases[]{
      {"GET", "/", "ListBuckets"},
      {"GET", "/?x-id=ListBuckets", "ListBuckets"},
      {"GET", "/.well-known/reelway", "WellKnown"},
      {"PUT", "/bucket", "CreateBucket"},
      {"PUT", "/bucket/", "CreateBucket"},
      {"HEAD", "/bucket", "HeadBucket"},
      {"DELETE", "/bucket", "DeleteBucket"},
      {"GET", "/bucket?location", "GetBucketLocation"},
      {"GET", "/bucket?location=", "GetBucketLocation"},
      {"GET", "/bucket", "ListObjects"},
      {"GET", "/bucket/?prefix=a&delimiter=%2F", "ListObjects"},
      {"GET", "/bucket?list-type=1", "ListObjects"},
      {"GET", "/bucket?list-type=2", "ListObjectsV2"},
      {"GET", "/bucket?list-type=2&x-id=ListObjectsV2", "ListObjectsV2"},
      {"GET", "/bucket?uploads", "ListMultipartUploads"},
      {"POST", "/bucket/k?uploads", "CreateMultipartUpload"},
      {"POST", "/bucket/k?uploads=", "CreateMultipartUpload"},
      {"PUT", "/bucket/k?partNumber=1&uploadId=u", "UploadPart"},
      {"POST", "/bucket/k?uploadId=u", "CompleteMultipartUpload"},
      {"DELETE", "/bucket/k?uploadId=u", "AbortMultipartUpload"},
      {"GET", "/bucket/k?uploadId=u", "ListParts"},
      {"PUT", "/bucket/k", "PutObject"},
      {"GET", "/bucket/k", "GetObject"},
      {"GET", "/bucket/k?X-Amz-Algorithm=a&X-Amz-Signature=b", "GetObject"},
      {"HEAD", "/bucket/k", "HeadObject"},
      {"DELETE", "/bucket/k", "DeleteObject"},
      {"DELETE", "/bucket/k?versionId=null", "DeleteObject"},
      {"POST", "/bucket/k?restore", "RestoreObject"},
      {"GET", "/bucket?versioning", "GetBucketVersioning"},
      {"GET", "/bucket?acl", "GetBucketAcl"},
      {"GET", "/bucket/k?acl&versionId=1", "GetObjectAcl"},
      {"GET", "/bucket?lifecycle", "GetBucketLifecycleConfiguration"},
      {"PUT", "/bucket?lifecycle", "PutBucketLifecycleConfiguration"},
      {"GET", "/bucket?versions", "ListObjectVersions"},
      {"GET", "/bucket?session", "CreateSession"},
      {"GET", "/bucket/k?torrent", "GetObjectTorrent"},
      {"PUT", "/bucket/k?renameObject", "RenameObject"},
      {"POST", "/bucket/k?select&select-type=2", "SelectObjectContent"},
      {"OPTIONS", "/bucket/k", "PreflightRequest"},
      {"GET", "/bucket?nonsense", "Unknown"},
      {"GET", "/bucket/k?append", "Unknown"},
      {"PUT", "/bucket/k?nonsense=1", "Unknown"},
      {"PUT", "/bucket?nonsense", "Unknown"},
      {"DELETE", "/bucket?nonsense", "Unknown"},
      {"DELETE", "/bucket/k?nonsense", "Unknown"},
      {"GET", "/?nonsense", "Unknown"},
      {"POST", "/bucket/k?lambdaArn=a", "MethodNotAllowed"},
      {"POST", "/bucket/k", "MethodNotAllowed"},
      {"PUT", "/", "MethodNotAllowed"},
      {"PATCH", "/bucket", "MethodNotAllowed"},
      {"DELETE", "/bucket?acl", "MethodNotAllowed"},
      {"PUT", "/bucket/k?uploadId=u", "MethodNotAllowed"},
      {"PUT", "/bucket/k?partNumber=1", "InvalidArgument"},
      {"GET", "/bucket/k?uploads", "InvalidRequest"},
      {"GET", "/bucket/k?versions", "InvalidRequest"},
      {"POST", "/bucket", "PreconditionFailed"},
      {"GET", "bucket", "InvalidURI"},
      {"GET", "", "InvalidURI"},
      {"GET", "*", "InvalidURI"},
      {"GET", "http://host/bucket", "InvalidURI"},
      {"GET", "/bucket/%zz", "InvalidURI"},
      {"GET", "/bucket/%2", "InvalidURI"},
      {"GET", "/bucket/%FF", "InvalidURI"},
      {"GET", "/bucket/a%00b", "InvalidURI"},
      {"GET", "/bucket?prefix=%", "InvalidURI"},
      {"GET", "//bucket", "InvalidBucketName"},
      {"GET", "/Bucket", "InvalidBucketName"},
      {"GET", "/..%2Fetc/passwd", "InvalidBucketName"},
  };
  for (const Case& each : kCases)
    EXPECT_EQ(fault_name(each.method, each.target), each.name) << each.method << " " << each.target;
}

TEST(Request, UnknownSubresourceIsNeverThePlainOperation) {
  for (const std::string_view method : {"GET", "PUT", "DELETE", "HEAD"}) {
    for (const std::string_view target : {"/bucket?zzz", "/bucket/key?zzz=1", "/bucket/key?prefix=1"}) {
      const auto request = parse(method, target);
      ASSERT_TRUE(request) << method << target;
      ASSERT_TRUE(std::holds_alternative<Unsupported>(request->operation)) << method << target;
      EXPECT_FALSE(std::get<Unsupported>(request->operation).known);
      EXPECT_EQ(unsupported_fault(std::get<Unsupported>(request->operation)).status(), 501);
    }
  }
}

TEST(Request, HeadersWhoseMeaningWouldBeLostAreRefused) {
  const std::vector<std::pair<std::string, std::string>> refused{
      {"x-amz-server-side-encryption", "AES256"},
      {"x-amz-server-side-encryption-customer-key", "k"},
      {"x-amz-tagging", "a=b"},
      {"x-amz-object-lock-mode", "COMPLIANCE"},
      {"x-amz-write-offset-bytes", "5"},
      {"x-amz-website-redirect-location", "/x"},
      {"X-Amz-Object-Lock-Legal-Hold", "ON"}};
  for (const auto& field : refused) {
    EXPECT_EQ(fault_name("PUT", "/bucket/k", {field}), "NotImplemented") << field.first;
    EXPECT_EQ(fault_name("POST", "/bucket/k?uploads", {field}), "NotImplemented") << field.first;
  }
  EXPECT_EQ(fault_name("PUT", "/bucket/k", {{"x-amz-acl", "public-read"}}), "AccessControlListNotSupported");
  EXPECT_EQ(fault_name("PUT", "/bucket/k", {{"x-amz-grant-read", "id=1"}}), "AccessControlListNotSupported");
  EXPECT_EQ(fault_name("PUT", "/bucket", {{"x-amz-bucket-object-lock-enabled", "true"}}), "NotImplemented");
  EXPECT_EQ(fault_name("PUT", "/bucket", {{"x-amz-bucket-object-lock-enabled", "false"}}), "CreateBucket");
  EXPECT_EQ(fault_name("PUT", "/bucket", {{"x-amz-acl", "private"}}), "CreateBucket");
}

TEST(Request, NamesAreDecodedOnceAndNotNormalised) {
  const auto request = parse("GET", "/bucket/a+b//%2e%2E/%252F%20%C3%BC/?versionId=1");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->bucket, "bucket");
  EXPECT_EQ(request->key, "a+b//../%2F \xC3\xBC/");
}

TEST(Request, VirtualHostNamesTheBucket) {
  const HostOptions options{.virtual_host_domains = {"s3.example.com"}};
  const auto parse_host = [&](std::string_view host, std::string_view target) {
    auto head = head_of("GET", target);
    head.fields.set("Host", std::string(host));
    return parse_request(head, options);
  };
  auto request = parse_host("bucket.S3.example.com:9000", "/a/b");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->bucket, "bucket");
  EXPECT_EQ(request->key, "a/b");
  EXPECT_EQ(operation_row(parse_host("bucket.s3.example.com", "/")->operation).name, "ListObjects");
  for (const std::string_view host :
       {"s3.example.com", "s3.example.com:9000", "127.0.0.1", "[::1]:9000", "xs3.example.com"}) {
    request = parse_host(host, "/bucket/a");
    ASSERT_TRUE(request) << host;
    EXPECT_EQ(request->bucket, "bucket") << host;
    EXPECT_EQ(request->key, "a") << host;
  }
}

TEST(Request, BucketNames) {
  for (const std::string_view good : {"abc", "a-b.c", "123", "my.bucket-1", "0abc"})
    EXPECT_TRUE(check_bucket_name(good)) << good;
  for (const std::string_view bad : {"", "ab", "Abc", "a_b", "-abc", "abc-", ".abc", "a..b", "192.168.1.1",
                                     "xn--abc", "abc-s3alias", "abc--ol-s3", "a/b", "a b", "..."}) {
    EXPECT_FALSE(check_bucket_name(bad)) << bad;
  }
  EXPECT_TRUE(check_bucket_name(std::string(63, 'a')));
  EXPECT_FALSE(check_bucket_name(std::string(64, 'a')));
}

TEST(Request, KeysMayHave1024Bytes) {
  EXPECT_TRUE(parse("GET", "/bucket/" + std::string(1024, 'k')));
  const auto request = parse("GET", "/bucket/" + std::string(1025, 'k'));
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().name(), "KeyTooLongError");
  EXPECT_THAT(request.error().fields, ElementsAre(Pair("Size", "1025"), Pair("MaxSizeAllowed", "1024")));
}

TEST(Request, QueryKeepsWhatClientsEncode) {
  const auto target = parse_target("/b?a=1&a=2&empty=&bare&p=x+y%2Bz%26&&=v");
  ASSERT_TRUE(target);
  EXPECT_EQ(find(target->query, "a"), "1");
  EXPECT_EQ(find(target->query, "empty"), "");
  EXPECT_EQ(find(target->query, "bare"), "");
  EXPECT_EQ(find(target->query, "p"), "x y+z&");
  EXPECT_FALSE(find(target->query, "absent"));
  EXPECT_EQ(target->query.size(), 6U);
  std::string many = "/b?";
  for (int i = 0; i < 101; ++i) many += "a&";
  EXPECT_FALSE(parse_target(many));
}

TEST(Request, ListParameters) {
  const auto v2 = parsed<ListObjectsV2>(
      "GET",
      "/bucket?list-type=2&prefix=a%2Fb&delimiter=/&start-after=s&max-keys=5000&fetch-owner=true"
      "&encoding-type=url&continuation-token=" +
          encode_continuation_token("k\n"),
      {{"x-amz-optional-object-attributes", "RestoreStatus"}});
  EXPECT_EQ(v2.prefix, "a/b");
  EXPECT_EQ(v2.delimiter, "/");
  EXPECT_EQ(v2.start_after, "s");
  EXPECT_EQ(v2.max_keys, 1000U);
  EXPECT_TRUE(v2.fetch_owner);
  EXPECT_TRUE(v2.encode_url);
  EXPECT_TRUE(v2.restore_status);
  EXPECT_EQ(decode_continuation_token(v2.continuation_token).value(), "k\n");
  const auto v1 = parsed<ListObjects>("GET", "/bucket?marker=m&max-keys=0");
  EXPECT_EQ(v1.marker, "m");
  EXPECT_EQ(v1.max_keys, 0U);
  EXPECT_FALSE(v1.encode_url);
  EXPECT_EQ(parsed<ListObjects>("GET", "/bucket?max-keys=").max_keys, 1000U);
  for (const std::string_view bad :
       {"max-keys=-1", "max-keys=x", "max-keys=2147483648", "encoding-type=base64", "list-type=3",
        "list-type=2&continuation-token=", "list-type=2&continuation-token=xyz"}) {
    EXPECT_EQ(fault_name("GET", "/bucket?" + std::string(bad)), "InvalidArgument") << bad;
  }
  const auto uploads = parsed<ListMultipartUploads>(
      "GET", "/bucket?uploads&key-marker=k&upload-id-marker=u&max-uploads=7&prefix=p");
  EXPECT_EQ(uploads.key_marker + uploads.upload_id_marker + uploads.prefix, "kup");
  EXPECT_EQ(uploads.max_uploads, 7U);
  const auto parts = parsed<ListParts>("GET", "/bucket/k?uploadId=u&part-number-marker=3&max-parts=2");
  EXPECT_EQ(parts.part_number_marker, 3U);
  EXPECT_EQ(parts.max_parts, 2U);
}

TEST(Request, GetParameters) {
  const auto get = parsed<GetObject>("GET", "/bucket/k?response-content-type=text%2Fplain&versionId=null",
                                     {{"Range", "bytes=1-2"},
                                      {"If-Match", "\"a\", W/\"b\",c"},
                                      {"If-None-Match", "*"},
                                      {"If-Modified-Since", "Fri, 24 May 2013 00:00:00 GMT"},
                                      {"If-Unmodified-Since", "nonsense"},
                                      {"x-amz-checksum-mode", "ENABLED"}});
  EXPECT_EQ(get.range, (Range{1, 2}));
  EXPECT_THAT(get.overrides, ElementsAre(Pair("content-type", "text/plain")));
  EXPECT_THAT(get.conditions.if_match, ElementsAre("a", "b", "c"));
  EXPECT_THAT(get.conditions.if_none_match, ElementsAre("*"));
  EXPECT_TRUE(get.conditions.if_modified_since);
  EXPECT_FALSE(get.conditions.if_unmodified_since);
  EXPECT_TRUE(get.checksum_mode);
  EXPECT_EQ(get.version_id, "null");
  EXPECT_EQ(parsed<HeadObject>("HEAD", "/bucket/k?partNumber=10000").part_number, 10000U);
  EXPECT_EQ(fault_name("GET", "/bucket/k?partNumber=1", {{"Range", "bytes=0-1"}}), "InvalidRequest");
  EXPECT_EQ(fault_name("GET", "/bucket/k?partNumber=0"), "InvalidArgument");
  EXPECT_EQ(fault_name("GET", "/bucket/k?partNumber=10001"), "InvalidArgument");
  EXPECT_EQ(fault_name("GET", "/bucket/k?response-content-type=a%0D%0Ab"), "InvalidArgument");
}

TEST(Request, PutParameters) {
  const auto put = parsed<PutObject>("PUT", "/bucket/k",
                                     {{"Content-Type", "text/plain"},
                                      {"Content-Encoding", "aws-chunked, gzip"},
                                      {"Expires", "never"},
                                      {"x-amz-storage-class", "GLACIER"},
                                      {"X-Amz-Meta-Colour", "red"},
                                      {"x-amz-meta-colour", "blue"},
                                      {"x-amz-meta-utf", "\xC3\xBC\xFF"},
                                      {"x-amz-meta-rdma-token", "secret"},
                                      {"If-None-Match", "*"},
                                      {"Content-MD5", "XUFAKrxLKna5cZ2REBfFkg=="},
                                      {"x-amz-checksum-crc32", "NhCmhg=="},
                                      {"x-amz-sdk-checksum-algorithm", "CRC32"}});
  EXPECT_THAT(put.attributes.headers,
              ElementsAre(Pair("content-encoding", "gzip"), Pair("content-type", "text/plain"),
                          Pair("expires", "never")));
  EXPECT_THAT(put.attributes.user, ElementsAre(Pair("colour", "red,blue"), Pair("utf", "\xC3\xBC\xFF")));
  EXPECT_EQ(put.storage_class, "GLACIER");
  EXPECT_THAT(put.conditions.if_none_match, ElementsAre("*"));
  EXPECT_EQ(put.integrity.content_md5->size(), 16U);
  EXPECT_EQ(to_text(*put.integrity.checksum), "NhCmhg==");
  const auto only_chunked = parsed<PutObject>("PUT", "/bucket/k", {{"Content-Encoding", "aws-chunked"}});
  EXPECT_TRUE(only_chunked.attributes.headers.empty());
}

TEST(Request, PutFaults) {
  struct Bad {
    Fields fields;
    std::string_view name;
  };
  const Bad cases[]{
      {{{"x-amz-storage-class", "COLD"}}, "InvalidStorageClass"},
      {{{"x-amz-meta-a", std::string(2048, 'x')}}, "MetadataTooLarge"},
      {{{"x-amz-meta-", "x"}}, "InvalidRequest"},
      {{{"Content-MD5", ""}}, "InvalidDigest"},
      {{{"Content-MD5", "AAAA"}}, "InvalidDigest"},
      {{{"x-amz-checksum-crc32", "AAAA"}}, "InvalidRequest"},
      {{{"x-amz-checksum-crc32", "!"}}, "InvalidRequest"},
      {{{"x-amz-checksum-crc32", "AAAAAA=="}, {"x-amz-checksum-crc32c", "AAAAAA=="}}, "InvalidRequest"},
      {{{"x-amz-checksum-crc32", "AAAAAA=="}, {"x-amz-sdk-checksum-algorithm", "SHA1"}}, "InvalidRequest"},
      {{{"x-amz-checksum-sha512", "AAAAAA=="}}, "NotImplemented"},
      {{{"x-amz-sdk-checksum-algorithm", "MD5"}}, "InvalidRequest"},
      {{{"x-amz-trailer", "x-amz-checksum-crc32"}}, "InvalidRequest"},
      {{{"x-amz-trailer", "x-amz-checksum-crc99"},
        {"x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}},
       "InvalidRequest"},
      {{{"x-amz-trailer", "x-amz-checksum-crc32"},
        {"x-amz-checksum-crc32", "AAAAAA=="},
        {"x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}},
       "InvalidRequest"},
      {{{"x-amz-trailer", "x-amz-checksum-crc32"},
        {"x-amz-sdk-checksum-algorithm", "SHA256"},
        {"x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}},
       "InvalidRequest"},
      {{{"If-None-Match", "\"a\""}}, "NotImplemented"},
      {{{"If-None-Match", "*"}, {"If-Match", "a"}}, "NotImplemented"},
      {{{"If-Modified-Since", "Fri, 24 May 2013 00:00:00 GMT"}}, "NotImplemented"},
  };
  for (const Bad& bad : cases)
    EXPECT_EQ(fault_name("PUT", "/bucket/k", bad.fields), bad.name) << bad.fields[0].first;
  EXPECT_EQ(fault_name("PUT", "/bucket/k", {{"x-amz-meta-a", std::string(2047, 'x')}}), "PutObject");
  EXPECT_EQ(fault_name("PUT", "/bucket/k",
                       {{"x-amz-trailer", "x-amz-checksum-crc32"},
                        {"x-amz-sdk-checksum-algorithm", "CRC32"},
                        {"x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}}),
            "PutObject");
}

TEST(Request, StreamingPayloadsAreForObjectsAndPartsOnly) {
  const Fields streaming{{"x-amz-content-sha256", std::string(kStreamingSigned)},
                         {"x-amz-copy-source", "/other/key"}};
  const Fields body{streaming[0]};
  EXPECT_EQ(fault_name("PUT", "/bucket/k", body), "PutObject");
  EXPECT_EQ(fault_name("PUT", "/bucket/k?uploadId=u&partNumber=1", body), "UploadPart");
  EXPECT_EQ(fault_name("PUT", "/bucket/k", streaming), "InvalidRequest");
  EXPECT_EQ(fault_name("POST", "/bucket/k?uploadId=u", body), "InvalidRequest");
  EXPECT_EQ(fault_name("PUT", "/bucket", body), "InvalidRequest");
}

TEST(Request, HeadersMovedIntoAPresignedQueryCount) {
  const auto put = parsed<PutObject>("PUT",
                                     "/bucket/k?X-Amz-Signature=1&x-amz-meta-a=1&x-amz-storage-class=GLACIER"
                                     "&x-amz-checksum-crc32=AAAAAA%3D%3D&x-amz-sdk-checksum-algorithm=CRC32");
  EXPECT_THAT(put.attributes.user, ElementsAre(Pair("a", "1")));
  EXPECT_EQ(put.storage_class, "GLACIER");
  EXPECT_FALSE(put.integrity.checksum) << "S3 ignores checksums there";
  EXPECT_EQ(fault_name("PUT", "/bucket/k?x-amz-tagging=a%3Db"), "NotImplemented");
  EXPECT_EQ(fault_name("PUT", "/bucket/k?x-amz-meta-a=a%0Ab"), "InvalidArgument");
  const auto request = parse("GET", "/bucket/k?x-amz-rdma-token=t");
  ASSERT_TRUE(request);
  EXPECT_FALSE(request->rdma);
}

}  // namespace
}  // namespace reelway::s3
