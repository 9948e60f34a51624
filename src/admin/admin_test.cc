#include "admin/admin.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "admin/members.h"
#include "admin/page.h"
#include "admin/views.h"
#include "async/spawn.h"
#include "base/checksum.h"
#include "testing/fake_exchange.h"

namespace reelway::admin {
namespace {

namespace json = boost::json;

TEST(Members, ReadsWhatIsThere) {
  const json::object object =
      json::parse(
          R"({"text": "a", "raw": {"base64": "/w=="}, "list": ["x", "y"], "flag": true, "number": 7})")
          .as_object();
  Members members(object);
  EXPECT_EQ(members.text("text", true), "a");
  EXPECT_EQ(members.text("raw", true), "\xff");
  EXPECT_EQ(members.texts("list"), (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(members.flag("flag"));
  EXPECT_EQ(members.number<std::uint32_t>("number", 1), 7u);
  EXPECT_EQ(members.number<std::uint32_t>("absent", 9), 9u);
  EXPECT_TRUE(members.finish().has_value());
}

TEST(Members, NamesWhatIsWrong) {
  const auto complaint = [](const char* text, auto read) {
    const json::object object = json::parse(text).as_object();
    Members members(object);
    read(members);
    const auto finished = members.finish();
    return finished ? std::string("none") : finished.error().detail;
  };
  EXPECT_EQ(complaint("{}", [](Members& members) { members.text("bucket", true); }), "bucket: is missing");
  EXPECT_EQ(complaint(R"({"bucket": 1})", [](Members& members) { members.text("bucket", true); }),
            "bucket: must be text");
  EXPECT_EQ(complaint(R"({"days": -1})", [](Members& members) { members.number<std::uint32_t>("days", 1); }),
            "days: must be a whole number up to 4294967295");
  EXPECT_EQ(complaint(R"({"days": 4294967296})",
                      [](Members& members) { members.number<std::uint32_t>("days", 1); }),
            "days: must be a whole number up to 4294967295");
  EXPECT_EQ(complaint(R"({"keys": ["a", 1]})", [](Members& members) { members.texts("keys"); }),
            "keys: must be a list of texts");
  EXPECT_EQ(complaint(R"({"flag": "yes"})", [](Members& members) { members.flag("flag"); }),
            "flag: must be true or false");
  EXPECT_EQ(complaint(R"({"typo": 1})", [](Members&) {}), "typo: is not known here");
}

TEST(Printable, IsAlwaysUtf8) {
  EXPECT_EQ(printable("ü"), "ü");
  EXPECT_EQ(printable("a\xff"), "a\xEF\xBF\xBD");
}

TEST(Policy, ComesBackAsItWasSet) {
  const json::object object =
      json::parse(
          R"({"bucket": "b", "prefix": "p/", "pools": ["a", "b"], "batch_count": 5, "verify": "none"})")
          .as_object();
  const auto policy = parse_policy(object);
  ASSERT_TRUE(policy.has_value());
  const json::object shown = to_json(*policy);
  for (const auto& member : object)
    EXPECT_EQ(shown.at(member.key()), member.value()) << std::string_view(member.key());
  EXPECT_FALSE(parse_policy(json::parse(R"({"bucket": "b", "pools": []})").as_object()).has_value());
}

TEST(Page, IsWholeAndLoadsNothingFromElsewhere) {
  const std::string_view page = status_page();
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_NE(page.find("</html>"), std::string_view::npos);
  for (const auto* word : {"src=\"http", "href=\"http", "@import", "innerHTML"})
    EXPECT_EQ(page.find(word), std::string_view::npos) << word;
}

class AdminTest : public ::testing::Test {
 protected:
  testing::FakeExchange send(std::string method, std::string target, std::string body, const char* secret) {
    base::HttpRequestHead head{.method = std::move(method),
                               .target = std::move(target),
                               .fields = {},
                               .content_length = body.size()};
    head.fields.set("Host", "localhost");
    if (secret != nullptr) {
      const s3::Credentials credentials{
          .access_key = "AKIAROOT", .secret_key = secret, .region = "us-east-1", .service = "s3"};
      s3::SigningKeyCache keys;
      s3::sign(head, credentials, keys,
               base::to_hex(base::digest_of(base::ChecksumKind::sha256, base::as_bytes(body))), clock_.now());
    }
    testing::FakeExchange exchange(std::move(head), std::move(body));
    EXPECT_TRUE(async::run_until_done(admin_.handle(exchange)).has_value());
    return exchange;
  }

  base::ManualClock clock_;
  iam::Accounts accounts_ = *iam::Accounts::with_root("AKIAROOT", "not-a-real-secret");
  Admin admin_{AdminParts{.accounts = accounts_,
                          .archive = nullptr,
                          .clock = clock_,
                          .log = base::null_log(),
                          .metrics = [] { return std::string("m 1\n"); },
                          .disk = {},
                          .archive_missing = [] { return std::string("none here"); }},
               AdminOptions{}};
};

TEST_F(AdminTest, OpenPages) {
  EXPECT_EQ(send("GET", "/", "", nullptr).sent_body, status_page());
  EXPECT_EQ(send("GET", "/health", "", nullptr).sent_body, "ok\n");
  EXPECT_EQ(send("GET", "/metrics", "", nullptr).sent_body, "m 1\n");
  const auto status = json::parse(send("GET", "/status.json", "", nullptr).sent_body).as_object();
  EXPECT_TRUE(status.at("library").is_null());
  EXPECT_EQ(status.at("archive_missing"), "none here");
  EXPECT_EQ(send("GET", "/other", "", nullptr).status_sent(), 404);
  EXPECT_TRUE(send("HEAD", "/", "", nullptr).sent_body.empty());
}

TEST_F(AdminTest, CommandsNeedRootsSignatureBeforeTheirBodyIsRead) {
  for (const char* secret : {static_cast<const char*>(nullptr), "another-secret"}) {
    const auto refused = send("POST", "/v1/archive/status", "{}", secret);
    EXPECT_EQ(refused.status_sent(), 403);
    EXPECT_EQ(refused.reads, 0u);
  }
  EXPECT_EQ(send("POST", "/v1/archive/status", "{}", "not-a-real-secret").status_sent(), 501)
      << "signed, but there is no archive";
  EXPECT_EQ(send("POST", "/v1/archive/status", "{", "not-a-real-secret").status_sent(), 400);
}

}  // namespace
}  // namespace reelway::admin
