#include <algorithm>

#include "async/spawn.h"
#include "s3/multipart.h"
#include "s3client/client_impl.h"
#include "s3client/reply_xml.h"

namespace reelway::s3client {

namespace {

/// What the workers of one upload share. All of them run on the client's executor, one at a time.
struct Upload {
  ClientImpl& client;
  Content& content;
  std::string bucket;
  std::string key;
  std::string id;
  std::uint64_t part_bytes = 0;
  bool trailer_checksum = true;
  std::vector<s3::CompletedPart> parts;  ///< all of them; the ETag is filled in when a part is there
  std::size_t next = 0;
  std::optional<base::Error> failure;  ///< the first one
};

Call call_on(const Upload& upload, std::string method, s3::Query query) {
  Call call;
  call.method = std::move(method);
  call.bucket = upload.bucket;
  call.key = upload.key;
  call.query = std::move(query);
  return call;
}

async::Task<std::string> put_part(Upload& upload, std::size_t index) {
  Call call = call_on(upload, "PUT", {{"partNumber", std::to_string(index + 1)}, {"uploadId", upload.id}});
  call.content = &upload.content;
  call.content_range.offset = index * upload.part_bytes;
  call.content_range.length = std::min(upload.part_bytes, upload.content.size() - call.content_range.offset);
  call.trailer_checksum = upload.trailer_checksum;
  CO_TRY(const Reply reply, co_await upload.client.succeed(std::move(call)));
  co_return unquote(reply.head.fields.get_or("etag", ""));
}

/// Takes parts until none is left or somebody failed.
async::Task<void> put_parts(Upload& upload) {
  while (!upload.failure && upload.next < upload.parts.size()) {
    const std::size_t index = upload.next++;
    base::Result<std::string> etag = co_await put_part(upload, index);
    if (etag) {
      upload.parts[index].etag = std::move(*etag);
    } else if (!upload.failure) {
      upload.failure = std::move(etag).error();
    }
  }
  co_return base::Result<void>{};
}

async::Task<void> put_all_parts(Upload& upload) {
  async::Gate gate;
  const std::size_t worker_count = std::min(upload.client.options().parts_at_once, upload.parts.size());
  for (std::size_t i = 0; i < worker_count; ++i) {
    CO_TRY(auto holder, gate.hold());
    async::spawn(upload.client.executor(), std::move(holder), "s3client part", base::null_log(),
                 put_parts(upload));
  }
  CO_TRY_VOID(co_await gate.close());
  if (upload.failure) co_return *upload.failure;
  co_return base::Result<void>{};
}

bool is_condition(std::string_view name) {
  return base::equals_ignoring_case(name, "if-match") || base::equals_ignoring_case(name, "if-none-match");
}

async::Task<std::string> begin(const Upload& upload, const PutOptions& options) {
  Call call = call_on(upload, "POST", {{"uploads", ""}});
  for (const base::HttpField& field : options.headers) {
    if (!is_condition(field.name)) call.headers.add(field.name, field.value);
  }
  if (options.trailer_checksum) call.headers.set("x-amz-checksum-algorithm", "CRC64NVME");
  CO_TRY(const Reply reply, co_await upload.client.succeed(std::move(call)));
  co_return parse_upload_id(reply.body);
}

async::Task<PutResult> complete(const Upload& upload, const PutOptions& options) {
  Call call = call_on(upload, "POST", {{"uploadId", upload.id}});
  for (const base::HttpField& field : options.headers) {
    if (is_condition(field.name)) call.headers.add(field.name, field.value);
  }
  call.body = write_complete_request(upload.parts);
  CO_TRY(Reply reply, co_await upload.client.succeed(std::move(call)));
  // S3 may begin a 200 before it knows that the upload cannot be completed.
  if (s3::parse_error_document(reply.body)) {
    reply.head.status = 500;
    co_return to_error(reply, call_on(upload, "POST", {}));
  }
  PutResult result;
  CO_TRY(result.etag, parse_complete_result(reply.body));
  result.head = std::move(reply.head);
  co_return result;
}

/// A completion that is sent again finds no upload when the first one succeeded and its answer was lost. The
/// object tells.
async::Task<PutResult> complete_surely(const Upload& upload, const PutOptions& options) {
  base::Result<PutResult> result = co_await complete(upload, options);
  const bool upload_is_gone = !result && result.error().code == base::Code::not_found &&
                              result.error().scope == base::Scope::connection;
  if (!upload_is_gone) co_return result;
  std::vector<s3::PartDigest> digests;
  for (const s3::CompletedPart& part : upload.parts)
    digests.push_back({.size = 0, .etag = part.etag, .checksums = {}});
  base::Result<HeadResult> head = co_await upload.client.head(upload.bucket, upload.key);
  if (!head || head->etag != s3::multipart_etag(digests)) co_return result;
  PutResult found{.etag = std::move(head->etag), .head = std::move(head->head)};
  co_return found;
}

async::Task<PutResult> put_and_complete(Upload& upload, const PutOptions& options) {
  CO_TRY_VOID(co_await put_all_parts(upload));
  co_return co_await complete_surely(upload, options);
}

std::uint64_t part_bytes_for(std::uint64_t size, std::uint64_t wanted) {
  return std::max(wanted, (size + s3::kPartNumberMax - 1) / s3::kPartNumberMax);
}

}  // namespace

async::Task<PutResult> put_multipart(ClientImpl& client, std::string bucket, std::string key,
                                     Content& content, PutOptions options) {
  Upload upload{.client = client,
                .content = content,
                .bucket = std::move(bucket),
                .key = std::move(key),
                .id = {},
                .parts = {},
                .failure = {}};
  upload.part_bytes = part_bytes_for(content.size(), client.options().part_bytes);
  upload.trailer_checksum = options.trailer_checksum;
  const std::uint64_t count = (content.size() + upload.part_bytes - 1) / upload.part_bytes;
  for (std::uint32_t number = 1; number <= count; ++number)
    upload.parts.push_back({.part_number = number, .etag = {}, .checksums = {}});
  CO_TRY(upload.id, co_await begin(upload, options));
  base::Result<PutResult> result = co_await put_and_complete(upload, options);
  if (!result) {
    Call abort = call_on(upload, "DELETE", {{"uploadId", upload.id}});
    // The put has failed already; an upload that could not be aborted is swept by the server's lifecycle.
    (void)co_await client.call(std::move(abort));
  }
  co_return result;
}

}  // namespace reelway::s3client
