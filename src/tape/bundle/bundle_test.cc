#include "tape/bundle/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/rng.h"
#include "tape/bundle/tar_header.h"

namespace reelway::tape::bundle {
namespace {

using base::Code;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Item {
  MemberHead head;
  std::string content;
};

MemberHead head_of(std::string key, std::uint64_t length, std::string generation = "01JGEN") {
  return {.bucket = "bucket",
          .key = std::move(key),
          .generation = std::move(generation),
          .length = length,
          .modify_time = base::TimePoint(std::chrono::milliseconds(1'700'000'000'250)),
          .metadata = {std::byte{0xA1}, std::byte{0}, std::byte{'\n'}},
          .sha256 = {}};
}

Item item(std::string key, std::string content, std::string generation = "01JGEN") {
  auto head = head_of(std::move(key), content.size(), std::move(generation));
  return {.head = std::move(head), .content = std::move(content)};
}

/// The bundle's bytes; `members` as the writer tells them.
std::string build(const std::vector<Item>& items, std::vector<Member>* members = nullptr) {
  Writer writer;
  std::string out;
  for (const auto& one : items) {
    writer.begin_member(one.head, out);
    out += one.content;
    writer.end_member(std::string(64, 'c'), out);
    EXPECT_EQ(writer.size(), out.size());
  }
  writer.finish(out);
  EXPECT_EQ(writer.size(), out.size());
  if (members != nullptr) *members = writer.members();
  return out;
}

base::Result<std::vector<Member>> read_toc(std::string_view bundle) {
  const auto bytes = base::as_bytes(bundle);
  TRY(const auto location, find_toc(bytes.last(std::min(bytes.size(), kTailBytes)), bytes.size()));
  if (location.offset + location.length > bytes.size()) return base::fail(Code::data_loss, "outside");
  return decode_toc(bytes.subspan(location.offset, location.length), location);
}

base::Result<std::vector<Reader::Found>> walk(std::string_view bundle, std::size_t step) {
  Reader reader;
  std::vector<Reader::Found> all;
  while (!bundle.empty()) {
    if (reader.skippable() > 0 && step % 2 == 0) {
      const auto skipped = std::min<std::uint64_t>(reader.skippable(), bundle.size());
      reader.skip(skipped);
      bundle.remove_prefix(static_cast<std::size_t>(skipped));
      continue;
    }
    TRY_VOID(reader.feed(base::as_bytes(bundle.substr(0, step))));
    bundle.remove_prefix(std::min(step, bundle.size()));
    for (auto& found : reader.take_found()) all.push_back(std::move(found));
  }
  return all;
}

std::string run(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer{};
  while (const auto bytes = std::fread(buffer.data(), 1, buffer.size(), pipe))
    out.append(buffer.data(), bytes);
  const int status = ::pclose(pipe);
  return out + (status == 0 ? "" : "exit status not 0");
}

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "bundle_test_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

TEST(Bundle, MembersLieWhereTheTableSays) {
  std::vector<Member> members;
  const std::vector<Item> items{item("a", "hello"), item("dir/b", std::string(1000, 'x')), item("empty", "")};
  const auto bundle = build(items, &members);
  EXPECT_EQ(bundle.size() % kTarBlock, 0U);
  const auto toc = read_toc(bundle);
  ASSERT_TRUE(toc) << to_string(toc.error());
  EXPECT_EQ(*toc, members);
  for (std::size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(bundle.substr((*toc)[i].offset, (*toc)[i].length), items[i].content);
    EXPECT_EQ((*toc)[i].key, items[i].head.key);
    EXPECT_EQ((*toc)[i].sha256, std::string(64, 'c'));
  }
}

TEST(Bundle, AnEmptyOneHasAnEmptyTable) {
  const auto toc = read_toc(build({}));
  ASSERT_TRUE(toc);
  EXPECT_TRUE(toc->empty());
}

TEST(Bundle, PlainTarListsAndUnpacksIt) {
  const Folder folder;
  const std::string long_key = "long/" + std::string(200, 'k') + "/" + std::string(200, 'l');
  const std::string accent = "caf\xC3\xA9/\xE6\x97\xA5";
  const auto bundle = build({item("plain", "hello"), item(long_key, "long name"), item(accent, "utf-8"),
                             item("new\nline", "odd but fine")});
  std::ofstream(folder / "b.tar", std::ios::binary) << bundle;
  const auto listing = run("LC_ALL=C.UTF-8 TZ=UTC tar tvf " + (folder / "b.tar"));
  EXPECT_THAT(listing, HasSubstr("2023-11-14 22:13 bucket/plain"));
  EXPECT_EQ(listing.find("exit status"), std::string::npos) << listing;
  EXPECT_EQ(listing.find("nknown"), std::string::npos) << listing;  // no warning about keywords
  std::filesystem::create_directory(folder / "out");
  EXPECT_EQ(run("LC_ALL=C.UTF-8 tar xf " + (folder / "b.tar") + " -C " + (folder / "out")), "");
  const auto unpacked = [&folder](const std::string& key) {
    std::ifstream file(folder / ("out/bucket/" + key), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(unpacked("plain"), "hello");
  EXPECT_EQ(unpacked(long_key), "long name");
  EXPECT_EQ(unpacked(accent), "utf-8");
  EXPECT_EQ(unpacked("new\nline"), "odd but fine");
}

TEST(Bundle, KeysThatATarCannotUnpackAreNamedByGeneration) {
  const std::vector<Item> items{item("a//b", "1", "G1"),
                                item("../up", "2", "G2"),
                                item("folder/", "3", "G3"),
                                item("x", "4", "G4"),
                                item("x/y", "5", "G5"),
                                item("p/q", "6", "G6"),
                                item("p", "7", "G7"),
                                item("x", "8", "G8"),
                                item(std::string("n\0l", 3), "9", "G9"),
                                item(std::string(300, 'c'), "10", "G10"),
                                item("./k", "11", "G11")};
  const auto bundle = build(items);
  const auto found = walk(bundle, 512);
  ASSERT_TRUE(found);
  std::vector<std::string> names;
  for (const auto& one : *found) names.push_back(one.name);
  EXPECT_THAT(names, ElementsAre(".reelway/odd/G1", ".reelway/odd/G2", ".reelway/odd/G3", "bucket/x",
                                 ".reelway/odd/G5", "bucket/p/q", ".reelway/odd/G7", ".reelway/odd/G8",
                                 ".reelway/odd/G9", ".reelway/odd/G10", ".reelway/odd/G11", ".reelway/toc"));
  const auto toc = read_toc(bundle);
  ASSERT_TRUE(toc);
  for (std::size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ((*toc)[i].key, items[i].head.key);
    EXPECT_EQ((*found)[i].member.key, items[i].head.key);
    EXPECT_EQ((*found)[i].member.metadata, items[i].head.metadata);
    EXPECT_EQ((*found)[i].member.offset, (*toc)[i].offset);
  }
}

TEST(Bundle, ADroppedMemberIsNotInTheTable) {
  Writer writer;
  std::string out;
  writer.begin_member(head_of("gone", 700), out);
  out += std::string(700, 'z');
  writer.drop_member(out);
  writer.begin_member(head_of("kept", 2), out);
  out += "ok";
  writer.end_member("", out);
  writer.finish(out);
  const auto toc = read_toc(out);
  ASSERT_TRUE(toc);
  ASSERT_EQ(toc->size(), 1U);
  EXPECT_EQ(out.substr(toc->front().offset, 2), "ok");
}

TEST(Bundle, AnyBytesInKeysAndContentComeBack) {
  const std::uint64_t seed = 20261130;
  SCOPED_TRACE("seed " + std::to_string(seed));
  base::SeededRng rng(seed);
  const auto bytes = [&rng](std::uint64_t limit) {
    std::string out(rng.below(limit), '\0');
    rng.fill(std::as_writable_bytes(std::span(out)));
    return out;
  };
  for (int round = 0; round < 50; ++round) {
    std::vector<Item> items;
    for (int i = 0; i < 20; ++i)
      items.push_back(item("k" + bytes(300), bytes(3000), "G" + std::to_string(i)));
    std::vector<Member> members;
    const auto bundle = build(items, &members);
    const auto toc = read_toc(bundle);
    ASSERT_TRUE(toc) << to_string(toc.error());
    ASSERT_EQ(*toc, members);
    const auto found = walk(bundle, 1 + rng.below(2000));
    ASSERT_TRUE(found) << to_string(found.error());
    ASSERT_EQ(found->size(), items.size() + 1);
    for (std::size_t i = 0; i < items.size(); ++i) {
      EXPECT_EQ(bundle.substr(members[i].offset, members[i].length), items[i].content);
      EXPECT_EQ((*found)[i].member.key, items[i].head.key);
      EXPECT_EQ((*found)[i].member.offset, members[i].offset);
    }
  }
}

TEST(Bundle, CutShortItHasNoTableButItsMembersAreFound) {
  const auto bundle = build({item("a", std::string(600, 'a'), "G1"), item("b", std::string(600, 'b'), "G2")});
  for (const auto footer = bundle.find("RWTOC1");
       const auto length : {footer + 10, footer, footer - 1, std::size_t{0}}) {
    const auto toc = read_toc(bundle.substr(0, length));
    ASSERT_FALSE(toc) << length;
    EXPECT_EQ(toc.error().code, Code::data_loss);
  }
  const auto found = walk(bundle.substr(0, 4000), 512);
  ASSERT_TRUE(found);
  EXPECT_GE(found->size(), 1U);
  EXPECT_EQ(found->front().member.generation, "G1");
}

TEST(Bundle, ADamagedTableIsSeen) {
  std::vector<Member> members;
  auto bundle = build({item("a", "hello")}, &members);
  const auto location =
      find_toc(base::as_bytes(bundle).last(std::min(bundle.size(), kTailBytes)), bundle.size());
  ASSERT_TRUE(location);
  bundle[location->offset + 9] ^= 1;
  EXPECT_EQ(read_toc(bundle).error().code, Code::data_loss);
}

TEST(Bundle, LargeMembersHaveASizeRecord) {
  Writer writer;
  std::string out;
  writer.begin_member(head_of("huge", 9ULL << 30), out);
  Reader reader;
  ASSERT_TRUE(reader.feed(base::as_bytes(out)));
  const auto found = reader.take_found();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].member.length, 9ULL << 30);
  EXPECT_EQ(reader.skippable(), 9ULL << 30);
}

TEST(Tar, AForeignArchiveIsWalked) {
  const Folder folder;
  std::filesystem::create_directory(folder / "d");
  std::ofstream(folder / "d/file") << "content";
  EXPECT_EQ(run("tar cf " + (folder / "f.tar") + " -C " + (folder / "") + " d"), "");
  std::ifstream file(folder / "f.tar", std::ios::binary);
  const std::string archive(std::istreambuf_iterator<char>(file), {});
  const auto found = walk(archive, 512);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2U);
  EXPECT_EQ((*found)[0].type, '5');
  EXPECT_EQ((*found)[1].name, "d/file");
  EXPECT_EQ(archive.substr((*found)[1].member.offset, (*found)[1].member.length), "content");
}

TEST(Tar, BrokenHeadersAreRefused) {
  std::string header;
  append_tar_header({.name = "x", .size = 5}, header);
  ASSERT_TRUE(parse_tar_header(header));
  for (std::size_t i = 0; i < header.size(); ++i) {
    auto broken = header;
    broken[i] = static_cast<char>(broken[i] + 1);
    const bool in_checksum_end = i >= 154 && i < 156;  // the two bytes after its digits mean nothing
    EXPECT_TRUE(in_checksum_end || !parse_tar_header(broken)) << i;
  }
  EXPECT_FALSE(parse_tar_header(header.substr(1)));
}

TEST(Tar, PaxRecordsCountTheirOwnLength) {
  std::string out;
  for (const std::size_t length : {0U, 1U, 86U, 87U, 88U, 980U, 990U, 9990U}) {
    out.clear();
    append_pax_record("key", std::string(length, 'v'), out);
    EXPECT_EQ(out.substr(0, out.find(' ')), std::to_string(out.size()));
    std::string_view text = out;
    const auto record = take_pax_record(text);
    ASSERT_TRUE(record);
    EXPECT_EQ(record->value.size(), length);
    EXPECT_TRUE(text.empty());
  }
  for (std::string_view broken :
       {"", "x", "5 a=", "99 a=b\n", "6 a=b ", "0 a=b\n", "-1 a=b\n", "6 aab\n", "4 ab\n"}) {
    EXPECT_FALSE(take_pax_record(broken)) << broken;
  }
}

}  // namespace
}  // namespace reelway::tape::bundle
