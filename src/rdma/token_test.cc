#include "rdma/token.h"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.h"

namespace reelway::rdma {
namespace {

const std::string kVersity =
    "0102030405060708:01020304:01020304:0102:010203:1:0102030405060708090a0b0c0d0e0f10";
const std::string kElbencho =
    "0000000000001000:00100000:00000001:0000:000001:1:00000000000000000000ffffc0a80001";
const std::string kElbenchoSuffixed = kElbencho + ":0000000000001000:0000000000100000";
const std::string kOfi = "00007f0000001000:400000:ofi1:verbs;ofi_rxm:0200abcd:1f";
const std::string kRc = std::string(88, 'a');

std::string base64(const std::string& text) { return base::to_base64(base::as_bytes(text)); }

DcToken parse_dc(const std::string& text) {
  const auto token = parse_token(text);
  EXPECT_TRUE(token.has_value()) << text << ": " << (token ? "" : to_string(token.error()));
  if (!token || !std::holds_alternative<DcToken>(*token)) {
    ADD_FAILURE() << text << " is not a DC token";
    return {};
  }
  return std::get<DcToken>(*token);
}

TEST(Token, DescriptorFieldsAreReadInPrintfOrder) {
  const DcToken token = parse_dc(kVersity);
  EXPECT_EQ(token.address, 0x0102030405060708U);
  EXPECT_EQ(token.length, 0x01020304U);
  EXPECT_EQ(token.rkey, 0x01020304U);
  EXPECT_EQ(token.lid, 0x0102U);
  EXPECT_EQ(token.dct_number, 0x010203U);
  EXPECT_TRUE(token.has_gid);
  EXPECT_EQ(token.gid[0], std::byte{1});
  EXPECT_EQ(token.gid[15], std::byte{0x10});
}

TEST(Token, EveryDcSpellingGivesTheSameWindow) {
  std::string upper = kElbencho;
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  for (const std::string& text : {kElbencho, kElbenchoSuffixed, kElbenchoSuffixed + ";", upper,
                                  base64(kElbencho), base64(kElbenchoSuffixed)}) {
    const DcToken token = parse_dc(text);
    EXPECT_EQ(token.address, 0x1000U) << text;
    EXPECT_EQ(token.length, 0x100000U) << text;
  }
}

TEST(Token, SuffixNarrowsTheWindow) {
  const DcToken token = parse_dc(kElbencho + ":0000000000001800:0000000000000100");
  EXPECT_EQ(token.address, 0x1800U);
  EXPECT_EQ(token.length, 0x100U);
}

TEST(Token, OfiFields) {
  const auto token = parse_token(kOfi);
  ASSERT_TRUE(token);
  const auto& ofi = std::get<OfiToken>(*token);
  EXPECT_EQ(ofi.address, 0x7f0000001000U);
  EXPECT_EQ(ofi.length, 0x400000U);
  EXPECT_EQ(ofi.provider, "verbs;ofi_rxm");
  EXPECT_EQ(base::to_hex(ofi.endpoint), "0200abcd");
  EXPECT_EQ(ofi.key, 0x1fU);
}

TEST(Token, OfiFormatIsReadBack) {
  OfiToken token{
      .address = 0xffffffffffff0000, .length = 0xffff, .provider = "shm", .endpoint = {}, .key = ~0ULL};
  token.endpoint.assign(192, std::byte{0xa5});
  const auto again = parse_token(format_token(token));
  ASSERT_TRUE(again) << to_string(again.error());
  const auto& ofi = std::get<OfiToken>(*again);
  EXPECT_EQ(ofi.address, token.address);
  EXPECT_EQ(ofi.length, token.length);
  EXPECT_EQ(ofi.provider, token.provider);
  EXPECT_EQ(ofi.endpoint, token.endpoint);
  EXPECT_EQ(ofi.key, token.key);
}

TEST(Token, RcFormsAreRecognised) {
  const std::string shim = "rc:0123456789abcdef0123456789abcdef:1000:2000:3";
  for (const std::string& text : {kRc, kRc + ":1:ffff", shim}) {
    const auto token = parse_token(text);
    ASSERT_TRUE(token) << text << ": " << to_string(token.error());
    EXPECT_TRUE(std::holds_alternative<RcToken>(*token)) << text;
  }
  const auto token = parse_token(shim);
  EXPECT_EQ(std::get<RcToken>(*token).address, 0x1000U);
  EXPECT_EQ(std::get<RcToken>(*token).length, 0x2000U);
  EXPECT_EQ(std::get<RcToken>(*token).rkey, 3U);
}

TEST(Token, MalformedIsRefused) {
  const std::string endpoint_193(386, '0');
  const std::vector<std::string> broken = {
      "",
      "x",
      kElbencho.substr(1),  // 80 characters
      kElbencho + "0",      // 82
      kElbencho + ";",      // ';' belongs to the suffixed form only
      kElbenchoSuffixed + ";;",
      kElbenchoSuffixed + ":0000000000000000",
      "0x00000000001000:00100000:00000001:0000:000001:1:00000000000000000000ffffc0a80001",
      "+000000000001000:00100000:00000001:0000:000001:1:00000000000000000000ffffc0a80001",
      " 000000000001000:00100000:00000001:0000:000001:1:00000000000000000000ffffc0a80001",
      "000000000000100g:00100000:00000001:0000:000001:1:00000000000000000000ffffc0a80001",
      "0000000000001000:00000000:00000001:0000:000001:1:00000000000000000000ffffc0a80001",   // no bytes
      "ffffffffffffffff:00100000:00000001:0000:000001:1:00000000000000000000ffffc0a80001",   // overflows
      "0000000000001000:00100000:00000001:0000:000001:2:00000000000000000000ffffc0a80001",   // flag
      "0000000000001000:00100000:00000001:0000:0000001:1:0000000000000000000ffffc0a80001",   // widths moved
      "0000000000001000:00100000:00000001:0000:00000111:00000000000000000000ffffc0a80001x",  // six fields
      kElbencho + ":0000000000000fff:0000000000000100",  // suffix before the window
      kElbencho + ":0000000000001000:0000000000100001",  // and past it
      kElbencho + ":0000000000001000:0000000000000000",
      kElbencho + ":ffffffffffffffff:0000000000000002",
      std::string("0000000000001000:00100000:00000001:0000:000001:1:0000000000000000000\0ffffc0a80001", 81),
      "0000000000001000:00100000:00000001:0000:000001:1:0000000000000000000\xc3\xa9 fffc0a80001",
      "1000:10:ofi1:shm:aa",      // five fields
      "1000:10:ofi1:shm:aa:1:2",  // seven
      "1000:0:ofi1:shm:aa:1",     // no bytes
      "ffffffffffffffff:2:ofi1:shm:aa:1",
      "11111111111111111:1:ofi1:shm:aa:1",  // 17 digits
      ":1:ofi1:shm:aa:1",
      "1000:10:ofi1::aa:1",
      "1000:10:ofi1:Shm:aa:1",
      "1000:10:ofi1:sh m:aa:1",
      "1000:10:ofi1:" + std::string(33, 'a') + ":aa:1",
      "1000:10:ofi1:shm::1",
      "1000:10:ofi1:shm:a:1",
      "1000:10:ofi1:shm:ax:1",
      "1000:10:ofi1:shm:" + endpoint_193 + ":1",
      "1000:10:ofi1:shm:aa:",
      "1000:10:ofi1:shm:aa:0x1",
      "1000:10:ofi1:shm:aa:11111111111111111",
      kRc + ":1",
      kRc + ":1:0",
      kRc + ":1:2:3",
      std::string(88, 'g'),
      "rc:0123456789abcdef0123456789abcdef:1000:2000",
      "rc:0123456789abcdef:1000:2000:3",
      "rc:0123456789abcdef0123456789abcdef:1000:2000:100000000",
      base64(kElbencho.substr(1)),
      base64(kOfi),
      std::string(5000, 'a'),
  };
  for (const std::string& text : broken) {
    const auto token = parse_token(text);
    EXPECT_FALSE(token) << text;
    if (!token) EXPECT_EQ(token.error().code, base::Code::invalid_argument) << text;
  }
}

TEST(Token, ErrorsDoNotRepeatTheToken) {
  const auto token = parse_token("1000:0:ofi1:shm:aa:5ec7e7");
  ASSERT_FALSE(token);
  EXPECT_EQ(token.error().detail.find("5ec7e7"), std::string::npos);
}

TEST(Token, HashIsShortAndStable) {
  EXPECT_EQ(token_hash("abc"), "ba7816bf8f01cfea");  // FIPS 180-4, SHA-256 of "abc"
}

}  // namespace
}  // namespace reelway::rdma
