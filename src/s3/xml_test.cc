#include "s3/xml.h"

#include <gmock/gmock.h>

namespace reelway::s3 {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const base::TimePoint kTime{std::chrono::seconds{784111777}};

template <class T>
std::string_view fault_name(const Outcome<T>& outcome) {
  return outcome ? "success" : outcome.error().name();
}

std::string complete(std::string_view parts) {
  return "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" + std::string(parts) +
         "</CompleteMultipartUpload>";
}

TEST(XmlIn, CompleteMultipartUpload) {
  const auto parts =
      parse_complete_multipart_upload(complete("<Part><ETag>&quot;e1&quot;</ETag><PartNumber> 1 "
                                               "</PartNumber><ChecksumCRC32>NhCmhg==</ChecksumCRC32></Part>\n"
                                               "<Part><PartNumber>10000</PartNumber><ETag>e2</ETag></Part>"));
  ASSERT_TRUE(parts) << parts.error().name();
  ASSERT_EQ(parts->size(), 2U);
  EXPECT_EQ((*parts)[0].etag, "e1");
  EXPECT_EQ((*parts)[0].part_number, 1U);
  EXPECT_EQ(to_text((*parts)[0].checksums.at(0)), "NhCmhg==");
  EXPECT_EQ((*parts)[1].etag, "e2");
  EXPECT_EQ((*parts)[1].part_number, 10000U);
}

TEST(XmlIn, CompleteMultipartUploadFaults) {
  const auto name = [](std::string_view parts) {
    return fault_name(parse_complete_multipart_upload(complete(parts)));
  };
  const std::string one = "<Part><ETag>e</ETag><PartNumber>1</PartNumber></Part>";
  const std::string two = "<Part><ETag>e</ETag><PartNumber>2</PartNumber></Part>";
  EXPECT_EQ(name(one + two), "success");
  EXPECT_EQ(name(two + one), "InvalidPartOrder");
  EXPECT_EQ(name(one + one), "InvalidPartOrder");
  EXPECT_EQ(name(""), "MalformedXML");
  EXPECT_EQ(name("<Part><PartNumber>1</PartNumber></Part>"), "MalformedXML");
  EXPECT_EQ(name("<Part><ETag>e</ETag><PartNumber>x</PartNumber></Part>"), "MalformedXML");
  EXPECT_EQ(name("<Part><ETag>e</ETag><PartNumber>0</PartNumber></Part>"), "InvalidArgument");
  EXPECT_EQ(name("<Part><ETag>e</ETag><PartNumber>10001</PartNumber></Part>"), "InvalidArgument");
  EXPECT_EQ(name("<Part><ETag>e</ETag><PartNumber>1</PartNumber><ChecksumCRC32>A</ChecksumCRC32></Part>"),
            "InvalidRequest");
}

TEST(XmlIn, OddDocumentsAreRefused) {
  const std::string part = "<Part><ETag>e</ETag><PartNumber>1</PartNumber></Part>";
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "<a>";
  for (int i = 0; i < 100; ++i) deep += "</a>";
  for (const std::string& xml :
       {std::string(), std::string("nonsense"), std::string("<Delete></Delete>"), complete(part) + "<",
        complete(part + deep), "<!DOCTYPE x [<!ENTITY e \"1\">]>" + complete(part),
        std::string("<CompleteMultipartUpload>"), std::string("\0\0", 2)}) {
    EXPECT_EQ(fault_name(parse_complete_multipart_upload(xml)), "MalformedXML") << xml.substr(0, 60);
  }
}

TEST(XmlIn, EntitiesOfTheSenderAreNotExpanded) {
  const auto body = parse_delete("<Delete><Object><Key>&e;&lt;&#65;&#x42;</Key></Object></Delete>");
  ASSERT_TRUE(body);
  EXPECT_EQ(body->objects[0].key, "&e;<AB");
}

TEST(XmlIn, Delete) {
  const auto body = parse_delete(
      "<d:Delete xmlns:d=\"x\"><d:Quiet>true</d:Quiet><d:Object><d:Key> "
      "a/<![CDATA[<b>]]>&#xD;</d:Key><d:VersionId>null</d:VersionId></d:Object>"
      "<d:Object><d:Key> </d:Key><d:ETag>\"e\"</d:ETag></d:Object></d:Delete>");
  ASSERT_TRUE(body) << body.error().name();
  EXPECT_TRUE(body->quiet);
  ASSERT_EQ(body->objects.size(), 2U);
  EXPECT_EQ(body->objects[0].key, " a/<b>\r");
  EXPECT_EQ(body->objects[0].version_id, "null");
  EXPECT_EQ(body->objects[1].key, " ");
  EXPECT_EQ(body->objects[1].etag, "e");
}

TEST(XmlIn, DeleteTakesOneToThousandKeys) {
  const auto name = [](int count) {
    std::string xml = "<Delete>";
    for (int i = 0; i < count; ++i) xml += "<Object><Key>k</Key></Object>";
    return fault_name(parse_delete(xml + "</Delete>"));
  };
  EXPECT_EQ(name(0), "MalformedXML");
  EXPECT_EQ(name(1000), "success");
  EXPECT_EQ(name(1001), "MalformedXML");
  EXPECT_EQ(fault_name(parse_delete("<Delete><Object><Key></Key></Object></Delete>")), "MalformedXML");
}

TEST(XmlIn, CreateBucket) {
  EXPECT_EQ(parse_create_bucket("").value().location, "");
  EXPECT_EQ(parse_create_bucket("<CreateBucketConfiguration><LocationConstraint>eu-west-1</"
                                "LocationConstraint></CreateBucketConfiguration>")
                .value()
                .location,
            "eu-west-1");
  EXPECT_EQ(fault_name(parse_create_bucket("<Create/>")), "MalformedXML");
}

TEST(XmlIn, Restore) {
  const auto body = parse_restore(
      "<RestoreRequest><Days>7</Days><GlacierJobParameters><Tier>Bulk</Tier></GlacierJobParameters></"
      "RestoreRequest>");
  ASSERT_TRUE(body);
  EXPECT_EQ(body->days, 7U);
  EXPECT_EQ(body->tier, "Bulk");
  EXPECT_EQ(parse_restore("<RestoreRequest><Days>1</Days></RestoreRequest>").value().tier, "Standard");
  EXPECT_EQ(
      parse_restore("<RestoreRequest><Days>1</Days><Tier>Expedited</Tier></RestoreRequest>").value().tier,
      "Expedited");
  EXPECT_EQ(fault_name(parse_restore("<RestoreRequest></RestoreRequest>")), "MalformedXML");
  EXPECT_EQ(fault_name(parse_restore("<RestoreRequest><Days>-1</Days></RestoreRequest>")), "MalformedXML");
  EXPECT_EQ(fault_name(parse_restore("<RestoreRequest><Days>0</Days></RestoreRequest>")), "InvalidArgument");
  EXPECT_EQ(fault_name(parse_restore("<RestoreRequest><Days>1</Days><Tier>Fast</Tier></RestoreRequest>")),
            "MalformedXML");
  EXPECT_EQ(fault_name(parse_restore("<RestoreRequest><Type>SELECT</Type></RestoreRequest>")),
            "NotImplemented");
}

TEST(XmlOut, ListBuckets) {
  EXPECT_EQ(
      write_list_buckets({"id", "name"}, {{"b", kTime}}, "", ""),
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListAllMyBucketsResult "
      "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
      "<Owner><ID>id</ID><DisplayName>name</DisplayName></Owner><Buckets><Bucket><Name>b</Name>"
      "<CreationDate>1994-11-06T08:49:37.000Z</CreationDate></Bucket></Buckets></ListAllMyBucketsResult>");
}

TEST(XmlOut, LocationOfTheFirstRegionIsEmpty) {
  EXPECT_THAT(write_location("us-east-1"), HasSubstr("/\"></LocationConstraint>"));
  EXPECT_THAT(write_location("eu-west-1"), HasSubstr(">eu-west-1</LocationConstraint>"));
}

ListResult list_result() {
  ListResult result;
  result.bucket = "b";
  result.prefix = "p/ ";
  result.delimiter = "/";
  result.truncated = true;
  result.objects.push_back({.key = "a\x01&+\xC3\xBC",
                            .size = 5,
                            .etag = "e",
                            .last_modified = kTime,
                            .storage_class = "GLACIER",
                            .checksums = {{base::ChecksumKind::crc64nvme, base::Bytes(8), 0}},
                            .owner = Owner{"o", "d"},
                            .restore = RestoreState{.ongoing = false, .expiry = kTime}});
  result.common_prefixes = {"p/ q/"};
  return result;
}

TEST(XmlOut, ListObjectsV2) {
  const std::string xml = write_list_objects_v2(
      list_result(), {.start_after = "s", .continuation_token = "t", .next_continuation_token = "n"});
  EXPECT_THAT(
      xml, HasSubstr(
               "<Name>b</Name><Prefix>p/ "
               "</Prefix><StartAfter>s</StartAfter><ContinuationToken>t</ContinuationToken>"
               "<NextContinuationToken>n</NextContinuationToken><KeyCount>2</KeyCount><MaxKeys>1000</MaxKeys>"
               "<Delimiter>/</Delimiter><IsTruncated>true</IsTruncated>"));
  EXPECT_THAT(
      xml,
      HasSubstr(
          "<Contents><Key>a&#x1;&amp;+\xC3\xBC</Key><LastModified>1994-11-06T08:49:37.000Z</LastModified>"
          "<ETag>&quot;e&quot;</ETag><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm>"
          "<ChecksumType>FULL_OBJECT</ChecksumType><Size>5</Size><Owner><ID>o</ID><DisplayName>d</"
          "DisplayName></Owner>"
          "<StorageClass>GLACIER</StorageClass><RestoreStatus><IsRestoreInProgress>false</"
          "IsRestoreInProgress>"
          "<RestoreExpiryDate>1994-11-06T08:49:37.000Z</RestoreExpiryDate></RestoreStatus></Contents>"));
  EXPECT_THAT(xml, HasSubstr("<CommonPrefixes><Prefix>p/ q/</Prefix></CommonPrefixes>"));
}

TEST(XmlOut, UrlEncodingIsAppliedToNames) {
  ListResult result = list_result();
  result.encode_url = true;
  const std::string xml = write_list_objects(result, "m+", "next one");
  EXPECT_THAT(xml, HasSubstr("<Key>a%01%26%2B%C3%BC</Key>"));
  EXPECT_THAT(xml,
              HasSubstr("<Prefix>p/%20</Prefix><Marker>m%2B</Marker><NextMarker>next%20one</NextMarker>"));
  EXPECT_THAT(xml, HasSubstr("<EncodingType>url</EncodingType>"));
  EXPECT_THAT(xml, HasSubstr("<Prefix>p/%20q/</Prefix>"));
}

TEST(XmlOut, NextMarkerNeedsADelimiter) {
  ListResult result = list_result();
  result.delimiter.clear();
  EXPECT_THAT(write_list_objects(result, "", "n"), Not(HasSubstr("NextMarker")));
}

TEST(XmlOut, CopyAndMultipart) {
  const std::vector<Checksum> sums{{base::ChecksumKind::crc32, base::Bytes(4), 3}};
  EXPECT_THAT(write_copy_object("e", kTime, {}),
              HasSubstr("<CopyObjectResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
                        "<LastModified>1994-11-06T08:49:37.000Z</LastModified>"
                        "<ETag>&quot;e&quot;</ETag></CopyObjectResult>"));
  EXPECT_THAT(write_copy_part("e", kTime, {}), HasSubstr("<CopyPartResult "));
  EXPECT_THAT(write_initiate_multipart("b", "k&", "u"),
              HasSubstr("<Bucket>b</Bucket><Key>k&amp;</Key><UploadId>u</UploadId>"));
  EXPECT_THAT(
      write_complete_multipart("http://h/b/k", "b", "k", "e-3", sums),
      HasSubstr("<Location>http://h/b/k</Location><Bucket>b</Bucket><Key>k</Key><ETag>&quot;e-3&quot;</ETag>"
                "<ChecksumCRC32>AAAAAA==-3</ChecksumCRC32><ChecksumType>COMPOSITE</ChecksumType>"));
}

TEST(XmlOut, DeleteResult) {
  const std::vector<DeletedEntry> deleted{{"a", ""}};
  const std::vector<DeleteErrorEntry> errors{{"b", "v", fault(ErrorCode::access_denied)}};
  const std::string loud = write_delete_result(deleted, errors, false);
  EXPECT_THAT(loud, HasSubstr("<Deleted><Key>a</Key></Deleted>"));
  EXPECT_THAT(loud, HasSubstr("<Error><Key>b</Key><VersionId>v</VersionId><Code>AccessDenied</"
                              "Code><Message>Access Denied</Message></Error>"));
  const std::string quiet = write_delete_result(deleted, errors, true);
  EXPECT_THAT(quiet, Not(HasSubstr("<Deleted>")));
  EXPECT_THAT(quiet, HasSubstr("<Code>AccessDenied</Code>"));
}

TEST(XmlOut, ListPartsAndUploads) {
  ListPartsResult parts;
  parts.bucket = "b";
  parts.key = "k";
  parts.upload_id = "u";
  parts.checksum_kind = base::ChecksumKind::crc32;
  parts.parts = {{.part_number = 7, .size = 5, .etag = "e", .last_modified = kTime, .checksums = {}}};
  EXPECT_THAT(write_list_parts(parts), HasSubstr("<NextPartNumberMarker>7</NextPartNumberMarker>"));
  EXPECT_THAT(
      write_list_parts(parts),
      HasSubstr("<ChecksumAlgorithm>CRC32</ChecksumAlgorithm><ChecksumType>COMPOSITE</ChecksumType>"));
  EXPECT_THAT(write_list_parts(parts), HasSubstr("<Part><PartNumber>7</PartNumber>"));
  ListUploadsResult uploads;
  uploads.bucket = "b";
  uploads.truncated = true;
  uploads.next_key_marker = "k";
  uploads.next_upload_id_marker = "u";
  uploads.uploads = {{.key = "k", .upload_id = "u", .initiated = kTime, .owner = {}, .checksum_kind = {}}};
  EXPECT_THAT(write_list_uploads(uploads),
              HasSubstr("<NextKeyMarker>k</NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker>"));
  EXPECT_THAT(write_list_uploads(uploads), HasSubstr("<Initiated>1994-11-06T08:49:37.000Z</Initiated>"));
}

TEST(XmlEscape, WhatXmlCannotHold) {
  EXPECT_EQ(xml_escape("a<b>&\"'\t\n\x1F\x7F"), "a&lt;b&gt;&amp;&quot;'&#x9;&#xA;&#x1F;&#x7F;");
  EXPECT_EQ(xml_escape(std::string_view("\0x", 2)), "?x");
  EXPECT_EQ(xml_escape("\xC3\xBC"), "\xC3\xBC");
  EXPECT_EQ(xml_escape("\xC3("), "?(");
}

}  // namespace
}  // namespace reelway::s3
