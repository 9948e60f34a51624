#include "gateway/gateway.h"

#include <gtest/gtest.h>

#include "gateway/access_log.h"
#include "testing/gateway_rig.h"

namespace reelway::gateway {
namespace {

using GatewayTest = testing::GatewayRig;

TEST_F(GatewayTest, PutThenGet) {
  const auto put = send("PUT", "/bucket/key", "hello", fields({{"x-amz-meta-a", "b"}}));
  EXPECT_EQ(put.status_sent(), 200);
  EXPECT_EQ(put.sent_head.fields.get("ETag"), "\"5d41402abc4b2a76b9719d911017c592\"");
  const auto get = send("GET", "/bucket/key");
  EXPECT_EQ(get.sent_body, "hello");
  EXPECT_EQ(get.sent_head.fields.get("x-amz-meta-a"), "b");
  EXPECT_EQ(get.sent_head.content_length, 5u);
}

TEST_F(GatewayTest, EveryAnswerBearsTheRequestIdOfTheLog) {
  for (const auto* target : {"/bucket/missing", "/", "/bucket?unknown-thing", "/%zz"}) {
    const auto exchange = send("GET", target);
    const auto id = exchange.sent_head.fields.get("x-amz-request-id");
    ASSERT_TRUE(id.has_value()) << target;
    EXPECT_NE(log_.lines.back().find(*id), std::string::npos) << target;
    if (exchange.status_sent() >= 400) EXPECT_NE(exchange.sent_body.find(*id), std::string::npos) << target;
  }
}

TEST_F(GatewayTest, AnonymousIsDeniedBeforeTheBodyIsRead) {
  const auto exchange = send("PUT", "/bucket/key", "body", {}, false);
  EXPECT_EQ(code(exchange), "AccessDenied");
  EXPECT_EQ(exchange.reads, 0u);
}

TEST_F(GatewayTest, AWrongSignatureIsRefusedBeforeTheBodyIsRead) {
  base::HttpRequestHead head{.method = "PUT", .target = "/bucket/key", .fields = {}, .content_length = 4};
  head.fields.set("Host", "localhost");
  const s3::Credentials credentials{.access_key = std::string(testing::kAccessKey),
                                    .secret_key = "another-secret",
                                    .region = "us-east-1",
                                    .service = "s3"};
  s3::SigningKeyCache keys;
  s3::sign(head, credentials, keys, s3::kUnsignedPayload, clock_.now());
  testing::FakeExchange exchange(std::move(head), "body");
  ASSERT_TRUE(async::run_until_done(gateway_->handle(exchange)).has_value());
  EXPECT_EQ(code(exchange), "SignatureDoesNotMatch");
  EXPECT_EQ(exchange.reads, 0u);
}

TEST_F(GatewayTest, AFailingConditionIsAnsweredBeforeTheBodyIsRead) {
  send("PUT", "/bucket/key", "first");
  const auto exchange = send("PUT", "/bucket/key", "second", fields({{"If-None-Match", "*"}}));
  EXPECT_EQ(code(exchange), "PreconditionFailed");
  EXPECT_EQ(exchange.reads, 0u);
  EXPECT_NE(exchange.sent_body.find("<Condition>If-None-Match</Condition>"), std::string::npos);
}

TEST_F(GatewayTest, HeadHasNoDocument) {
  const auto exchange = send("HEAD", "/bucket/missing");
  EXPECT_EQ(exchange.status_sent(), 404);
  EXPECT_TRUE(exchange.sent_body.empty());
}

TEST_F(GatewayTest, AWindowThatNoPlaneServesStoresNothing) {
  const std::string token =
      "00007f0000000000:00001000:00000001:0000:000001:1:00000000000000000000ffff7f000001";
  const auto put = send("PUT", "/bucket/key", "", fields({{"x-amz-rdma-token", token}}));
  EXPECT_EQ(put.status_sent(), 501);
  EXPECT_EQ(put.sent_head.fields.get("x-amz-rdma-reply"), "501");
  EXPECT_FALSE(put.sent_head.fields.contains("ETag"));
  EXPECT_EQ(send("HEAD", "/bucket/key").status_sent(), 404);
  const auto part =
      send("PUT", "/bucket/key?partNumber=1&uploadId=x", "", fields({{"x-amz-rdma-token", token}}));
  EXPECT_GE(part.status_sent(), 400);
}

TEST_F(GatewayTest, ADeclinedGetTravelsInTheBody) {
  send("PUT", "/bucket/key", "hello");
  const std::string token =
      "00007f0000000000:00001000:00000001:0000:000001:1:00000000000000000000ffff7f000001";
  const auto get =
      send("GET", "/bucket/key", "", fields({{"x-amz-rdma-token", token}, {"Range", "bytes=1-3"}}));
  EXPECT_EQ(get.status_sent(), 206);
  EXPECT_EQ(get.sent_body, "ell");
  EXPECT_EQ(get.sent_head.fields.get("x-amz-rdma-reply"), "501");
}

TEST_F(GatewayTest, NoChunksIsSlowDownAndStoresNothing) {
  GatewayOptions options;
  options.chunk_patience = std::chrono::milliseconds{1};
  remake(std::move(options));
  const auto all = pool_->try_take(base::PoolShare::http, pool_->total_count(base::PoolShare::http));
  ASSERT_TRUE(all.has_value());
  const auto put = send("PUT", "/bucket/key", std::string(100'000, 'x'));
  EXPECT_EQ(code(put), "SlowDown");
  EXPECT_TRUE(put.sent_head.fields.contains("Retry-After"));
  EXPECT_EQ(send("HEAD", "/bucket/key").status_sent(), 404);
}

TEST_F(GatewayTest, RestoreOfAResidentObjectIsRefused) {
  send("PUT", "/bucket/key", "hello");
  const auto exchange =
      send("POST", "/bucket/key?restore", "<RestoreRequest><Days>1</Days></RestoreRequest>");
  EXPECT_EQ(code(exchange), "InvalidObjectState");
  EXPECT_TRUE(recalls_.requests.empty());
}

TEST_F(GatewayTest, RestoreOfAnEvictedObjectIsQueuedWithItsDaysAndTier) {
  send("PUT", "/bucket/key", "hello");
  clock_.advance(std::chrono::minutes{1});
  const object::ObjectName name{"bucket", "key"};
  auto reader = async::run_until_done(store_->tiered()->open_for_archive(name));
  ASSERT_TRUE(reader.has_value());
  ASSERT_TRUE(async::run_until_done(store_->tiered()->evict(name, (*reader)->identity())).has_value());
  reader->reset();
  const auto get = send("GET", "/bucket/key");
  EXPECT_EQ(code(get), "InvalidObjectState");
  EXPECT_NE(get.sent_body.find("<StorageClass>GLACIER</StorageClass>"), std::string::npos);
  const auto exchange = send("POST", "/bucket/key?restore",
                             "<RestoreRequest><Days>7</Days><GlacierJobParameters><Tier>Bulk</Tier></"
                             "GlacierJobParameters></RestoreRequest>");
  EXPECT_EQ(exchange.status_sent(), 202);
  ASSERT_EQ(recalls_.requests.size(), 1u);
  EXPECT_EQ(recalls_.requests.front().days, 7u);
  EXPECT_EQ(recalls_.requests.front().tier, object::RestoreTier::bulk);
  EXPECT_FALSE(recalls_.requests.front().for_reader);
}

TEST_F(GatewayTest, BodiesOfCommandsHaveABound) {
  const auto exchange = send("PUT", "/another-bucket", std::string(5'000'000, ' '));
  EXPECT_EQ(exchange.status_sent(), 400);
  EXPECT_LT(exchange.reads, 600u);
}

TEST_F(GatewayTest, ExpectedBucketOwner) {
  EXPECT_EQ(code(send("GET", "/bucket", "", fields({{"x-amz-expected-bucket-owner", "111122223333"}}))),
            "AccessDenied");
  EXPECT_EQ(send("GET", "/bucket", "",
                 fields({{"x-amz-expected-bucket-owner", accounts_.root().principal.account_id}}))
                .status_sent(),
            200);
}

TEST(AccessLine, EscapesKeysAndSaysNothingForNothing) {
  testing::FakeExchange exchange({}, "");
  AccessRecord record;
  record.request_id = "ID";
  record.operation = "GetObject";
  record.bucket = "b";
  record.key = "new\nline \"x\"";
  const auto line = access_line(record, exchange, std::chrono::microseconds{12});
  EXPECT_EQ(line, "127.0.0.1 - GetObject /b/new%0Aline%20%22x%22 0 - bytes=0 us=12 id=ID");
}

}  // namespace
}  // namespace reelway::gateway
