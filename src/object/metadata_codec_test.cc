#include "object/metadata_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

namespace reelway::object {
namespace {

ObjectInfo full_object() {
  ObjectInfo info;
  info.name = {"bucket", std::string("k\xff\0y", 4)};
  info.size = 1ull << 40;
  info.etag = "d41d8cd98f00b204e9800998ecf8427e-2";
  info.last_modified = base::TimePoint{base::Duration{1'700'000'000'123'456'789}};
  info.generation = "01HF000000000000000000000G";
  info.attributes.headers = {{"content-type", "text/plain"}};
  info.attributes.user = {{"color",
                           "r\xe9"
                           "d"}};
  info.attributes.storage_class = "GLACIER";
  info.attributes.owner = "someone";
  info.checksums = {{.kind = base::ChecksumKind::crc64nvme,
                     .value = base::Bytes(8, std::byte{7}),
                     .composite_part_count = 0},
                    {.kind = base::ChecksumKind::sha256,
                     .value = base::Bytes(32, std::byte{9}),
                     .composite_part_count = 2}};
  info.part_sizes = {5 * base::kMiB, 17};
  return info;
}

ObjectInfo full_object_without_parts() {
  ObjectInfo info = full_object();
  info.part_sizes.clear();
  return info;
}

void expect_same(const ObjectInfo& a, const ObjectInfo& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.size, b.size);
  EXPECT_EQ(a.etag, b.etag);
  EXPECT_EQ(a.last_modified, b.last_modified);
  EXPECT_EQ(a.generation, b.generation);
  EXPECT_EQ(a.attributes, b.attributes);
  EXPECT_EQ(a.checksums, b.checksums);
  EXPECT_EQ(a.part_sizes, b.part_sizes);
}

TEST(MetadataCodec, EverythingComesBack) {
  const auto decoded = decode_metadata(encode_metadata(full_object()));
  ASSERT_TRUE(decoded) << to_string(decoded.error());
  expect_same(*decoded, full_object());
}

TEST(MetadataCodec, DefaultsComeBackToo) {
  const auto decoded = decode_metadata(encode_metadata({}));
  ASSERT_TRUE(decoded);
  expect_same(*decoded, {});
}

TEST(MetadataCodec, TimesBefore1970ComeBack) {
  ObjectInfo info;
  info.last_modified = base::TimePoint{base::Duration{-5}};
  const auto decoded = decode_metadata(encode_metadata(info));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->last_modified, info.last_modified);
}

TEST(MetadataCodec, AGoldenMapHasTheDocumentedBytes) {
  ObjectInfo info;
  info.name = {"b", "k"};
  info.size = 3;
  info.etag = "e";
  EXPECT_EQ(base::to_hex(encode_metadata(info)),
            "a5666275636b657441626465746167416563"
            "6b6579416b656d74696d65006473697a6503");
}

TEST(MetadataCodec, EveryTruncationIsRefused) {
  const base::Bytes whole = encode_metadata(full_object());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto decoded = decode_metadata(base::ByteView(whole).first(length));
    ASSERT_FALSE(decoded) << length;
    EXPECT_EQ(decoded.error().code, base::Code::data_loss);
  }
}

TEST(MetadataCodec, DeepNestingIsRefusedBeforeItCostsAnything) {
  EXPECT_FALSE(decode_metadata(base::Bytes(1'000'000, std::byte{0x81})));
}

TEST(MetadataCodec, UnknownKeysAreIgnored) {
  auto bytes = encode_metadata({});
  ASSERT_EQ(bytes.front(), std::byte{0xa5});
  bytes.front() = std::byte{0xa6};
  for (const int b : {0x61, 0x7a, 0x01}) bytes.push_back(static_cast<std::byte>(b));
  EXPECT_TRUE(decode_metadata(bytes));
}

TEST(MetadataCodec, UnknownValuesOfEveryTypeArePassedOver) {
  // {1: [-1, "a"]}, a tagged byte string, a double, true, and what a later reader has to find behind them.
  for (const std::string_view value :
       {"a101822061 61", "c243010203", "fb3ff0000000000000", "f5", "9a00000002 0102", "1bffffffffffffffff"}) {
    std::string hex;
    std::ranges::copy_if(value, std::back_inserter(hex), [](char c) { return c != ' '; });
    auto bytes = *base::from_hex("a7617a" + hex);
    const auto rest = encode_metadata(full_object_without_parts());
    bytes.insert(bytes.end(), rest.begin() + 1, rest.end());
    bytes.front() = static_cast<std::byte>(std::to_integer<int>(rest.front()) + 1);
    const auto decoded = decode_metadata(bytes);
    ASSERT_TRUE(decoded) << value << ": " << to_string(decoded.error());
    expect_same(*decoded, full_object_without_parts());
  }
  EXPECT_FALSE(decode_metadata(*base::from_hex("a1617a9f01ff")))
      << "indefinite lengths are not written and not read";
}

TEST(MetadataCodec, AChecksumOfAWrongLengthIsRefused) {
  ObjectInfo info;
  info.checksums = {
      {.kind = base::ChecksumKind::sha256, .value = base::Bytes(31), .composite_part_count = 0}};
  EXPECT_FALSE(decode_metadata(encode_metadata(info)));
}

}  // namespace
}  // namespace reelway::object
