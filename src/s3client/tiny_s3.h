#pragma once
// A small S3 of the test's own, which checks signatures and bodies with the server side of s3/. Only for
// tests.

#include <gtest/gtest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <deque>
#include <thread>

#include "async/spawn.h"
#include "http/server.h"
#include "s3/aws_chunked.h"
#include "s3/multipart.h"
#include "s3/request.h"
#include "s3/response.h"
#include "s3/xml.h"

namespace reelway::s3client {

inline const s3::Credentials kRoot{.access_key = "root", .secret_key = "root-secret"};

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
  bool lose_completion = false;  ///< complete the upload, but answer 503
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
  static std::string etag_of_three_parts() {
    std::vector<s3::PartDigest> digests;
    for (const char* etag : {"p1", "p2", "p3"}) digests.push_back({.size = 0, .etag = etag, .checksums = {}});
    return s3::multipart_etag(digests);
  }
  Answer run(const s3::Request& request, const s3::HeadObject&, const std::string&) {
    const auto it = objects.find(request.key);
    if (it == objects.end()) return answer(404);
    Answer made = answer(200);
    made.head.content_length = it->second.size();
    made.head.fields.add("ETag", s3::quote_etag(lose_completion ? etag_of_three_parts() : "e1"));
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
    if (parts.empty()) return refuse(s3::ErrorCode::no_such_upload);
    if (!named || named->size() != parts.size()) return refuse(s3::ErrorCode::invalid_part);
    std::string whole;
    for (const s3::CompletedPart& part : *named) {
      if (part.etag != "p" + std::to_string(part.part_number)) return refuse(s3::ErrorCode::invalid_part);
      whole += parts[part.part_number];
    }
    objects[request.key] = whole;
    parts.clear();
    if (lose_completion) return answer(503);
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

}  // namespace reelway::s3client
