#include "s3client/client.h"

#include <gtest/gtest.h>

#include <boost/asio/this_coro.hpp>

#include "s3client/tiny_s3.h"

namespace reelway::s3client {
namespace {

using base::Code;

std::string random_text(std::size_t size) {
  base::SeededRng rng(size);
  std::string text(size, '\0');
  rng.fill(std::as_writable_bytes(std::span(text)));
  return text;
}

class ClientTest : public testing::Test {
 protected:
  Options options() const {
    Options made;
    made.http.host = "127.0.0.1";
    made.http.port = s3_.port();
    made.credentials = kRoot;
    made.backoff_first = std::chrono::milliseconds{1};
    made.part_bytes = s3::kPartBytesMin;
    return made;
  }

  /// Runs `use` with a client on an executor of its own, which ends with it.
  template <class T>
  base::Result<T> with_client(const Options& chosen, async::Task<T> (*use)(Client&, ClientTest&)) {
    return async::run_until_done(with_client_task<T>(chosen, use));
  }
  template <class T>
  base::Result<T> with_client(async::Task<T> (*use)(Client&, ClientTest&)) {
    return with_client<T>(options(), use);
  }

 public:
  TinyS3 s3_;
  std::string content_ = random_text(11 * base::kMiB + 5);
  MemorySink sink_;

 private:
  template <class T>
  async::Task<T> with_client_task(Options chosen, async::Task<T> (*use)(Client&, ClientTest&)) {
    const auto executor = co_await async::net::this_coro::executor;
    CO_TRY(const auto client, Client::create(executor, std::move(chosen), clock_, rng_));
    co_return co_await use(*client, *this);
  }
  base::SystemClock clock_;
  base::SeededRng rng_{1};
};

async::Task<PutResult> put_small(Client& client, ClientTest&) {
  MemoryContent content(base::as_bytes("hello"));
  PutOptions options;
  options.headers.add("x-amz-meta-a", "1");
  co_return co_await client.put("bucket", "a key/+%", content, std::move(options));
}

async::Task<PutResult> put_unsigned(Client& client, ClientTest&) {
  MemoryContent content(base::as_bytes("hello"));
  PutOptions options;
  options.trailer_checksum = false;
  co_return co_await client.put("bucket", "k", content, std::move(options));
}

async::Task<PutResult> put_large(Client& client, ClientTest& test) {
  MemoryContent content(base::as_bytes(test.content_));
  PutOptions options;
  co_return co_await client.put("bucket", "large", content, std::move(options));
}

async::Task<GetResult> get_small(Client& client, ClientTest& test) {
  return client.get("bucket", "a key/+%", test.sink_, {});
}

TEST_F(ClientTest, PutsAndGetsBothForms) {
  const auto put = with_client(put_small);
  ASSERT_TRUE(put) << put.error().detail;
  EXPECT_EQ(put->etag, "e1");
  EXPECT_EQ(s3_.objects["a key/+%"], "hello");
  ASSERT_TRUE(with_client(put_unsigned));
  EXPECT_EQ(s3_.objects["k"], "hello");
  const auto got = with_client(get_small);
  ASSERT_TRUE(got) << got.error().detail;
  EXPECT_EQ(base::as_text(sink_.bytes()), "hello");
  EXPECT_EQ(got->bytes, 5U);
}

TEST_F(ClientTest, EmptyObjects) {
  const auto put = with_client<PutResult>([](Client& client, ClientTest&) -> async::Task<PutResult> {
    MemoryContent content({});
    PutOptions options;
    co_return co_await client.put("bucket", "empty", content, std::move(options));
  });
  ASSERT_TRUE(put) << put.error().detail;
  EXPECT_EQ(s3_.objects.at("empty"), "");
}

TEST_F(ClientTest, RangesAndMissingKeys) {
  s3_.objects["k"] = "0123456789";
  const auto got = with_client<GetResult>([](Client& client, ClientTest& test) -> async::Task<GetResult> {
    GetOptions options;
    options.range = s3::Range{2, 4};
    co_return co_await client.get("bucket", "k", test.sink_, std::move(options));
  });
  ASSERT_TRUE(got) << got.error().detail;
  EXPECT_EQ(base::as_text(sink_.bytes()), "234");
  const auto missing = with_client(get_small);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::not_found);
  EXPECT_EQ(missing.error().scope, base::Scope::object);
}

TEST_F(ClientTest, ACorruptAnswerIsNoticedAndFetchedAgain) {
  s3_.objects["a key/+%"] = "hello";
  s3_.corrupt = true;
  ASSERT_TRUE(with_client(get_small));
  EXPECT_EQ(base::as_text(sink_.bytes()), "hello");
  EXPECT_EQ(s3_.log.size(), 2U);
  Options once = options();
  once.attempts = 1;
  s3_.corrupt = true;
  const auto got = with_client(once, get_small);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::checksum_mismatch);
}

TEST_F(ClientTest, BusyServersAreAskedAgainAFewTimes) {
  s3_.failures = {503, 500};
  ASSERT_TRUE(with_client(put_small));
  EXPECT_EQ(s3_.log.size(), 3U);
  s3_.log.clear();
  s3_.failures = {503, 503, 503, 503, 503};
  const auto put = with_client(put_small);
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, Code::busy);
  EXPECT_EQ(s3_.log.size(), 4U);
}

TEST_F(ClientTest, AnAnswerIsNotAskedForAgain) {
  for (const int status : {400, 403, 404, 412, 501}) {
    s3_.log.clear();
    s3_.failures = {status};
    EXPECT_FALSE(with_client(put_small)) << status;
    EXPECT_EQ(s3_.log.size(), 1U) << status;
  }
}

TEST_F(ClientTest, LargeObjectsGoInParts) {
  Options chosen = options();
  chosen.multipart_threshold = base::kMiB;
  const auto put = with_client(chosen, put_large);
  ASSERT_TRUE(put) << put.error().detail;
  EXPECT_EQ(put->etag, "whole-3");
  EXPECT_TRUE(s3_.objects["large"] == content_);
}

TEST_F(ClientTest, ACompletionWhoseAnswerWasLostIsFoundOut) {
  Options chosen = options();
  chosen.multipart_threshold = base::kMiB;
  s3_.lose_completion = true;
  const auto put = with_client(chosen, put_large);
  ASSERT_TRUE(put) << put.error().detail;
  EXPECT_TRUE(put->etag.ends_with("-3"));
  EXPECT_NE(s3_.log.back(), "AbortMultipartUpload");
}

TEST_F(ClientTest, AFailedPartAbortsTheUpload) {
  Options chosen = options();
  chosen.multipart_threshold = base::kMiB;
  s3_.refuse_part_2 = true;
  const auto put = with_client(chosen, put_large);
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, Code::access_denied);
  EXPECT_EQ(s3_.log.back(), "AbortMultipartUpload");
  EXPECT_FALSE(s3_.objects.contains("large"));
}

TEST_F(ClientTest, ConditionsReachTheServer) {
  s3_.objects["k"] = "old";
  const auto put = with_client<PutResult>([](Client& client, ClientTest&) -> async::Task<PutResult> {
    MemoryContent content(base::as_bytes("new"));
    PutOptions options;
    options.headers.add("If-None-Match", "*");
    co_return co_await client.put("bucket", "k", content, std::move(options));
  });
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, Code::precondition_failed);
  EXPECT_EQ(s3_.objects["k"], "old");
}

TEST_F(ClientTest, HeadTellsWhatIsThere) {
  s3_.objects["k"] = "0123456789";
  const auto head =
      with_client<HeadResult>([](Client& client, ClientTest&) { return client.head("bucket", "k"); });
  ASSERT_TRUE(head) << head.error().detail;
  EXPECT_EQ(head->size, 10U);
  EXPECT_EQ(head->etag, "e1");
  EXPECT_EQ(head->storage_class, "GLACIER");
  EXPECT_EQ(head->restore, "ongoing-request=\"true\"");
  const auto missing =
      with_client<HeadResult>([](Client& client, ClientTest&) { return client.head("bucket", "none"); });
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::not_found);
}

async::Task<std::vector<std::string>> list_all(Client& client, ClientTest&) {
  std::vector<std::string> keys;
  ListOptions options;
  options.max_keys = 2;
  for (;;) {
    CO_TRY(ListResult page, co_await client.list("bucket", options));
    for (s3::ObjectEntry& entry : page.objects) keys.push_back(std::move(entry.key));
    if (!page.truncated) co_return keys;
    options.continuation_token = std::move(page.next_continuation_token);
  }
}

TEST_F(ClientTest, ListsPageByPageWithKeysOfAnyBytes) {
  const std::vector<std::string> wanted{"a", "b\x01\n", "c+ %", "d/\xC3\xBC", "e"};
  for (const std::string& key : wanted) s3_.objects[key] = "";
  const auto keys = with_client(list_all);
  ASSERT_TRUE(keys) << keys.error().detail;
  EXPECT_EQ(*keys, wanted);
}

async::Task<void> touch_everything(Client& client, ClientTest&) {
  CO_TRY_VOID(co_await client.create_bucket("bucket"));
  CO_TRY_VOID(co_await client.create_bucket("bucket"));
  CO_TRY(const auto buckets, co_await client.list_buckets());
  EXPECT_EQ(buckets.size(), 1U);
  CO_TRY_VOID(co_await client.remove("bucket", "none"));
  RestoreOptions restore;
  restore.days = 3;
  restore.tier = "Bulk";
  CO_TRY(const auto outcome, co_await client.restore("bucket", "k", restore));
  EXPECT_EQ(outcome, RestoreOutcome::started);
  CO_TRY(const std::string document, co_await client.well_known());
  EXPECT_EQ(document, "{}");
  co_return base::Result<void>{};
}

TEST_F(ClientTest, BucketsDeletesRestoresAndTheDescription) {
  const auto done = with_client(touch_everything);
  EXPECT_TRUE(done) << done.error().detail;
}

TEST_F(ClientTest, ExtraHeadersAreSignedAndTheReplyIsSeen) {
  s3_.objects["k"] = "hello";
  const auto reply = with_client<Reply>([](Client& client, ClientTest&) -> async::Task<Reply> {
    Call call;
    call.bucket = "bucket";
    call.key = "k";
    call.headers.add("x-amz-rdma-token", "window");
    call.attempts = 1;
    co_return co_await client.call(std::move(call));
  });
  ASSERT_TRUE(reply) << reply.error().detail;
  EXPECT_EQ(reply->head.status, 200);
  EXPECT_EQ(reply->body, "hello");
  EXPECT_EQ(s3_.token_seen, "window");
}

TEST_F(ClientTest, AWrongSecretIsAccessDenied) {
  Options chosen = options();
  chosen.credentials.secret_key = "other";
  const auto put = with_client(chosen, put_small);
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, Code::access_denied);
  EXPECT_EQ(put.error().detail.find("other"), std::string::npos);
}

TEST_F(ClientTest, NobodyThereIsUnavailable) {
  Options chosen = options();
  chosen.http.port = 1;
  const auto put = with_client(chosen, put_small);
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, Code::unavailable);
}

}  // namespace
}  // namespace reelway::s3client
