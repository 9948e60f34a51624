// The formats as bytes: labels, coherency information, names, manifests, attributes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "tape/ltfs/attributes.h"
#include "tape/ltfs/coherency.h"
#include "tape/ltfs/label.h"
#include "tape/ltfs/manifest.h"
#include "tape/ltfs/names.h"
#include "tape/ltfs/version.h"

namespace reelway::tape::ltfs {
namespace {

using base::Code;
using ::testing::Optional;

constexpr const char* kUuid = "30a91a08-daae-48d1-ae75-69804e61d2ea";

Label example_label() {
  Label label;
  label.creator = "Reelway Reelway 0.1.0 - Linux - reelway - format";
  label.format_time = "2026-11-30T16:43:45.123456789Z";
  label.volume_uuid = kUuid;
  return label;
}

TEST(Vol1, HasTheBytesOfTheStandard) {
  const auto record = encode_vol1("RW0001");
  EXPECT_EQ(base::as_text(record),
            "VOL1RW0001L             LTFS                                                   4");
  EXPECT_EQ(decode_vol1(record).value_or("none"), "RW0001");
  EXPECT_EQ(base::as_text(encode_vol1("")).substr(4, 6), "      ");
}

TEST(Vol1, RefusesOtherRecords) {
  auto record = encode_vol1("RW0001");
  record[24] = std::byte{'X'};
  EXPECT_EQ(decode_vol1(record).error().code, Code::unsupported);
  record.resize(79);
  EXPECT_EQ(decode_vol1(record).error().code, Code::unsupported);
}

TEST(LabelXml, HasTheElementsInTheReferencesOrder) {
  EXPECT_EQ(encode_label(example_label()),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ltfslabel version=\"2.4.0\">\n"
            "<creator>Reelway Reelway 0.1.0 - Linux - reelway - format</creator>\n"
            "<formattime>2026-11-30T16:43:45.123456789Z</formattime>\n"
            "<volumeuuid>30a91a08-daae-48d1-ae75-69804e61d2ea</volumeuuid>\n"
            "<location>\n<partition>a</partition>\n</location>\n"
            "<partitions>\n<index>a</index>\n<data>b</data>\n</partitions>\n"
            "<blocksize>524288</blocksize>\n<compression>true</compression>\n</ltfslabel>\n");
}

TEST(LabelXml, ComesBack) {
  const auto label = example_label();
  const auto text = encode_label(label);
  const auto back = decode_label(base::as_bytes(text));
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_EQ(*back, label);
}

TEST(LabelXml, AcceptsTheReferencesFormAndUnknownTags) {
  const std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ltfslabel version=\"2.0.1\">\n    <creator>IBM LTFS "
      "2.4.8 - Linux - mkltfs</creator>\n"
      "    <future><deep/></future>\n    <formattime>2024-01-01T00:00:00.000000000Z</formattime>\n"
      "    <volumeuuid>30a91a08-daae-48d1-ae75-69804e61d2ea</volumeuuid>\n    <location>\n        "
      "<partition>b</partition>\n    </location>\n"
      "    <partitions>\n        <index>a</index>\n        <data>b</data>\n    </partitions>\n    "
      "<blocksize>1048576</blocksize>\n"
      "    <compression>false</compression>\n</ltfslabel>\n";
  const auto label = decode_label(base::as_bytes(text));
  ASSERT_TRUE(label) << to_string(label.error());
  EXPECT_EQ(label->location, 'b');
  EXPECT_EQ(label->block_bytes, 1U << 20);
  EXPECT_FALSE(label->compression);
}

TEST(LabelXml, RefusesWhatContradictsItself) {
  const auto refuse = [](std::string_view from, std::string_view to, Code code) {
    auto text = encode_label(example_label());
    text.replace(text.find(from), from.size(), to);
    const auto label = decode_label(base::as_bytes(text));
    ASSERT_FALSE(label) << to;
    EXPECT_EQ(label.error().code, code) << to;
  };
  refuse("<data>b", "<data>a", Code::data_loss);
  refuse("<partition>a", "<partition>c", Code::data_loss);
  refuse(">524288<", ">1024<", Code::data_loss);
  refuse(">524288<", ">99999999999999999999<", Code::data_loss);
  refuse("30a91a08-", "30a91a08", Code::data_loss);
  refuse("<blocksize>524288</blocksize>", "", Code::data_loss);
  refuse("\"2.4.0\"", "\"3.0.0\"", Code::unsupported);
  refuse("</ltfslabel>", "", Code::data_loss);
  refuse("ltfslabel", "ltfsindex", Code::data_loss);
}

TEST(Labels, OfTwoVolumesDoNotAgree) {
  auto a = example_label();
  auto b = a;
  b.location = 'b';
  EXPECT_TRUE(check_labels_agree(a, b));
  EXPECT_FALSE(check_labels_agree(a, a));
  b.format_time = "2026-11-30T16:43:45.123456780Z";
  EXPECT_FALSE(check_labels_agree(a, b));
}

TEST(CoherencyInformation, HasTheBytesOfTheStandard) {
  const auto value = encode_coherency(
      {.volume_change_reference = 3, .generation = 2, .start_block = 5, .volume_uuid = kUuid});
  ASSERT_EQ(value.size(), 70U);
  EXPECT_EQ(base::to_hex(base::ByteView(value).first(32)),
            "08000000000000000300000000000000020000000000000005002b4c54465300");
  EXPECT_EQ(base::as_text(base::ByteView(value).subspan(32, 36)), kUuid);
  EXPECT_EQ(base::to_hex(base::ByteView(value).subspan(68)), "0001");
  const auto back = decode_coherency(value);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->generation, 2U);
  EXPECT_EQ(back->volume_uuid, kUuid);
}

TEST(CoherencyInformation, OldWritersLengthIsAcceptedOthersAreNot) {
  auto value = encode_coherency(
      {.volume_change_reference = 3, .generation = 2, .start_block = 5, .volume_uuid = kUuid});
  value[26] = std::byte{42};
  EXPECT_TRUE(decode_coherency(value));
  value[26] = std::byte{41};
  EXPECT_FALSE(decode_coherency(value));
  value[26] = std::byte{43};
  value[27] = std::byte{'X'};
  EXPECT_FALSE(decode_coherency(value));
  EXPECT_FALSE(decode_coherency({}));
  EXPECT_FALSE(decode_change_reference(base::Bytes(4)));
  EXPECT_FALSE(decode_change_reference(base::Bytes(4, std::byte{0xFF})));
}

TEST(Names, WhatLtfsCanHold) {
  for (const auto* name : {"a", "a:b", "100%", "dir \xC3\xA9", "...", " ", "\x01"})
    EXPECT_TRUE(is_storable_name(name)) << name;
  const std::string limit(255, 'x');
  EXPECT_TRUE(is_storable_name(limit));
  for (const auto& name :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string("a\0b", 3),
        limit + "x", std::string("\xFF"), std::string("e\xCC\x81")}) {  // the last: é in normal form D
    EXPECT_FALSE(is_storable_name(name)) << name;
  }
  EXPECT_TRUE(is_storable_path("/b/k/e/y"));
  for (const auto* path : {"", "/", "b/k", "/b//k", "/b/k/", "/b/../k"})
    EXPECT_FALSE(is_storable_path(path)) << path;
}

TEST(Names, ArePercentEncodedAsAWholeOnceAnyCharacterNeedsIt) {
  EXPECT_FALSE(needs_percent_encoding("100% dir \xC3\xA9"));
  EXPECT_TRUE(needs_percent_encoding("a:b"));
  EXPECT_EQ(percent_encode_name("a:b%c"), "a%3Ab%25c");
  EXPECT_EQ(percent_encode_name("\xC3\xA9:"), "%C3%A9%3A");
}

TEST(Names, AnyBytesSurviveTheEncoding) {
  base::SeededRng rng(1);
  for (int i = 0; i < 2000; ++i) {
    std::string name(rng.below(40), '\0');
    rng.fill(std::as_writable_bytes(std::span(name)));
    const auto back = percent_decode_name(percent_encode_name(name));
    ASSERT_TRUE(back) << "round " << i;
    EXPECT_EQ(*back, name) << "round " << i;
    EXPECT_TRUE(is_xml_text(percent_encode_name(name)));
  }
}

TEST(LtfsTime, OnlyTheExactForm) {
  const auto time = parse_ltfs_time("2026-11-30T16:43:45.123456789Z");
  ASSERT_TRUE(time);
  EXPECT_EQ(base::to_ltfs_time(*time), "2026-11-30T16:43:45.123456789Z");
  for (const auto* text :
       {"2026-11-30T16:43:45Z", "2026-13-30T16:43:45.123456789Z", "2026-02-30T16:43:45.123456789Z",
        "2026-11-30 16:43:45.123456789Z", "2026-11-30T16:43:99.123456789Z", ""}) {
    EXPECT_FALSE(parse_ltfs_time(text)) << text;
  }
  EXPECT_TRUE(parse_ltfs_time("9999-12-31T23:59:59.999999999Z"));
  EXPECT_TRUE(parse_ltfs_time("0001-01-01T00:00:00.000000000Z"));
}

Manifest example_manifest() {
  File file;
  file.uid = 7;
  file.length = 10;
  file.extents = {{.start_block = 8, .byte_count = 10}};
  file.attributes = {{"reelway.generation", "01J"}, {"bin", std::string("\0\xFF", 2)}};
  Manifest manifest;
  manifest.number = 3;
  manifest.volume_uuid = kUuid;
  manifest.time = base::TimePoint(std::chrono::seconds(1'700'000'000));
  manifest.changes = {FileRenamed{"/b/k", "/.reelway/objects/b/00"}, FileAdded{"/b/k\tt", file},
                      FileRemoved{"/b/x"}};
  manifest.bundles = {{.path = "/.reelway/bundles/1.tar",
                       .members = {{.bucket = "b",
                                    .key = "k\n",
                                    .generation = "g",
                                    .offset = 512,
                                    .length = 3,
                                    .sha256 = "",
                                    .metadata = {}}}}};
  return manifest;
}

TEST(ManifestText, IsLinesThatPeopleCanRead) {
  EXPECT_EQ(encode_manifest(example_manifest()),
            "manifest\t1\t3\t30a91a08-daae-48d1-ae75-69804e61d2ea\t2023-11-14T22:13:20.000000000Z\n"
            "rename\t/b/k\t/.reelway/objects/b/00\n"
            "file\t/b/"
            "k%09t\t7\t10\t\t1970-01-01T00:00:00.000000000Z\t1970-01-01T00:00:00.000000000Z\t1970-01-01T00:"
            "00:00.000000000Z\t"
            "1970-01-01T00:00:00.000000000Z\t1970-01-01T00:00:00.000000000Z\n"
            "extent\t0\tb\t8\t0\t10\n"
            "xattr\treelway.generation\tMDFK\n"
            "xattr\tbin\tAP8=\n"
            "remove\t/b/x\n"
            "bundle\t/.reelway/bundles/1.tar\n"
            "member\t512\t3\t\tg\tb\tk%0A\t\n"
            "end\t9\n");
}

TEST(ManifestText, ComesBackAndRefusesAnyMissingLine) {
  const auto text = encode_manifest(example_manifest());
  const auto back = decode_manifest(text);
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_EQ(encode_manifest(*back), text);
  std::size_t start = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos;
       start = end + 1, end = text.find('\n', start)) {
    auto cut = text;
    cut.erase(start, end + 1 - start);
    EXPECT_FALSE(decode_manifest(cut)) << cut;
  }
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_FALSE(decode_manifest(text.substr(0, length)));
}

TEST(ManifestTrailerRecord, AnyFlippedBitIsSeen) {
  const ManifestTrailer trailer{.number = 3,
                                .volume_uuid = kUuid,
                                .start_block = 8,
                                .own_block = 9,
                                .previous_block = 4,
                                .body_bytes = 77,
                                .body_crc32c = 5,
                                .file_uid = 6,
                                .time = {}};
  auto record = encode_trailer(trailer);
  EXPECT_TRUE(record.starts_with("RWBATCH1\t"));
  const auto back = decode_trailer(base::as_bytes(record));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, trailer);
  for (std::size_t i = 0; i < record.size() * 8; ++i) {
    auto flipped = record;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << (i % 8)));
    EXPECT_FALSE(decode_trailer(base::as_bytes(flipped))) << i;
  }
}

TEST(ObjectAttributesOfFiles, ComeBackInPieces) {
  const ObjectAttributes attributes{.generation = "01J",
                                    .bucket = "b",
                                    .key = "k",
                                    .sha256 = std::string(64, 'f'),
                                    .metadata = base::Bytes(9000, std::byte{1})};
  File file;
  file.attributes = to_extended_attributes(attributes);
  for (const auto& attribute : file.attributes) EXPECT_LE(attribute.value.size(), 4096U);
  const auto back = from_extended_attributes(file);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, attributes);
  std::erase_if(file.attributes,
                [](const ExtendedAttribute& attribute) { return attribute.key == "reelway.meta.1"; });
  EXPECT_EQ(from_extended_attributes(file).error().code, Code::data_loss);
  EXPECT_EQ(from_extended_attributes(File{}).error().code, Code::not_found);
}

}  // namespace
}  // namespace reelway::tape::ltfs
