// Against a small S3 of the test's own, which checks signatures and bodies with the server side of s3/.
#include "s3client/client.h"

#include <gtest/gtest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <deque>
#include <thread>

#include "async/spawn.h"
#include "http/server.h"
#include "s3/aws_chunked.h"
#include "s3/response.h"

namespace reelway::s3client {
namespace {

using base::Code;

const s3::Credentials kRoot{.access_key = "root", .secret_key = "root-secret"};

std::string random_text(std::size_t size) {
  base::SeededRng rng(size);
  std::string text(size, '\0');
  rng.fill(std::as_writable_bytes(std::span(text)));
  return text;
}

/// One bucket's worth of S3 in memory. All its state is touched by the server's thread, or after the client's
/// call has returned.
class TinyS3 {
 public:
  TinyS3() {
    auto created = http::Server::create(
        {context_.get_executor()}, {}, [this](http::Exchange& exchange) { return serve(exchange); },
        base::null_log());
    if (!created) {
      ADD_FAILURE() << created.error().detail;
      return;
    }
    server_ = std::move(*created);
    thread_ = std::thread([this] { context_.run(); });
  }
  ~TinyS3() {
    (void)async::run_until_done(
        async::run_on(context_.get_executor(), server_->shut_down(std::chrono::seconds{5})));
    context_.stop();
    thread_.join();
  }

  std::map<std::string, std::string> objects;
  std::map<std::uint32_t, std::string> parts;
  std::vector<std::string> log;           ///< operations that came, by name
  std::deque<int> failures;               ///< statuses to answer the next requests with
  std::optional<std::string> token_seen;  ///< x-amz-rdma-token
  bool corrupt = false;                   ///< change a byte of the next GET
  bool refuse_part_2 = false;
  std::uint16_t port() const { return server_->port(); }

 private:
  struct Answer {
    base::HttpResponseHead head;
    std::string body;
  };

  static Answer answer(int status, std::string body = {}) {
    return {.head = {.status = status, .fields = {}, .content_length = body.size()}, .body = std::move(body)};
  }
  static Answer refuse(s3::ErrorCode code) {
    const s3::Fault fault = s3::fault(code);
    return answer(fault.status(),
                  s3::error_document(fault, {.resource = "", .request_id = "r1", .host_id = "h"}));
  }

  async::Task<void> serve(http::Exchange& exchange) {
    CO_TRY(const std::string raw, co_await read(exchange));
    Answer made = handle(exchange.head(), raw);
    const bool is_head = exchange.head().method == "HEAD";
    co_return co_await exchange.respond(std::move(made.head),
                                        base::as_bytes(is_head ? std::string_view() : made.body));
  }

  static async::Task<std::string> read(http::Exchange& exchange) {
    std::string body;
    base::Bytes buffer(65536);
    for (;;) {
      CO_TRY(const std::size_t got, co_await exchange.read_body(buffer));
      if (got == 0) co_return body;
      body += base::as_text(base::ByteView(buffer).first(got));
    }
  }

  /// The object's bytes, or nullopt when the framing or the trailer is wrong.
  static std::optional<std::string> decode(const base::HttpRequestHead& head, const s3::Verified& verified,
                                           const std::string& raw) {
    if (!s3::is_chunked(verified.payload.form)) return raw;
    s3::ChunkedDecoder decoder({.form = verified.payload.form,
                                .signing = verified.signing,
                                .decoded_length = s3::object_length(head).value_or(0),
                                .trailer = base::ChecksumKind::crc64nvme});
    std::string body;
    for (base::ByteView rest = base::as_bytes(raw); !rest.empty();) {
      const auto step = decoder.feed(rest);
      if (!step) return std::nullopt;
      body += base::as_text(step->data);
      rest = rest.subspan(step->consumed);
    }
    const bool whole = decoder.finish().has_value() && decoder.trailer_checksum() &&
                       decoder.trailer_checksum()->value ==
                           base::digest_of(base::ChecksumKind::crc64nvme, base::as_bytes(body));
    return whole ? std::optional(body) : std::nullopt;
  }

  Answer handle(const base::HttpRequestHead& head, const std::string& raw) {
    const auto request = s3::parse_request(head);
    if (!request) return refuse(request.error().code);
    log.emplace_back(s3::operation_row(request->operation).name);
    if (!failures.empty()) {
      const int status = failures.front();
      failures.pop_front();
      return answer(status);
    }
    const auto authorization = s3::parse_authorization(head);
    if (!authorization || !*authorization) return refuse(s3::ErrorCode::access_denied);
    const auto key = keys_.get((*authorization)->access_key, kRoot.secret_key, (*authorization)->date,
                               (*authorization)->region);
    const auto verified = s3::verify(**authorization, head, key, "us-east-1", base::SystemClock().now());
    if (!verified) return refuse(verified.error().code);
    if (request->rdma) token_seen = request->rdma.token;
    const auto body = decode(head, *verified, raw);
    if (!body) return refuse(s3::ErrorCode::bad_digest);
    return std::visit([&](const auto& operation) { return run(*request, operation, *body); },
                      request->operation);
  }

  template <class Other>
  Answer run(const s3::Request&, const Other&, const std::string&) {
    return refuse(s3::ErrorCode::not_implemented);
  }
  Answer run(const s3::Request&, const s3::WellKnown&, const std::string&) { return answer(200, "{}"); }
  Answer run(const s3::Request&, const s3::CreateBucket&, const std::string&) {
    return bucket_made_ ? refuse(s3::ErrorCode::bucket_already_owned_by_you)
                        : (bucket_made_ = true, answer(200));
  }
  Answer run(const s3::Request&, const s3::ListBuckets&, const std::string&) {
    return answer(200, s3::write_list_buckets({"o", "o"}, {{"bucket", base::TimePoint{}}}, "", ""));
  }
  Answer run(const s3::Request& request, const s3::PutObject& put, const std::string& body) {
    if (!put.conditions.if_none_match.empty() && objects.contains(request.key))
      return refuse(s3::ErrorCode::precondition_failed);
    objects[request.key] = body;
    Answer made = answer(200);
    made.head.fields.add("ETag", s3::quote_etag("e1"));
    return made;
  }
  Answer run(const s3::Request& request, const s3::GetObject& get, const std::string&) {
    const auto it = objects.find(request.key);
    if (it == objects.end()) return refuse(s3::ErrorCode::no_such_key);
    std::string body = it->second;
    if (get.range) body = body.substr(*get.range->first, *get.range->last - *get.range->first + 1);
    Answer made = answer(get.range ? 206 : 200, body);
    const base::Bytes sum = base::digest_of(base::ChecksumKind::crc64nvme, base::as_bytes(it->second));
    if (get.checksum_mode && !get.range)
      made.head.fields.add("x-amz-checksum-crc64nvme", base::to_base64(sum));
    if (std::exchange(corrupt, false)) made.body[0] = static_cast<char>(made.body[0] ^ 1);
    return made;
  }
  Answer run(const s3::Request& request, const s3::HeadObject&, const std::string&) {
    const auto it = objects.find(request.key);
    if (it == objects.end()) return answer(404);
    Answer made = answer(200);
    made.head.content_length = it->second.size();
    made.head.fields.add("ETag", s3::quote_etag("e1"));
    made.head.fields.add("x-amz-storage-class", "GLACIER");
    made.head.fields.add("x-amz-restore", "ongoing-request=\"true\"");
    return made;
  }
  Answer run(const s3::Request& request, const s3::DeleteObject&, const std::string&) {
    objects.erase(request.key);
    return answer(204);
  }
  Answer run(const s3::Request&, const s3::ListObjectsV2& list, const std::string&) {
    s3::ListResult result;
    result.encode_url = list.encode_url;
    const std::string after =
        list.continuation_token.empty() ? "" : s3::decode_continuation_token(list.continuation_token).value();
    for (const auto& [key, body] : objects) {
      if (key <= after) continue;
      result.truncated = result.objects.size() == list.max_keys;
      if (result.truncated) break;
      result.objects.push_back(
          {.key = key, .size = body.size(), .etag = "e", .checksums = {}, .owner = {}, .restore = {}});
    }
    const std::string next = result.truncated ? s3::encode_continuation_token(result.objects.back().key) : "";
    return answer(
        200, s3::write_list_objects_v2(
                 result, {.start_after = "", .continuation_token = "", .next_continuation_token = next}));
  }
  Answer run(const s3::Request& request, const s3::CreateMultipartUpload&, const std::string&) {
    return answer(200, s3::write_initiate_multipart("bucket", request.key, "upload-1"));
  }
  Answer run(const s3::Request&, const s3::UploadPart& part, const std::string& body) {
    if (refuse_part_2 && part.part_number == 2) return refuse(s3::ErrorCode::access_denied);
    parts[part.part_number] = body;
    Answer made = answer(200);
    made.head.fields.add("ETag", s3::quote_etag("p" + std::to_string(part.part_number)));
    return made;
  }
  Answer run(const s3::Request& request, const s3::CompleteMultipartUpload&, const std::string& body) {
    const auto named = s3::parse_complete_multipart_upload(body);
    if (!named || named->size() != parts.size()) return refuse(s3::ErrorCode::invalid_part);
    std::string whole;
    for (const s3::CompletedPart& part : *named) {
      if (part.etag != "p" + std::to_string(part.part_number)) return refuse(s3::ErrorCode::invalid_part);
      whole += parts[part.part_number];
    }
    objects[request.key] = whole;
    return answer(200, s3::write_complete_multipart("/", "bucket", request.key, "whole-3", {}));
  }
  Answer run(const s3::Request&, const s3::AbortMultipartUpload&, const std::string&) { return answer(204); }
  Answer run(const s3::Request&, const s3::RestoreObject&, const std::string& body) {
    return s3::parse_restore(body) ? answer(202) : refuse(s3::ErrorCode::malformed_xml);
  }

  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> busy_ =
      boost::asio::make_work_guard(context_);
  std::unique_ptr<http::Server> server_;
  std::thread thread_;
  s3::SigningKeyCache keys_;
  bool bucket_made_ = false;
};

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
  const auto put =
      with_client<PutResult>(chosen, [](Client& client, ClientTest& test) -> async::Task<PutResult> {
        MemoryContent content(base::as_bytes(test.content_));
        PutOptions options;
        co_return co_await client.put("bucket", "large", content, std::move(options));
      });
  ASSERT_TRUE(put) << put.error().detail;
  EXPECT_EQ(put->etag, "whole-3");
  EXPECT_TRUE(s3_.objects["large"] == content_);
}

TEST_F(ClientTest, AFailedPartAbortsTheUpload) {
  Options chosen = options();
  chosen.multipart_threshold = base::kMiB;
  s3_.refuse_part_2 = true;
  const auto put =
      with_client<PutResult>(chosen, [](Client& client, ClientTest& test) -> async::Task<PutResult> {
        MemoryContent content(base::as_bytes(test.content_));
        PutOptions options;
        co_return co_await client.put("bucket", "large", content, std::move(options));
      });
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
