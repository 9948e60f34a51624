#include "s3/response.h"

#include <gtest/gtest.h>

namespace reelway::s3 {
namespace {

const base::TimePoint kTime{std::chrono::seconds{784111777}};

ObjectView object() {
  ObjectView view;
  view.size = 100;
  view.etag = "e";
  view.last_modified = kTime;
  view.attributes.headers = {{"content-type", "text/plain"}, {"cache-control", "no-store"}};
  view.attributes.user = {{"colour", "red"}};
  view.checksums = {{base::ChecksumKind::crc32, base::Bytes(4), 0}};
  return view;
}

base::HttpFields headers(const ObjectView& view, const ObjectHeaderOptions& options = {}) {
  base::HttpFields fields;
  add_object_headers(fields, view, options);
  return fields;
}

TEST(ObjectHeaders, Plain) {
  const auto fields = headers(object());
  EXPECT_EQ(fields.get("ETag"), "\"e\"");
  EXPECT_EQ(fields.get("Last-Modified"), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(fields.get("Accept-Ranges"), "bytes");
  EXPECT_EQ(fields.get("Content-Type"), "text/plain");
  EXPECT_EQ(fields.get("Cache-Control"), "no-store");
  EXPECT_EQ(fields.get("x-amz-meta-colour"), "red");
  for (const char* absent : {"x-amz-storage-class", "x-amz-restore", "x-amz-checksum-crc32",
                             "x-amz-mp-parts-count", "Content-Range"}) {
    EXPECT_FALSE(fields.contains(absent)) << absent;
  }
  EXPECT_EQ(headers(ObjectView{}).get("Content-Type"), "binary/octet-stream");
}

TEST(ObjectHeaders, ChecksumsOnlyWhenAskedAndOnlyOfTheWhole) {
  const auto asked =
      headers(object(), {.overrides = {}, .checksum_mode = true, .part_number = {}, .range = {}});
  EXPECT_EQ(asked.get("x-amz-checksum-crc32"), "AAAAAA==");
  EXPECT_EQ(asked.get("x-amz-checksum-type"), "FULL_OBJECT");
  const auto part = headers(
      object(), {.overrides = {}, .checksum_mode = true, .part_number = {}, .range = base::ByteRange{5, 10}});
  EXPECT_FALSE(part.contains("x-amz-checksum-crc32"));
  EXPECT_EQ(part.get("Content-Range"), "bytes 5-14/100");
}

TEST(ObjectHeaders, StorageClassRestoreAndParts) {
  ObjectView view = object();
  view.storage_class = "GLACIER";
  view.part_sizes = {50, 50};
  view.restore = RestoreState{.ongoing = true, .expiry = {}};
  auto fields = headers(
      view, {.overrides = {}, .checksum_mode = false, .part_number = 1, .range = base::ByteRange{0, 50}});
  EXPECT_EQ(fields.get("x-amz-storage-class"), "GLACIER");
  EXPECT_EQ(fields.get("x-amz-restore"), "ongoing-request=\"true\"");
  EXPECT_EQ(fields.get("x-amz-mp-parts-count"), "2");
  view.restore = RestoreState{.ongoing = false, .expiry = kTime};
  EXPECT_EQ(headers(view).get("x-amz-restore"),
            "ongoing-request=\"false\", expiry-date=\"Sun, 06 Nov 1994 08:49:37 GMT\"");
  EXPECT_TRUE(is_archive_class("GLACIER"));
  EXPECT_TRUE(is_archive_class("DEEP_ARCHIVE"));
  EXPECT_FALSE(is_archive_class("GLACIER_IR"));
}

TEST(ObjectHeaders, OverridesWin) {
  const auto fields = headers(
      object(),
      {.overrides = {{"content-type", "a/b"}}, .checksum_mode = false, .part_number = {}, .range = {}});
  EXPECT_EQ(fields.get("Content-Type"), "a/b");
}

}  // namespace
}  // namespace reelway::s3
