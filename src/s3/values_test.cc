#include <gmock/gmock.h>

#include <limits>

#include "s3/request.h"

namespace reelway::s3 {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Range, FormsThatS3Honours) {
  EXPECT_EQ(parse_range("bytes=0-0"), (Range{0, 0}));
  EXPECT_EQ(parse_range("bytes=5-"), (Range{5, std::nullopt}));
  EXPECT_EQ(parse_range("bytes=-5"), (Range{std::nullopt, 5}));
  EXPECT_EQ(parse_range("Bytes= 1 - 2 "), (Range{1, 2}));
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(parse_range("bytes=1-99999999999999999999999"), (Range{1, kMax}));
  EXPECT_EQ(parse_range("bytes=99999999999999999999999-"), (Range{kMax, std::nullopt}));
}

TEST(Range, AnythingElseMeansTheWholeObject) {
  for (const std::string_view text :
       {"", "bytes", "bytes=", "bytes=-", "bytes=2-1", "bytes=0-1,3-4", "bytes=a-b", "bytes=1-b",
        "bytes=+1-2", "items=0-1", "bytes=1--2", "bytes=0x1-2"}) {
    EXPECT_FALSE(parse_range(text)) << text;
  }
}

TEST(Range, CopyRangeNeedsBothEnds) {
  EXPECT_EQ(parse_copy_range("bytes=1-5").value(), (Range{1, 5}));
  for (const std::string_view text : {"bytes=1-", "bytes=-5", "1-5", "bytes=5-1", ""}) {
    const auto range = parse_copy_range(text);
    ASSERT_FALSE(range) << text;
    EXPECT_EQ(range.error().code, ErrorCode::invalid_argument);
  }
}

TEST(CopySourceText, Forms) {
  EXPECT_EQ(parse_copy_source("bucket/key").value(), (CopySource{"bucket", "key", ""}));
  EXPECT_EQ(parse_copy_source("/bucket/a/b//c").value(), (CopySource{"bucket", "a/b//c", ""}));
  EXPECT_EQ(parse_copy_source("bucket%2Fa%20b").value(), (CopySource{"bucket", "a b", ""}));
  EXPECT_EQ(parse_copy_source("bucket/a+b?versionId=x%2By").value(), (CopySource{"bucket", "a+b", "x+y"}));
  EXPECT_EQ(parse_copy_source("bucket/what?").value(), (CopySource{"bucket", "what?", ""}));
  EXPECT_EQ(parse_copy_source("bucket/a%3FversionId=1").value(), (CopySource{"bucket", "a?versionId=1", ""}));
  for (const std::string_view text :
       {"", "/", "bucket", "/bucket", "bucket/", "BUCKET/key", "bucket/%zz", "bucket/%00", "bucket/%FF",
        "bucket/k?versionId=%", "arn:aws:s3:us-east-1:1:accesspoint/a/object/k"}) {
    const auto source = parse_copy_source(text);
    ASSERT_FALSE(source) << text;
    EXPECT_EQ(source.error().fields.front().second, "x-amz-copy-source");
  }
}

TEST(EtagList, QuotedBareWeakAndStar) {
  EXPECT_THAT(parse_etag_list("\"a,b\", c ,W/\"d\",*"), ElementsAre("a,b", "c", "d", "*"));
  EXPECT_THAT(parse_etag_list(" , ,"), IsEmpty());
  EXPECT_THAT(parse_etag_list("\"open"), ElementsAre("open"));
}

TEST(HttpDate, ThreeForms) {
  const base::TimePoint time{std::chrono::seconds{784111777}};
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), time);
  EXPECT_EQ(parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT"), time);
  EXPECT_EQ(parse_http_date("Sun Nov  6 08:49:37 1994"), time);
  for (const std::string_view text :
       {"", "yesterday", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Xxx 1994 08:49:37 GMT", "Sun, 06 Nov 9999 08:49:37 GMT",
        "Sun, -6 Nov 1994 08:49:37"}) {
    EXPECT_FALSE(parse_http_date(text)) << text;
  }
}

TEST(Iso8601, WithAndWithoutFraction) {
  const base::TimePoint time{std::chrono::seconds{784111777}};
  EXPECT_EQ(parse_iso8601("1994-11-06T08:49:37Z"), time);
  EXPECT_EQ(parse_iso8601("1994-11-06T08:49:37.250Z"), time + std::chrono::milliseconds{250});
  for (const std::string_view text :
       {"", "1994-11-06", "1994-11-06T08:49:37", "1994-13-06T08:49:37Z", "1994-11-06T08:49:37.Z",
        "1994-11-06T08:49:37x1Z", "1994-11-06T08:49:37.0000000001Z"}) {
    EXPECT_FALSE(parse_iso8601(text)) << text;
  }
}

TEST(ContinuationToken, ComesBackAndNeedsNoEncoding) {
  for (const std::string& text : {std::string("a"), std::string("\0\xFF+/= %&?", 10)}) {
    const std::string token = encode_continuation_token(text);
    EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_EQ(decode_continuation_token(token).value(), text);
  }
  for (const std::string_view bad : {"", "a", "zz"}) EXPECT_FALSE(decode_continuation_token(bad));
}

}  // namespace
}  // namespace reelway::s3
