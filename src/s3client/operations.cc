#include <fmt/format.h>

#include "s3client/client_impl.h"
#include "s3client/reply_xml.h"

namespace reelway::s3client {

namespace {

std::string range_header(const s3::Range& range) {
  const auto text = [](const std::optional<std::uint64_t>& number) {
    return number ? std::to_string(*number) : std::string();
  };
  return "bytes=" + text(range.first) + "-" + text(range.last);
}

Call call_for(std::string method, std::string bucket, std::string key = {}) {
  Call call;
  call.method = std::move(method);
  call.bucket = std::move(bucket);
  call.key = std::move(key);
  return call;
}

base::Result<std::uint64_t> length_of(const base::HttpResponseHead& head) {
  if (head.content_length) return *head.content_length;
  return base::parse_decimal(head.fields.get_or("content-length", ""));
}

}  // namespace

async::Task<PutResult> ClientImpl::put(std::string bucket, std::string key, Content& content,
                                       PutOptions put_options) {
  if (content.size() > options_.multipart_threshold) {
    return put_multipart(*this, std::move(bucket), std::move(key), content, std::move(put_options));
  }
  return put_whole(std::move(bucket), std::move(key), content, std::move(put_options));
}

async::Task<PutResult> ClientImpl::put_whole(std::string bucket, std::string key, Content& content,
                                             PutOptions put_options) {
  Call call = call_for("PUT", std::move(bucket), std::move(key));
  call.headers = std::move(put_options.headers);
  call.content = &content;
  call.content_range = {.offset = 0, .length = content.size()};
  call.trailer_checksum = put_options.trailer_checksum;
  CO_TRY(Reply reply, co_await succeed(std::move(call)));
  PutResult result{.etag = unquote(reply.head.fields.get_or("etag", "")), .head = std::move(reply.head)};
  co_return result;
}

async::Task<GetResult> ClientImpl::get(std::string bucket, std::string key, Sink& sink,
                                       GetOptions get_options) {
  Call call = call_for("GET", std::move(bucket), std::move(key));
  call.headers = std::move(get_options.headers);
  call.headers.set("x-amz-checksum-mode", "ENABLED");
  if (get_options.range) call.headers.set("Range", range_header(*get_options.range));
  call.sink = &sink;
  call.attempts = get_options.attempts;
  CO_TRY(Reply reply, co_await succeed(std::move(call)));
  GetResult result{.bytes = reply.sink_bytes, .head = std::move(reply.head)};
  co_return result;
}

async::Task<HeadResult> ClientImpl::head(std::string bucket, std::string key) {
  Call call = call_for("HEAD", std::move(bucket), std::move(key));
  CO_TRY(Reply reply, co_await succeed(std::move(call)));
  HeadResult result;
  CO_TRY(result.size, length_of(reply.head));
  const base::HttpFields& fields = reply.head.fields;
  result.etag = unquote(fields.get_or("etag", ""));
  result.storage_class = fields.get_or("x-amz-storage-class", "STANDARD");
  if (const auto restore_state = fields.get("x-amz-restore")) result.restore = *restore_state;
  result.head = std::move(reply.head);
  co_return result;
}

async::Task<void> ClientImpl::remove(std::string bucket, std::string key) {
  Call call = call_for("DELETE", std::move(bucket), std::move(key));
  CO_TRY(const Reply reply, co_await succeed(std::move(call)));
  co_return base::Result<void>{};
}

async::Task<ListResult> ClientImpl::list(std::string bucket, ListOptions list_options) {
  Call call = call_for("GET", std::move(bucket));
  call.query = {
      {"list-type", "2"}, {"encoding-type", "url"}, {"max-keys", std::to_string(list_options.max_keys)}};
  const auto add = [&](std::string_view name, std::string& value) {
    if (!value.empty()) call.query.push_back({std::string(name), std::move(value)});
  };
  add("prefix", list_options.prefix);
  add("delimiter", list_options.delimiter);
  add("continuation-token", list_options.continuation_token);
  add("start-after", list_options.start_after);
  CO_TRY(const Reply reply, co_await succeed(std::move(call)));
  co_return parse_list_result(reply.body);
}

async::Task<std::vector<s3::BucketEntry>> ClientImpl::list_buckets() {
  Call call = call_for("GET", {});
  CO_TRY(const Reply reply, co_await succeed(std::move(call)));
  co_return parse_bucket_list(reply.body);
}

async::Task<void> ClientImpl::create_bucket(std::string bucket) {
  Call call = call_for("PUT", std::move(bucket));
  if (options_.credentials.region != "us-east-1") {
    call.body = fmt::format(
        "<CreateBucketConfiguration "
        "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><LocationConstraint>{}</LocationConstraint>"
        "</CreateBucketConfiguration>",
        s3::xml_escape(options_.credentials.region));
  }
  const Call& described = call;
  CO_TRY(const Reply reply, co_await this->call(described));
  if (reply.ok()) co_return base::Result<void>{};
  const auto document = s3::parse_error_document(reply.body);
  if (document && document->code == "BucketAlreadyOwnedByYou") co_return base::Result<void>{};
  co_return to_error(reply, described);
}

async::Task<void> ClientImpl::delete_bucket(std::string bucket) {
  Call call = call_for("DELETE", std::move(bucket));
  CO_TRY(const Reply reply, co_await succeed(std::move(call)));
  co_return base::Result<void>{};
}

async::Task<RestoreOutcome> ClientImpl::restore(std::string bucket, std::string key,
                                                RestoreOptions restore_options) {
  Call call = call_for("POST", std::move(bucket), std::move(key));
  call.query = {{"restore", ""}};
  call.body = write_restore_request(restore_options);
  CO_TRY(const Reply reply, co_await succeed(std::move(call)));
  co_return reply.head.status == 202 ? RestoreOutcome::started : RestoreOutcome::already_restored;
}

async::Task<std::string> ClientImpl::well_known() {
  Call call = call_for("GET", ".well-known", "reelway");
  CO_TRY(Reply reply, co_await this->call(std::move(call)));
  if (!reply.ok())
    co_return base::fail(base::Code::unsupported, "the server does not describe itself as a Reelway");
  co_return std::move(reply.body);
}

}  // namespace reelway::s3client
