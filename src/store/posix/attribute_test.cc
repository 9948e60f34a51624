#include "store/posix/attribute.h"

#include <gtest/gtest.h>

namespace reelway::store::posix {
namespace {

base::Bytes bytes_of(std::string_view text) {
  const base::ByteView view = base::as_bytes(text);
  return {view.begin(), view.end()};
}

const base::Bytes kKey = bytes_of("0123456789abcdef0123456789abcdef");
const Record kRecord{.kind = RecordKind::pointer, .payload = bytes_of("payload")};

TEST(PackedAttribute, AGoldenRecordHasTheDocumentedBytes) {
  const base::Bytes packed = pack_record(kRecord, std::nullopt, "");
  EXPECT_EQ(base::to_hex(base::ByteView(packed).first(19)), "524c575901010000070000007061796c6f6164");
  EXPECT_EQ(packed.size(), 23u);
}

TEST(PackedAttribute, RecordsFollowEachOther) {
  base::Bytes both = pack_record(kRecord, std::nullopt, "");
  const base::Bytes second = pack_record({.kind = RecordKind::inode, .payload = {}}, std::nullopt, "");
  both.insert(both.end(), second.begin(), second.end());
  base::ByteView rest = both;
  const auto first = unpack_record(rest, std::nullopt, "");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->payload, kRecord.payload);
  const auto next = unpack_record(rest, std::nullopt, "");
  ASSERT_TRUE(next);
  EXPECT_EQ(next->kind, RecordKind::inode);
  EXPECT_TRUE(rest.empty());
}

TEST(PackedAttribute, EveryFlippedBitAndEveryTruncationIsRefused) {
  const base::Bytes packed = pack_record(kRecord, std::nullopt, "");
  for (std::size_t bit = 0; bit < packed.size() * 8; ++bit) {
    base::Bytes flipped = packed;
    flipped[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    base::ByteView rest = flipped;
    EXPECT_FALSE(unpack_record(rest, std::nullopt, "")) << bit;
  }
  for (std::size_t length = 0; length < packed.size(); ++length) {
    base::ByteView rest = base::ByteView(packed).first(length);
    EXPECT_FALSE(unpack_record(rest, std::nullopt, "")) << length;
  }
}

TEST(PackedAttribute, ASignatureBindsKeyAndName) {
  const base::Bytes packed = pack_record(kRecord, kKey, "bucket/key");
  const auto code = [](base::Bytes bytes, const base::Bytes& key, std::string_view binding) {
    base::ByteView rest = bytes;
    const auto record = unpack_record(rest, key, binding);
    return record ? std::nullopt : std::optional(record.error().code);
  };
  EXPECT_EQ(code(packed, kKey, "bucket/key"), std::nullopt);
  EXPECT_EQ(code(packed, kKey, "bucket/other"), base::Code::access_denied);
  EXPECT_EQ(code(packed, bytes_of("another"), "bucket/key"), base::Code::access_denied);
  EXPECT_EQ(code(pack_record(kRecord, std::nullopt, ""), kKey, "bucket/key"), base::Code::access_denied);
}

}  // namespace
}  // namespace reelway::store::posix
