#include "app/parse.h"

#include <gtest/gtest.h>

#include "app/archive_stack.h"
#include "app/print.h"

namespace reelway::app {
namespace {

TEST(ParseAddress, Forms) {
  EXPECT_EQ(parse_address("127.0.0.1:9000")->port, 9000);
  EXPECT_EQ(parse_address("[::1]:80")->host, "::1");
  EXPECT_EQ(parse_address(":80")->host, "0.0.0.0");
  for (const auto* bad : {"", "host", "host:", "host:x", "host:65536"})
    EXPECT_FALSE(parse_address(bad).has_value()) << bad;
}

TEST(ParseEndpoint, Forms) {
  EXPECT_EQ(parse_endpoint("http://h:1/")->address.port, 1);
  EXPECT_EQ(parse_endpoint("https://h")->address.port, 443);
  EXPECT_TRUE(parse_endpoint("https://h")->tls);
  EXPECT_EQ(parse_endpoint("h:7")->address.host, "h");
}

TEST(ParseS3Url, BucketAndKey) {
  EXPECT_EQ(parse_s3_url("s3://b/k/l")->key, "k/l");
  EXPECT_EQ(parse_s3_url("s3://b")->key, "");
  for (const auto* bad : {"b/k", "s3://", "s3:///k", "http://b/k"})
    EXPECT_FALSE(parse_s3_url(bad).has_value()) << bad;
}

TEST(AssignPools, HalvesOrAsNamed) {
  const auto halves = assign_pools({}, {"A", "B", "C"});
  EXPECT_EQ(halves->at("a"), (std::vector<std::string>{"A", "C"}));
  EXPECT_EQ(halves->at("b"), std::vector<std::string>{"B"});
  const auto named = assign_pools({"x=A+B", "y=C"}, {"A", "B", "C"});
  EXPECT_EQ(named->at("x"), (std::vector<std::string>{"A", "B"}));
  EXPECT_EQ(named->at("y"), std::vector<std::string>{"C"});
  EXPECT_FALSE(assign_pools({"no barcode"}, {}).has_value());
}

TEST(ForPeople, LinesAndTables) {
  const boost::json::object answer{
      {"count", 2},
      {"rows",
       {{{"a", "x"}, {"b", 1}, {"c", {"y", "z"}}, {"d", boost::json::array{}}},
        {{"a", "long\n"}, {"b", 22}, {"c", boost::json::array{}}, {"d", {{{"e", 1}}}}}}},
      {"none", boost::json::array{}}};
  EXPECT_EQ(for_people(answer),
            "count: 2\nrows:\n  a      b   c\n  x      1   y,z\n  long?  22  -\nnone: none\n");
}

}  // namespace
}  // namespace reelway::app
