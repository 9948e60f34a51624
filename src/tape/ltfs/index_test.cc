#include "tape/ltfs/index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reelway::tape::ltfs {
namespace {

using base::Code;
using base::Result;
using ::testing::HasSubstr;

Result<Index> parse(std::string_view text, IndexLimits limits = {}, std::size_t step = 4096) {
  IndexParser parser(limits);
  for (; !text.empty(); text.remove_prefix(std::min(step, text.size())))
    TRY_VOID(parser.feed(base::as_bytes(text.substr(0, step))));
  return parser.finish();
}

std::string serialize(const Index& index) {
  std::string out;
  EXPECT_FALSE(IndexSerializer(index).fill(out, SIZE_MAX));
  return out;
}

// As the reference implementation writes it, with what it allows besides: unknown tags, a symlink, a sparse
// file, shared blocks.
constexpr std::string_view kReference = R"(<?xml version="1.0" encoding="UTF-8"?>
<ltfsindex version="2.4.0">
    <creator>IBM LTFS 2.4.8.4 - Linux - ltfs</creator>
    <comment>by &amp; by</comment>
    <volumeuuid>30a91a08-daae-48d1-ae75-69804e61d2ea</volumeuuid>
    <generationnumber>12</generationnumber>
    <updatetime>2026-01-02T03:04:05.123456789Z</updatetime>
    <location>
        <partition>a</partition>
        <startblock>5</startblock>
    </location>
    <previousgenerationlocation>
        <partition>b</partition>
        <startblock>20</startblock>
    </previousgenerationlocation>
    <allowpolicyupdate>true</allowpolicyupdate>
    <dataplacementpolicy>
        <indexpartitioncriteria>
            <size>1048576</size>
            <name>*.txt</name>
        </indexpartitioncriteria>
    </dataplacementpolicy>
    <highestfileuid>9</highestfileuid>
    <volumelockstate>unlocked</volumelockstate>
    <vendor:thing xmlns:vendor="urn:x" a="1 &lt; 2">text<sub/></vendor:thing>
    <directory>
        <fileuid>1</fileuid>
        <name>volume name</name>
        <readonly>false</readonly>
        <creationtime>2026-01-02T03:04:05.000000000Z</creationtime>
        <changetime>2026-01-02T03:04:05.000000000Z</changetime>
        <modifytime>2026-01-02T03:04:05.000000000Z</modifytime>
        <accesstime>2026-01-02T03:04:05.000000000Z</accesstime>
        <backuptime>2026-01-02T03:04:05.000000000Z</backuptime>
        <contents>
            <directory>
                <name>dir</name>
                <readonly>false</readonly>
                <creationtime>2026-01-02T03:04:05.000000000Z</creationtime>
                <changetime>2026-01-02T03:04:05.000000000Z</changetime>
                <modifytime>2026-01-02T03:04:05.000000000Z</modifytime>
                <accesstime>2026-01-02T03:04:05.000000000Z</accesstime>
                <backuptime>2026-01-02T03:04:05.000000000Z</backuptime>
                <fileuid>2</fileuid>
                <extendedattributes><xattr><key>color</key><value type="text">red</value></xattr></extendedattributes>
                <contents>
                    <file>
                        <name percentencoded="true">a%3Ab%25c</name>
                        <length>1000</length>
                        <readonly>true</readonly>
                        <openforwrite>false</openforwrite>
                        <creationtime>2026-01-02T03:04:05.000000000Z</creationtime>
                        <changetime>2026-01-02T03:04:05.000000000Z</changetime>
                        <modifytime>2026-01-02T03:04:05.000000000Z</modifytime>
                        <accesstime>2026-01-02T03:04:05.000000000Z</accesstime>
                        <backuptime>2026-01-02T03:04:05.000000000Z</backuptime>
                        <fileuid>3</fileuid>
                        <extendedattributes>
                            <xattr><key>bin</key><value type="base64">AP8=</value></xattr>
                            <xattr><key>empty</key><value/></xattr>
                        </extendedattributes>
                        <extentinfo>
                            <extent>
                                <fileoffset>500</fileoffset>
                                <partition>b</partition>
                                <startblock>8</startblock>
                                <byteoffset>7</byteoffset>
                                <bytecount>100</bytecount>
                            </extent>
                            <extent>
                                <fileoffset>0</fileoffset>
                                <partition>b</partition>
                                <startblock>7</startblock>
                                <byteoffset>0</byteoffset>
                                <bytecount>10</bytecount>
                            </extent>
                        </extentinfo>
                        <future>kept</future>
                    </file>
                    <file>
                        <name>link</name>
                        <length>0</length>
                        <readonly>false</readonly>
                        <creationtime>2026-01-02T03:04:05.000000000Z</creationtime>
                        <changetime>2026-01-02T03:04:05.000000000Z</changetime>
                        <modifytime>2026-01-02T03:04:05.000000000Z</modifytime>
                        <accesstime>2026-01-02T03:04:05.000000000Z</accesstime>
                        <backuptime>2026-01-02T03:04:05.000000000Z</backuptime>
                        <fileuid>4</fileuid>
                        <symlink>../target</symlink>
                    </file>
                </contents>
            </directory>
        </contents>
    </directory>
</ltfsindex>
)";

TEST(IndexXml, TheReferencesFormIsRead) {
  const auto index = parse(kReference);
  ASSERT_TRUE(index) << to_string(index.error());
  EXPECT_EQ(index->generation, 12U);
  EXPECT_EQ(index->comment, "by & by");
  EXPECT_EQ(index->location, (IndexLocation{'a', 5}));
  EXPECT_EQ(index->previous, (IndexLocation{'b', 20}));
  EXPECT_EQ(index->volume_name, "volume name");
  EXPECT_EQ(index->highest_uid, 9U);
  EXPECT_EQ(index->file_count(), 2U);
  const auto* file = index->find_file("/dir/a:b%c");
  ASSERT_NE(file, nullptr);
  EXPECT_TRUE(file->readonly);
  EXPECT_EQ(file->length, 1000U);
  ASSERT_EQ(file->extents.size(), 2U);
  EXPECT_EQ(file->extents[0].file_offset, 0U);
  EXPECT_EQ(file->extents[1].byte_offset, 7U);
  EXPECT_EQ(*file->attribute("bin"), std::string("\0\xFF", 2));
  EXPECT_EQ(*file->attribute("empty"), "");
  EXPECT_EQ(index->find_file("/dir/link")->symlink, "../target");
  EXPECT_EQ(*index->find_directory("/dir")->attribute("color"), "red");
}

TEST(IndexXml, WhatWeDoNotKnowIsWrittenBack) {
  const auto index = parse(kReference);
  ASSERT_TRUE(index);
  const auto text = serialize(*index);
  EXPECT_THAT(
      text, HasSubstr("<vendor:thing xmlns:vendor=\"urn:x\" a=\"1 &lt; 2\">text<sub></sub></vendor:thing>"));
  EXPECT_THAT(text, HasSubstr("<future>kept</future>"));
  EXPECT_THAT(text, HasSubstr("<name>*.txt</name>"));
  EXPECT_THAT(text, HasSubstr("<name percentencoded=\"true\">a%3Ab%25c</name>"));
  EXPECT_THAT(text, HasSubstr("<value/>"));
  const auto again = parse(text);
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(serialize(*again), text);
}

TEST(IndexXml, AnySplitIntoRecordsGivesTheSame) {
  const auto whole = serialize(*parse(kReference));
  for (const std::size_t step : {1U, 2U, 7U, 100U, 1000U}) {
    const auto index = parse(kReference, {}, step);
    ASSERT_TRUE(index) << step;
    EXPECT_EQ(serialize(*index), whole) << step;
  }
}

TEST(IndexXml, TheSerializersPiecesMakeTheWhole) {
  const auto index = parse(kReference);
  ASSERT_TRUE(index);
  const auto whole = serialize(*index);
  for (const std::size_t wanted : {1U, 100U, 1000U}) {
    IndexSerializer serializer(*index);
    std::string all;
    for (bool more = true; more;) {
      std::string piece;
      more = serializer.fill(piece, wanted);
      all += piece;
    }
    EXPECT_EQ(all, whole);
  }
}

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kReference);
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(IndexXml, HostileOrBrokenTextIsRefused) {
  const std::vector<std::string> texts{
      "",
      "not xml",
      "<?xml version=\"1.0\"?><ltfslabel/>",
      std::string(kReference.substr(0, kReference.size() / 2)),
      replaced("<ltfsindex",
               "<!DOCTYPE ltfsindex [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]><ltfsindex"),
      replaced("<ltfsindex", "<!DOCTYPE ltfsindex SYSTEM \"file:///etc/passwd\"><ltfsindex"),
      replaced("volume name", "&undefined;"),
      replaced(">12<", ">twelve<"),
      replaced("<generationnumber>12</generationnumber>", ""),
      replaced("2.4.0", "9.0.0"),
      replaced("<name>dir</name>", ""),
      replaced("<name>dir</name>", "<name>..</name>"),
      replaced("<name>dir</name>", "<name>a/b</name>"),
      replaced("<name>link</name>", "<name percentencoded=\"true\">a%3Ab%25c</name>"),
      replaced("a%3Ab%25c", "a%00"),
      replaced("a%3Ab%25c", "a%3"),
      replaced("AP8=", "A"),
      replaced("<fileoffset>500<", "<fileoffset>5<"),
      replaced("<bytecount>100<", "<bytecount>18446744073709551615<"),
      replaced("<length>1000<", "<length>18446744073709551615<"),
      replaced("</ltfsindex>", "<directory></directory></ltfsindex>"),
      replaced("2026-01-02T03:04:05.123456789Z", "yesterday"),
  };
  for (const auto& text : texts) {
    const auto index = parse(text);
    ASSERT_FALSE(index) << text.substr(0, 300);
    EXPECT_TRUE(index.error().code == Code::data_loss || index.error().code == Code::unsupported);
  }
}

std::string nested(std::size_t depth) {
  std::string text =
      "<ltfsindex "
      "version=\"2.4.0\"><volumeuuid>u</volumeuuid><generationnumber>1</"
      "generationnumber><location><partition>a</partition>"
      "<startblock>5</startblock></location><directory><name></name><contents>";
  for (std::size_t i = 0; i < depth; ++i) text += "<directory><name>d</name><contents>";
  for (std::size_t i = 0; i < depth; ++i) text += "</contents></directory>";
  return text + "</contents></directory></ltfsindex>";
}

TEST(IndexXml, DepthCountAndSizeHaveLimits) {
  EXPECT_TRUE(parse(nested(200)));
  EXPECT_FALSE(parse(nested(300)));
  EXPECT_FALSE(parse(nested(100'000)));
  std::string unknown = "<ltfsindex version=\"2.4.0\">";
  for (int i = 0; i < 100'000; ++i) unknown += "<x>";
  EXPECT_FALSE(parse(unknown));
  EXPECT_FALSE(parse(kReference, {.xml_bytes_max = 1000}));
  EXPECT_FALSE(parse(kReference, {.entry_count_max = 2}));
  EXPECT_FALSE(parse("<ltfsindex version=\"2.4.0\" a=\"" + std::string(20 << 20, 'x') + "\">"));
  EXPECT_FALSE(parse("<ltfsindex version=\"2.4.0\"><creator>" + std::string(2 << 20, 'x')));
}

TEST(IndexTree, AddsRenamesAndRemoves) {
  Index index;
  const base::TimePoint now{};
  ASSERT_TRUE(index.add_file("/b/x/y", File{}, now));
  EXPECT_EQ(index.add_file("/b/x/y", File{}, now).error().code, Code::already_exists);
  EXPECT_EQ(index.add_file("/b/x/y/z", File{}, now).error().code, Code::already_exists);
  EXPECT_EQ(index.add_file("/b/x", File{}, now).error().code, Code::already_exists);
  ASSERT_TRUE(index.rename_file("/b/x/y", "/c/z", now));
  EXPECT_EQ(index.find_file("/b/x/y"), nullptr);
  EXPECT_NE(index.find_file("/c/z"), nullptr);
  EXPECT_NE(index.find_directory("/b/x"), nullptr);
  EXPECT_EQ(index.file_count(), 1U);
  EXPECT_EQ(index.remove_file("/c/none", now).error().code, Code::not_found);
  ASSERT_TRUE(index.remove_file("/c/z", now));
  EXPECT_EQ(index.file_count(), 0U);
}

TEST(IndexTree, UidsAreNeverUsedTwice) {
  Index index;
  const base::TimePoint now{};
  const auto first = (*index.add_file("/a", File{}, now))->uid;
  ASSERT_TRUE(index.remove_file("/a", now));
  EXPECT_GT((*index.add_file("/a", File{}, now))->uid, first);
}

}  // namespace
}  // namespace reelway::tape::ltfs
