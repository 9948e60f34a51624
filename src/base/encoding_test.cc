#include "base/encoding.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace reelway::base {
namespace {

TEST(Hex, GoesBothWaysAndRefusesTheRest) {
  EXPECT_EQ(to_hex(from_hex("00fFaB").value()), "00ffab");
  for (const char* bad : {"0", "0g", "0x", " 0", "-1"}) EXPECT_FALSE(from_hex(bad).has_value()) << bad;
}

TEST(Base64, HasTheVectorsOfRfc4648) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, coded] : vectors) {
    EXPECT_EQ(to_base64(as_bytes(plain)), coded);
    EXPECT_EQ(as_text(from_base64(coded).value()), plain);
  }
}

TEST(Base64, RefusesWhatIsNotExactlyOfTheForm) {
  for (const char* bad : {"Zg", "Zg=", "Zg===", "Z===", "====", "Zh==", "Zm9=", "Zm 9", "Zm9v\n",
                          "Zg==Zg==", "Z=9v", "-_-_", "=Zm9"}) {
    EXPECT_FALSE(from_base64(bad).has_value()) << bad;
  }
}

TEST(Base64, RoundTripsRandomBytes) {
  constexpr std::uint64_t kSeed = 3;
  SCOPED_TRACE(kSeed);
  SeededRng rng(kSeed);
  for (std::size_t size = 0; size < 300; ++size) {
    Bytes bytes(size);
    rng.fill(bytes);
    EXPECT_EQ(from_base64(to_base64(bytes)).value(), bytes);
    EXPECT_EQ(from_hex(to_hex(bytes)).value(), bytes);
    const std::string text(as_text(bytes));
    EXPECT_EQ(percent_decode(percent_encode(text, false), true).value(), text);
    EXPECT_EQ(percent_decode(percent_encode(text, true), false).value(), text);
  }
}

TEST(Percent, EncodesAllButUnreserved) {
  EXPECT_EQ(percent_encode("aZ09-._~/ +\xc3\xa4%", false), "aZ09-._~%2F%20%2B%C3%A4%25");
  EXPECT_EQ(percent_encode("a/b", true), "a/b");
}

TEST(Percent, DecodesBothCasesAndRefusesBrokenEscapes) {
  EXPECT_EQ(percent_decode("a%2fb%2Fc+d", false).value(), "a/b/c+d");
  EXPECT_EQ(percent_decode("c+d", true).value(), "c d");
  for (const char* bad : {"%", "%2", "%2g", "%g2", "a%"})
    EXPECT_FALSE(percent_decode(bad, false).has_value()) << bad;
}

TEST(Utf8, FollowsRfc3629) {
  for (const char* good : {"", "abc", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_valid_utf8(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xc3", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf0\x80\x80\xaf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe2\x82", "a\xe2\x28\xa1"}) {
    EXPECT_FALSE(is_valid_utf8(bad)) << bad;
  }
}

TEST(Numbers, AreDigitsOnlyAndFit) {
  EXPECT_EQ(parse_decimal("18446744073709551615").value(), UINT64_MAX);
  EXPECT_EQ(parse_decimal("0007").value(), 7U);
  for (const char* bad :
       {"", "-1", "+1", " 1", "1 ", "1e3", "18446744073709551616", "99999999999999999999"}) {
    EXPECT_FALSE(parse_decimal(bad).has_value()) << bad;
  }
  EXPECT_EQ(parse_hex_u64("ffffffffffffffff").value(), UINT64_MAX);
  EXPECT_EQ(parse_hex_u64("A").value(), 10U);
  for (const char* bad : {"", "0x1", "g", "10000000000000000", "-1"})
    EXPECT_FALSE(parse_hex_u64(bad).has_value()) << bad;
}

}  // namespace
}  // namespace reelway::base
