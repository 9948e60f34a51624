#include "base/checksum.h"

#include <gtest/gtest.h>

#include <array>

#include "base/rng.h"

namespace reelway::base {
namespace {

constexpr std::array kAll{ChecksumKind::crc32, ChecksumKind::crc32c, ChecksumKind::crc64nvme,
                          ChecksumKind::sha1,  ChecksumKind::sha256, ChecksumKind::md5};
constexpr std::array kCrcs{ChecksumKind::crc32, ChecksumKind::crc32c, ChecksumKind::crc64nvme};

std::string hex_of(ChecksumKind kind, std::string_view text) {
  return to_hex(digest_of(kind, as_bytes(text)));
}

Bytes random_bytes(Rng& rng, std::size_t size) {
  Bytes bytes(size);
  rng.fill(bytes);
  return bytes;
}

std::uint64_t number_of(ByteView big_endian) {
  std::uint64_t value = 0;
  for (const std::byte byte : big_endian) value = value << 8 | std::to_integer<std::uint64_t>(byte);
  return value;
}

/// Bit by bit, from the definition: reflected, all ones before, inverted after.
std::uint64_t slow_crc(std::uint64_t reflected_polynomial, unsigned width, ByteView bytes) {
  const std::uint64_t ones = width == 64 ? ~0ULL : (1ULL << width) - 1;
  std::uint64_t crc = ones;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint64_t>(byte);
    for (int i = 0; i < 8; ++i) crc = (crc & 1) != 0 ? (crc >> 1) ^ reflected_polynomial : crc >> 1;
  }
  return crc ^ ones;
}

TEST(Checksum, HasThePublishedCheckValues) {
  EXPECT_EQ(hex_of(ChecksumKind::crc32, "123456789"), "cbf43926");
  EXPECT_EQ(hex_of(ChecksumKind::crc32c, "123456789"), "e3069283");
  EXPECT_EQ(hex_of(ChecksumKind::crc64nvme, "123456789"), "ae8b14860a799888");
  EXPECT_EQ(hex_of(ChecksumKind::sha1, "abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(hex_of(ChecksumKind::sha256, "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex_of(ChecksumKind::md5, "abc"), "900150983cd24fb0d6963f7d28e17f72");
  // RFC 3720, B.4: 32 zero bytes and 32 bytes of ones.
  EXPECT_EQ(hex_of(ChecksumKind::crc32c, std::string(32, '\0')), "8a9136aa");
  EXPECT_EQ(hex_of(ChecksumKind::crc32c, std::string(32, '\xff')), "62a8ab43");
}

TEST(Checksum, OfNothing) {
  EXPECT_EQ(hex_of(ChecksumKind::crc64nvme, ""), "0000000000000000");
  EXPECT_EQ(hex_of(ChecksumKind::crc32, ""), "00000000");
  EXPECT_EQ(hex_of(ChecksumKind::md5, ""), "d41d8cd98f00b204e9800998ecf8427e");
}

TEST(Checksum, CrcsAgreeWithTheDefinitionAtEveryLengthAndAlignment) {
  constexpr std::uint64_t kSeed = 20261130;
  SCOPED_TRACE(kSeed);
  SeededRng rng(kSeed);
  const Bytes bytes = random_bytes(rng, 700);
  for (std::size_t size = 0; size + 16 <= bytes.size(); ++size) {
    const ByteView part = ByteView(bytes).subspan(size % 16, size);
    ASSERT_EQ(crc32(0, part), slow_crc(0xEDB88320, 32, part)) << size;
    ASSERT_EQ(crc32c(0, part), slow_crc(0x82F63B78, 32, part)) << size;
    ASSERT_EQ(crc64nvme(0, part), slow_crc(0x9A6C9329AC4BC9B5, 64, part)) << size;
  }
}

TEST(Checksum, ChainedIsWholeIsCombined) {
  constexpr std::uint64_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  SeededRng rng(kSeed);
  for (int round = 0; round < 200; ++round) {
    const Bytes whole = random_bytes(rng, rng.below(5000));
    const std::size_t cut = rng.below(whole.size() + 1);
    const ByteView a = ByteView(whole).first(cut);
    const ByteView b = ByteView(whole).subspan(cut);
    EXPECT_EQ(crc32(crc32(0, a), b), crc32(0, whole));
    EXPECT_EQ(crc32c(crc32c(0, a), b), crc32c(0, whole));
    EXPECT_EQ(crc64nvme(crc64nvme(0, a), b), crc64nvme(0, whole));
    for (const ChecksumKind kind : kCrcs) {
      EXPECT_EQ(combine_crc(kind, number_of(digest_of(kind, a)), number_of(digest_of(kind, b)), b.size()),
                number_of(digest_of(kind, whole)));
    }
    for (const ChecksumKind kind : kAll) {
      const auto hasher = make_hasher(kind);
      hasher->update(a);
      EXPECT_EQ(hasher->digest(), digest_of(kind, a));
      hasher->update(b);
      EXPECT_EQ(hasher->digest(), digest_of(kind, whole));
    }
  }
}

TEST(Checksum, CombinesLengthsWhoseBitsDoNotFit64) {
  // Appending 2^62 zero bytes twice is appending 2^63 of them.
  for (const ChecksumKind kind : kCrcs) {
    const auto append_zeros = [&](std::uint64_t crc, std::uint64_t count) {
      return combine_crc(kind, crc, 0, count);
    };
    const std::uint64_t start = 0x12345678;
    EXPECT_EQ(append_zeros(append_zeros(start, 1ULL << 62), 1ULL << 62), append_zeros(start, 1ULL << 63));
    EXPECT_NE(append_zeros(start, 1ULL << 62), start);
  }
}

TEST(Checksum, NamesAreThoseOfTheHeaders) {
  for (const ChecksumKind kind : kAll) {
    EXPECT_EQ(parse_checksum_kind(to_string(kind)), kind);
    EXPECT_EQ(digest_of(kind, {}).size(), digest_size(kind));
  }
  EXPECT_EQ(parse_checksum_kind("CRC64NVME"), ChecksumKind::crc64nvme);
  EXPECT_EQ(parse_checksum_kind("crc64"), std::nullopt);
}

TEST(HmacSha256, HasTheVectorsOfRfc4231) {
  const auto mac = [](std::string_view key, std::string_view text) {
    return to_hex(hmac_sha256(as_bytes(key), as_bytes(text)));
  };
  EXPECT_EQ(mac(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(mac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(mac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

}  // namespace
}  // namespace reelway::base
