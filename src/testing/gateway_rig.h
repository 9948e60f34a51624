#pragma once
// A gateway over the memory store, with a manual clock and requests that are signed values. No socket, no
// sleep.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "async/spawn.h"
#include "base/checksum.h"
#include "gateway/gateway.h"
#include "object/recall_feed.h"
#include "store/memory/memory_store.h"
#include "testing/fake_exchange.h"

namespace reelway::testing {

inline constexpr std::string_view kAccessKey = "AKIAROOT";
inline constexpr std::string_view kSecret = "not-a-real-secret";

/// Remembers lines; a secret in one of them is a failure of every test.
class LineLog final : public base::Log {
 public:
  void write(base::LogLevel, std::string_view, std::string_view message) override {
    EXPECT_EQ(message.find(kSecret), std::string_view::npos);
    lines.emplace_back(message);
  }
  std::vector<std::string> lines;
};

struct RecordingRecalls final : object::RecallQueue {
  async::Task<object::RecallStatus> submit(object::RecallRequest request) override {
    requests.push_back(request);
    co_return object::RecallStatus{
        .id = "1", .state = object::RecallState::queued, .expiry = {}, .explanation = {}};
  }
  async::Task<object::RecallStatus> status(object::ObjectName, std::string) override {
    co_return object::RecallStatus{};
  }
  async::Task<void> cancel(std::string) override { co_return base::Result<void>{}; }
  async::Task<object::RecallStatus> wait(object::ObjectName, std::string, base::Duration) override {
    co_return object::RecallStatus{};
  }
  async::Task<object::FollowedRecall> follow(object::RecallRequest, std::uint64_t, base::Duration) override {
    co_return object::FollowedRecall{};
  }
  std::vector<object::RecallRequest> requests;
};

class GatewayRig : public ::testing::Test {
 protected:
  GatewayRig() : accounts_(*iam::Accounts::with_root(std::string(kAccessKey), std::string(kSecret))) {
    remake({});
    EXPECT_EQ(send("PUT", "/bucket").status_sent(), 200);
  }
  ~GatewayRig() override { EXPECT_TRUE(async::run_until_done(gateway_->close()).has_value()); }

  void remake(gateway::GatewayOptions options) {
    const gateway::GatewayParts parts{.store = *store_,
                                      .accounts = accounts_,
                                      .pool = *pool_,
                                      .hash_pool = hash_pool_,
                                      .planes = planes_,
                                      .clock = clock_,
                                      .rng = rng_,
                                      .log = log_,
                                      .meter = base::null_meter(),
                                      .recalls = &recalls_};
    gateway_ = std::make_unique<gateway::Gateway>(parts, std::move(options));
  }

  FakeExchange send(std::string method, std::string target, std::string body = {},
                    base::HttpFields fields = {}, bool sign = true) {
    base::HttpRequestHead head{.method = std::move(method),
                               .target = std::move(target),
                               .fields = std::move(fields),
                               .content_length = body.size()};
    head.fields.set("Host", "localhost");
    if (sign) {
      const s3::Credentials credentials{.access_key = std::string(kAccessKey),
                                        .secret_key = std::string(kSecret),
                                        .region = "us-east-1",
                                        .service = "s3"};
      const auto hash = base::to_hex(base::digest_of(base::ChecksumKind::sha256, base::as_bytes(body)));
      s3::sign(head, credentials, keys_, hash, clock_.now());
    }
    FakeExchange exchange(std::move(head), std::move(body));
    EXPECT_TRUE(async::run_until_done(gateway_->handle(exchange)).has_value());
    return exchange;
  }

  static base::HttpFields fields(std::initializer_list<std::pair<std::string, std::string>> list) {
    base::HttpFields out;
    for (const auto& [name, value] : list) out.add(name, value);
    return out;
  }
  static std::string code(const FakeExchange& exchange) {
    const auto parsed = s3::parse_error_document(exchange.sent_body);
    return parsed ? parsed->code : "no error document";
  }

  base::ManualClock clock_;
  base::SeededRng rng_{1};
  std::unique_ptr<object::Store> store_ = store::memory::make_memory_store({.clock = &clock_, .rng = &rng_});
  iam::Accounts accounts_;
  std::unique_ptr<base::BufferPool> pool_ = *base::BufferPool::create({});
  async::BlockingPool hash_pool_{"hash", 1};
  rdma::Planes planes_;
  LineLog log_;
  RecordingRecalls recalls_;
  s3::SigningKeyCache keys_;
  std::unique_ptr<gateway::Gateway> gateway_;
};

}  // namespace reelway::testing
