#include "s3/sigv4.h"

#include <gmock/gmock.h>

#include "s3/canonical.h"
#include "s3/request.h"

namespace reelway::s3 {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

// The examples of "Authenticating Requests (AWS Signature Version 4)" in the Amazon S3 API Reference.
const Credentials kExample{.access_key = "AKIAIOSFODNN7EXAMPLE",
                           .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
const base::TimePoint kExampleTime{std::chrono::sys_days{std::chrono::year{2013} / 5 / 24}};

base::HttpRequestHead request(std::string method, std::string target,
                              std::vector<std::pair<std::string, std::string>> fields) {
  base::HttpRequestHead head;
  head.method = std::move(method);
  head.target = std::move(target);
  for (auto& [name, value] : fields) head.fields.add(name, value);
  return head;
}

Outcome<Verified> verify_with(const base::HttpRequestHead& head, const Credentials& credentials,
                              base::TimePoint now, std::string_view region = "us-east-1") {
  TRY(const auto authorization, parse_authorization(head));
  if (!authorization) return fault_saying(ErrorCode::access_denied, "anonymous");
  const SigningKey key = derive_signing_key(credentials.secret_key, authorization->date,
                                            authorization->region, authorization->service);
  return verify(*authorization, head, key, region, now);
}

ErrorCode code_of(const Outcome<Verified>& outcome) {
  return outcome ? ErrorCode::not_modified : outcome.error().code;
}

struct HeaderExample {
  std::string name;
  base::HttpRequestHead head;
  std::string signed_headers;
  std::string signature;
};

std::vector<HeaderExample> header_examples() {
  const std::string host = "examplebucket.s3.amazonaws.com";
  const std::string empty(kEmptySha256);
  const std::string time = "20130524T000000Z";
  const std::string plain = "host;x-amz-content-sha256;x-amz-date";
  return {
      {"GetWithRange",
       request(
           "GET", "/test.txt",
           {{"Host", host}, {"Range", "bytes=0-9"}, {"x-amz-content-sha256", empty}, {"x-amz-date", time}}),
       "host;range;x-amz-content-sha256;x-amz-date",
       "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
      {"Put",
       request(
           "PUT", "/test$file.text",
           {{"Host", host},
            {"Date", "Fri, 24 May 2013 00:00:00 GMT"},
            {"x-amz-date", time},
            {"x-amz-storage-class", "REDUCED_REDUNDANCY"},
            {"x-amz-content-sha256", "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"}}),
       "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
       "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
      {"GetLifecycle",
       request("GET", "/?lifecycle", {{"Host", host}, {"x-amz-date", time}, {"x-amz-content-sha256", empty}}),
       plain, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
      {"List",
       request("GET", "/?max-keys=2&prefix=J",
               {{"Host", host}, {"x-amz-date", time}, {"x-amz-content-sha256", empty}}),
       plain, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
      {"Chunked",
       request("PUT", "/examplebucket/chunkObject.txt",
               {{"Host", "s3.amazonaws.com"},
                {"x-amz-date", time},
                {"x-amz-storage-class", "REDUCED_REDUNDANCY"},
                {"x-amz-content-sha256", std::string(kStreamingSigned)},
                {"Content-Encoding", "aws-chunked"},
                {"x-amz-decoded-content-length", "66560"},
                {"Content-Length", "66824"}}),
       "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-"
       "amz-storage-class",
       "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"},
  };
}

TEST(SigV4, VerifiesTheHeaderExamplesOfAws) {
  for (HeaderExample& example : header_examples()) {
    SCOPED_TRACE(example.name);
    example.head.fields.add(
        "Authorization",
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        "SignedHeaders=" +
            example.signed_headers + ",Signature=" + example.signature);
    const auto verified = verify_with(example.head, kExample, kExampleTime);
    ASSERT_TRUE(verified) << verified.error().name() << verified.error().message;
    EXPECT_EQ(verified->signing.seed_signature, example.signature);
    EXPECT_EQ(verified->signing.scope, "20130524/us-east-1/s3/aws4_request");
  }
}

const std::string kPresigned =
    "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%"
    "2Fs3%2Faws4_request"
    "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
    "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";

TEST(SigV4, VerifiesThePresignedExampleOfAws) {
  const auto head = request("GET", kPresigned, {{"Host", "examplebucket.s3.amazonaws.com"}});
  const auto verified = verify_with(head, kExample, kExampleTime + std::chrono::hours{24});
  ASSERT_TRUE(verified) << verified.error().name();
  EXPECT_EQ(verified->payload.form, PayloadForm::unsigned_payload);
}

TEST(SigV4, PresignMakesTheExampleOfAws) {
  SigningKeyCache keys;
  const auto head = request("GET", "/test.txt", {{"Host", "examplebucket.s3.amazonaws.com"}});
  EXPECT_EQ(presign(head, kExample, keys, 86400, kExampleTime), kPresigned);
}

TEST(SigV4, PresignedUrlIsGoodForItsTimeOnly) {
  const auto head = request("GET", kPresigned, {{"Host", "examplebucket.s3.amazonaws.com"}});
  const auto late =
      verify_with(head, kExample, kExampleTime + std::chrono::hours{24} + std::chrono::seconds{1});
  ASSERT_EQ(code_of(late), ErrorCode::access_denied);
  EXPECT_EQ(late.error().message, "Request has expired");
  EXPECT_THAT(late.error().fields, Contains(Pair("Expires", "2013-05-25T00:00:00.000Z")));
  EXPECT_THAT(late.error().fields, Contains(Pair("X-Amz-Expires", "86400")));
  EXPECT_EQ(code_of(verify_with(head, kExample, kExampleTime - std::chrono::minutes{16})),
            ErrorCode::access_denied);
  EXPECT_TRUE(verify_with(head, kExample, kExampleTime - std::chrono::minutes{14}));
}

base::HttpRequestHead signed_get(base::TimePoint now,
                                 std::vector<std::pair<std::string, std::string>> extra = {}) {
  SigningKeyCache keys;
  auto head = request("GET", "/bucket/a%20key?versionId=1%2B2&x=", {{"Host", "localhost:9000"}});
  for (auto& [name, value] : extra) head.fields.add(name, value);
  sign(head, kExample, keys, kUnsignedPayload, now);
  return head;
}

TEST(SigV4, WhatSignMakesIsVerified) {
  EXPECT_TRUE(
      verify_with(signed_get(kExampleTime, {{"x-amz-meta-a", "two   spaces "}, {"x-amz-meta-a", "twice"}}),
                  kExample, kExampleTime));
}

TEST(SigV4, AnyOtherSpellingOfTheSameTargetIsVerified) {
  auto head = signed_get(kExampleTime);
  head.target = "/bucket/%61%20key?x&versionId=1%2b2";
  EXPECT_TRUE(verify_with(head, kExample, kExampleTime));
}

TEST(SigV4, EveryChangeOfASignedPartIsNoticed) {
  const std::vector<std::function<void(base::HttpRequestHead&)>> changes{
      [](auto& head) { head.method = "PUT"; },
      [](auto& head) { head.target = "/bucket/a%20key2?versionId=1%2B2&x="; },
      [](auto& head) { head.target = "/bucket//a%20key?versionId=1%2B2&x="; },
      [](auto& head) { head.target = "/bucket/a%20key?versionId=1%2B2"; },
      [](auto& head) { head.fields.set("Host", "localhost:9001"); },
      [](auto& head) { head.fields.set("x-amz-content-sha256", std::string(kEmptySha256)); },
      [](auto& head) { head.fields.set("x-amz-meta-a", "2"); },
      [](auto& head) { head.fields.add("x-amz-meta-a", "2"); },
      [](auto& head) { head.fields.erase("x-amz-meta-a"); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    auto head = signed_get(kExampleTime, {{"x-amz-meta-a", "1"}});
    changes[i](head);
    EXPECT_EQ(code_of(verify_with(head, kExample, kExampleTime)), ErrorCode::signature_does_not_match) << i;
  }
}

TEST(SigV4, MismatchExplainsItselfButNotTheToken) {
  auto head = signed_get(kExampleTime, {{"x-amz-rdma-token", "0123456789abcdef:secret"}});
  head.method = "PUT";
  const auto outcome = verify_with(head, kExample, kExampleTime);
  ASSERT_EQ(code_of(outcome), ErrorCode::signature_does_not_match);
  EXPECT_THAT(outcome.error().fields, Contains(Pair("AWSAccessKeyId", "AKIAIOSFODNN7EXAMPLE")));
  EXPECT_THAT(outcome.error().fields,
              Contains(Pair("CanonicalRequest", HasSubstr("PUT\n/bucket/a%20key\nversionId=1%2B2&x=\n"))));
  EXPECT_THAT(outcome.error().fields,
              Contains(Pair("StringToSign", HasSubstr("20130524/us-east-1/s3/aws4_request"))));
  for (const auto& [name, value] : outcome.error().fields)
    EXPECT_THAT(value, Not(HasSubstr("secret"))) << name;
}

TEST(SigV4, UnsignedAmzHeadersAndTokensAreRefused) {
  for (const std::string name :
       {"x-amz-meta-added", "X-Amz-Rdma-Token", "X-CuObj-RDMA-Descr", "x-rdma-info", "x-scal-rdma"}) {
    auto head = signed_get(kExampleTime);
    head.fields.add(name, "1");
    const auto outcome = verify_with(head, kExample, kExampleTime);
    ASSERT_EQ(code_of(outcome), ErrorCode::access_denied) << name;
    EXPECT_EQ(outcome.error().status(), 403);
    EXPECT_EQ(outcome.error().fields.front().first, "HeadersNotSigned");
  }
}

TEST(SigV4, UnsignedHostIsRefused) {
  auto head = signed_get(kExampleTime);
  std::string text(*head.fields.get("Authorization"));
  text.replace(text.find("host;"), 5, "");
  head.fields.set("Authorization", text);
  const auto outcome = verify_with(head, kExample, kExampleTime);
  ASSERT_EQ(code_of(outcome), ErrorCode::access_denied);
  EXPECT_THAT(outcome.error().fields, Contains(Pair("HeadersNotSigned", "host")));
}

TEST(SigV4, WrongRegionNamesTheRightOne) {
  const auto outcome = verify_with(signed_get(kExampleTime), kExample, kExampleTime, "eu-west-1");
  ASSERT_EQ(code_of(outcome), ErrorCode::authorization_header_malformed);
  EXPECT_EQ(outcome.error().message,
            "The authorization header is malformed; the region 'us-east-1' is wrong; expecting 'eu-west-1'");
  EXPECT_THAT(outcome.error().fields, Contains(Pair("Region", "eu-west-1")));
  const auto presigned = request("GET", kPresigned, {{"Host", "examplebucket.s3.amazonaws.com"}});
  EXPECT_EQ(code_of(verify_with(presigned, kExample, kExampleTime, "eu-west-1")),
            ErrorCode::authorization_query_parameters_error);
}

TEST(SigV4, ClockMayDifferByFifteenMinutes) {
  const auto head = signed_get(kExampleTime);
  for (const auto skew : {std::chrono::seconds{900}, std::chrono::seconds{-900}}) {
    EXPECT_TRUE(verify_with(head, kExample, kExampleTime + skew));
  }
  for (const auto skew : {std::chrono::seconds{901}, std::chrono::seconds{-901}}) {
    const auto outcome = verify_with(head, kExample, kExampleTime + skew);
    ASSERT_EQ(code_of(outcome), ErrorCode::request_time_too_skewed);
    EXPECT_THAT(outcome.error().fields, Contains(Pair("MaxAllowedSkewMilliseconds", "900000")));
  }
}

TEST(SigV4, WrongSecretDoesNotMatch) {
  Credentials other = kExample;
  other.secret_key.back() = 'z';
  EXPECT_EQ(code_of(verify_with(signed_get(kExampleTime), other, kExampleTime)),
            ErrorCode::signature_does_not_match);
}

TEST(SigV4, ScopeMustBeOfTheDayAndTheService) {
  Credentials other = kExample;
  other.service = "sts";
  SigningKeyCache keys;
  auto head = request("GET", "/", {{"Host", "h"}});
  sign(head, other, keys, kUnsignedPayload, kExampleTime);
  EXPECT_EQ(code_of(verify_with(head, other, kExampleTime)), ErrorCode::authorization_header_malformed);

  auto moved = signed_get(kExampleTime);
  moved.fields.set("x-amz-date", "20130525T000000Z");
  EXPECT_EQ(code_of(verify_with(moved, kExample, kExampleTime)), ErrorCode::authorization_header_malformed);
}

struct BadHeader {
  std::string authorization;
  ErrorCode code;
};

TEST(SigV4, MalformedAuthorizationHeaders) {
  const std::string credential = "Credential=AK/20130524/us-east-1/s3/aws4_request";
  const std::vector<BadHeader> cases{
      {"AWS AK:sig", ErrorCode::invalid_request},
      {"Bearer x", ErrorCode::invalid_request},
      {"AWS4-HMAC-SHA256", ErrorCode::invalid_request},
      {"AWS4-HMAC-SHA256x " + credential, ErrorCode::invalid_request},
      {"AWS4-ECDSA-P256-SHA256 " + credential, ErrorCode::not_implemented},
      {"AWS4-HMAC-SHA256 " + credential, ErrorCode::authorization_header_malformed},
      {"AWS4-HMAC-SHA256 " + credential + ",SignedHeaders=host", ErrorCode::authorization_header_malformed},
      {"AWS4-HMAC-SHA256 " + credential + ",SignedHeaders=,Signature=00",
       ErrorCode::authorization_header_malformed},
      {"AWS4-HMAC-SHA256 " + credential + ",SignedHeaders=host;;date,Signature=00",
       ErrorCode::authorization_header_malformed},
      {"AWS4-HMAC-SHA256 " + credential + ",SignedHeaders=host;host,Signature=00",
       ErrorCode::authorization_header_malformed},
      {"AWS4-HMAC-SHA256 " + credential + ",SignedHeaders=host,Signature=00,Signature=11",
       ErrorCode::authorization_header_malformed},
      {"AWS4-HMAC-SHA256 " + credential + ",SignedHeaders=host,Signature=00,Else=1",
       ErrorCode::authorization_header_malformed},
      {"AWS4-HMAC-SHA256 Credential=AK/2013/us-east-1/s3/aws4_request,SignedHeaders=host,Signature=00",
       ErrorCode::authorization_header_malformed},
      {"AWS4-HMAC-SHA256 Credential=AK/20130524/us-east-1/s3/aws3_request,SignedHeaders=host,Signature=00",
       ErrorCode::authorization_header_malformed},
      {"AWS4-HMAC-SHA256 Credential=/20130524/us-east-1/s3/aws4_request,SignedHeaders=host,Signature=00",
       ErrorCode::authorization_header_malformed},
      {"AWS4-HMAC-SHA256 nonsense", ErrorCode::authorization_header_malformed},
  };
  for (const BadHeader& bad : cases) {
    const auto head = request("GET", "/",
                              {{"Host", "h"},
                               {"x-amz-date", "20130524T000000Z"},
                               {"x-amz-content-sha256", std::string(kUnsignedPayload)},
                               {"Authorization", bad.authorization}});
    const auto parsed = parse_authorization(head);
    ASSERT_FALSE(parsed) << bad.authorization;
    EXPECT_EQ(parsed.error().code, bad.code) << bad.authorization;
  }
}

TEST(SigV4, DateAndHashMustBeThere) {
  auto head = signed_get(kExampleTime);
  head.fields.erase("x-amz-date");
  auto parsed = parse_authorization(head);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::access_denied);

  head.fields.set("Date", "Fri, 24 May 2013 00:00:00 GMT");
  parsed = parse_authorization(head);
  ASSERT_TRUE(parsed);
  EXPECT_EQ((*parsed)->timestamp, "20130524T000000Z");

  head.fields.erase("x-amz-content-sha256");
  parsed = parse_authorization(head);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::invalid_request);
}

TEST(SigV4, PresignedParametersAreChecked) {
  const auto with = [](std::string_view name, std::string_view value) {
    std::string target = kPresigned;
    const auto at = target.find(std::string(name) + "=") + name.size() + 1;
    target.replace(at, std::min(target.find('&', at), target.size()) - at, value);
    return parse_authorization(request("GET", target, {{"Host", "h"}}));
  };
  ASSERT_TRUE(with("X-Amz-Expires", "604800"));
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"X-Amz-Expires", "0"},
                                                        {"X-Amz-Expires", "604801"},
                                                        {"X-Amz-Expires", "-1"},
                                                        {"X-Amz-Expires", "x"},
                                                        {"X-Amz-Date", "2013"},
                                                        {"X-Amz-Algorithm", "AWS4"},
                                                        {"X-Amz-Credential", "a%2Fb"},
                                                        {"X-Amz-SignedHeaders", ""}}) {
    const auto parsed = with(name, value);
    ASSERT_FALSE(parsed) << name << value;
    EXPECT_EQ(parsed.error().code, ErrorCode::authorization_query_parameters_error);
  }
  const auto partial = parse_authorization(request("GET", "/?X-Amz-Signature=1", {{"Host", "h"}}));
  ASSERT_FALSE(partial);
  EXPECT_EQ(partial.error().code, ErrorCode::authorization_query_parameters_error);
}

TEST(SigV4, OneWayToSignAtATime) {
  auto both = request("GET", kPresigned, {{"Host", "h"}, {"Authorization", "AWS4-HMAC-SHA256 x"}});
  EXPECT_EQ(parse_authorization(both).error().code, ErrorCode::invalid_request);
  auto v2 = request("GET", "/b/k?AWSAccessKeyId=AK&Signature=x&Expires=1", {{"Host", "h"}});
  EXPECT_EQ(parse_authorization(v2).error().code, ErrorCode::invalid_request);
  auto token = signed_get(kExampleTime, {{"x-amz-security-token", "t"}});
  EXPECT_EQ(parse_authorization(token).error().code, ErrorCode::invalid_token);
}

TEST(SigV4, AnonymousRequestsMaySendPlainBodiesOnly) {
  const auto plain = parse_authorization(request("GET", "/b/k", {{"Host", "h"}}));
  ASSERT_TRUE(plain);
  EXPECT_FALSE(*plain);
  const auto chunked = parse_authorization(
      request("PUT", "/b/k", {{"Host", "h"}, {"x-amz-content-sha256", std::string(kStreamingSigned)}}));
  ASSERT_FALSE(chunked);
  EXPECT_EQ(chunked.error().code, ErrorCode::invalid_request);
}

TEST(SigV4, PayloadForms) {
  const auto form = [](std::string_view text) {
    return parse_payload(request("PUT", "/", {{"x-amz-content-sha256", std::string(text)}}));
  };
  EXPECT_EQ(form(kUnsignedPayload)->form, PayloadForm::unsigned_payload);
  EXPECT_EQ(form(kStreamingSigned)->form, PayloadForm::streaming_signed);
  EXPECT_EQ(form(kStreamingSignedTrailer)->form, PayloadForm::streaming_signed_trailer);
  EXPECT_EQ(form(kStreamingUnsignedTrailer)->form, PayloadForm::streaming_unsigned_trailer);
  ASSERT_EQ(form(kEmptySha256)->form, PayloadForm::signed_hash);
  EXPECT_EQ(payload_text(*form(kEmptySha256)), kEmptySha256);
  EXPECT_EQ(form("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD").error().code, ErrorCode::not_implemented);
  EXPECT_EQ(form("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER").error().code,
            ErrorCode::not_implemented);
  EXPECT_EQ(form("STREAMING-ELSE").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(form(kEmptySha256.substr(2)).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(form("").error().code, ErrorCode::invalid_argument);
}

TEST(SigningKeyCache, KeepsKeysNoticesSecretsAndForgetsTheOldest) {
  SigningKeyCache cache(2);
  const auto fresh = [](std::string_view secret, std::string_view day) {
    return derive_signing_key(secret, day, "r", "s3");
  };
  EXPECT_EQ(cache.get("a", "one", "20130524", "r"), fresh("one", "20130524"));
  EXPECT_EQ(cache.get("a", "one", "20130524", "r"), fresh("one", "20130524"));
  EXPECT_EQ(cache.get("a", "two", "20130524", "r"), fresh("two", "20130524"));
  for (const std::string day : {"20130525", "20130526", "20130527", "20130524"})
    EXPECT_EQ(cache.get("a", "two", day, "r"), fresh("two", day));
}

}  // namespace
}  // namespace reelway::s3
