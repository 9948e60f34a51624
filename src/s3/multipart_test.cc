#include "s3/multipart.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace reelway::s3 {
namespace {

using enum base::ChecksumKind;
constexpr std::array kKinds{crc32, crc32c, crc64nvme, sha1, sha256};

struct Parts {
  std::string whole;
  std::vector<PartDigest> digests;
};

Parts make_parts(std::initializer_list<std::size_t> sizes) {
  base::SeededRng rng(11);
  Parts parts;
  for (const std::size_t size : sizes) {
    std::string bytes(size, '\0');
    rng.fill(std::as_writable_bytes(std::span(bytes)));
    PartDigest digest{
        .size = size, .etag = base::to_hex(base::digest_of(md5, base::as_bytes(bytes))), .checksums = {}};
    for (const auto kind : kKinds)
      digest.checksums.push_back({kind, base::digest_of(kind, base::as_bytes(bytes)), 0});
    parts.digests.push_back(std::move(digest));
    parts.whole += bytes;
  }
  return parts;
}

TEST(Multipart, EtagIsTheMd5OfTheMd5s) {
  // MD5 of two times the binary MD5 of nothing.
  const PartDigest empty{.size = 0, .etag = "d41d8cd98f00b204e9800998ecf8427e", .checksums = {}};
  const std::vector<PartDigest> two{empty, empty};
  base::Bytes twice = *base::from_hex(empty.etag);
  twice.insert(twice.end(), twice.begin(), twice.begin() + 16);
  EXPECT_EQ(multipart_etag(two), base::to_hex(base::digest_of(md5, twice)) + "-2");
}

TEST(Multipart, EtagOfOtherEtagsDependsOnPartsAndOrder) {
  const PartDigest a{.size = 1, .etag = "crc64nvme-0000000000000001", .checksums = {}};
  const PartDigest b{.size = 1, .etag = "crc64nvme-0000000000000002", .checksums = {}};
  const std::vector<PartDigest> ab{a, b};
  const std::vector<PartDigest> ba{b, a};
  EXPECT_NE(multipart_etag(ab), multipart_etag(ba));
  EXPECT_TRUE(multipart_etag(ab).ends_with("-2"));
}

TEST(Multipart, CombinedCrcIsThatOfTheWhole) {
  for (const auto& parts :
       {make_parts({0}), make_parts({1}), make_parts({5, 0, 1000, 3}), make_parts({100000, 1})}) {
    for (const auto kind : {crc32, crc32c, crc64nvme}) {
      const auto combined = full_object_checksum(kind, parts.digests);
      ASSERT_TRUE(combined);
      EXPECT_EQ(combined->value, base::digest_of(kind, base::as_bytes(parts.whole)));
      EXPECT_EQ(combined->composite_part_count, 0U);
    }
  }
}

TEST(Multipart, CompositeIsTheChecksumOfTheChecksums) {
  const Parts parts = make_parts({5, 6, 7});
  for (const auto kind : {crc32, crc32c, sha1, sha256}) {
    base::Bytes joined;
    for (const PartDigest& part : parts.digests) {
      for (const Checksum& sum : part.checksums) {
        if (sum.kind == kind) joined.insert(joined.end(), sum.value.begin(), sum.value.end());
      }
    }
    const auto composite = composite_checksum(kind, parts.digests);
    ASSERT_TRUE(composite);
    EXPECT_EQ(composite->value, base::digest_of(kind, joined));
    EXPECT_TRUE(to_text(*composite).ends_with("-3"));
  }
}

TEST(Multipart, KindsThatHaveNoSuchSumAndPartsThatLackIt) {
  Parts parts = make_parts({5, 6});
  EXPECT_FALSE(composite_checksum(crc64nvme, parts.digests));
  EXPECT_FALSE(full_object_checksum(sha256, parts.digests));
  parts.digests[1].checksums.clear();
  EXPECT_FALSE(composite_checksum(crc32, parts.digests));
  EXPECT_FALSE(full_object_checksum(crc32, parts.digests));
}

}  // namespace
}  // namespace reelway::s3
