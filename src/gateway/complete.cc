// CompleteMultipartUpload: everything about the parts is checked against the store's list before anything is
// joined; then the join runs apart from the request, so that a slow one can keep its connection alive with
// white space, and a client that goes away does not stop it halfway.

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <map>

#include "async/apart.h"
#include "base/encoding.h"
#include "gateway/convert.h"
#include "gateway/multipart.h"
#include "s3/multipart.h"
#include "s3/xml.h"

namespace reelway::gateway {

namespace {

constexpr std::string_view kXmlDeclaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";

using Parts = std::map<std::uint32_t, object::PartInfo>;

struct Upload {
  object::UploadInfo info;
  Parts parts;
};

async::net::awaitable<s3::Outcome<Upload>> list_all_parts(Call& call, object::Multipart& uploads,
                                                          const std::string& upload_id) {
  Upload upload;
  std::uint32_t after = 0;
  while (true) {  // at most kPartNumberMax / kPageMax pages
    object::ListPartsRequest request{
        .name = call.name(), .upload_id = upload_id, .after = after, .count_max = s3::kPageMax};
    auto page = co_await uploads.list_parts(std::move(request));
    if (!page) co_return upload_fault(call, page.error(), upload_id);
    for (auto& part : page->parts) {
      after = part.part_number;
      upload.parts.emplace(part.part_number, std::move(part));
    }
    if (!page->truncated || page->parts.empty()) {
      upload.info = std::move(page->upload);
      co_return upload;
    }
  }
}

s3::Fault invalid_part(const s3::CompleteMultipartUpload& operation, const s3::CompletedPart& part) {
  return s3::fault(s3::ErrorCode::invalid_part, {{"UploadId", operation.upload_id},
                                                 {"PartNumber", std::to_string(part.part_number)},
                                                 {"ETag", part.etag}});
}

bool checksums_agree(const s3::CompletedPart& named, const object::PartInfo& stored) {
  return std::ranges::all_of(named.checksums, [&](const s3::Checksum& checksum) {
    const auto found = std::ranges::find(stored.checksums, checksum.kind, &object::Checksum::kind);
    return found != stored.checksums.end() && found->value == checksum.value;
  });
}

/// The named parts as the store has them, in order.
s3::Outcome<std::vector<s3::PartDigest>> check_parts(const s3::CompleteMultipartUpload& operation,
                                                     const std::vector<s3::CompletedPart>& named,
                                                     const Parts& parts) {
  std::vector<s3::PartDigest> digests;
  std::uint64_t total = 0;
  for (std::size_t index = 0; index < named.size(); ++index) {
    const auto& part = named[index];
    const auto found = parts.find(part.part_number);
    if (found == parts.end() || found->second.etag != part.etag || !checksums_agree(part, found->second))
      return invalid_part(operation, part);
    const auto& stored = found->second;
    if (index + 1 < named.size() && stored.size < s3::kPartBytesMin) {
      return s3::fault(s3::ErrorCode::entity_too_small,
                       {{"ProposedSize", std::to_string(stored.size)},
                        {"MinSizeAllowed", std::to_string(s3::kPartBytesMin)},
                        {"PartNumber", std::to_string(part.part_number)},
                        {"ETag", part.etag}});
    }
    total += stored.size;
    digests.push_back({.size = stored.size, .etag = stored.etag, .checksums = to_s3(stored.checksums)});
  }
  if (operation.object_size && *operation.object_size != total) {
    return s3::fault_saying(s3::ErrorCode::invalid_request,
                            "The provided 'x-amz-mp-object-size' header does not match what was computed.");
  }
  return digests;
}

/// The upload's own checksum, composite or of the whole, where it declared one.
s3::Outcome<std::optional<s3::Checksum>> declared_checksum(const object::UploadInfo& upload,
                                                           std::span<const s3::PartDigest> parts) {
  if (!upload.checksum_kind) return std::optional<s3::Checksum>{};
  const auto kind = *upload.checksum_kind;
  auto checksum = upload.checksum_full_object ? s3::full_object_checksum(kind, parts)
                                              : s3::composite_checksum(kind, parts);
  if (!checksum) {
    return s3::fault_saying(s3::ErrorCode::invalid_request,
                            "The upload was created using a checksum algorithm that one of its parts lacks.");
  }
  return std::optional(std::move(*checksum));
}

s3::Outcome<void> check_claims(const s3::CompleteMultipartUpload& operation, const object::UploadInfo& upload,
                               const std::vector<object::Checksum>& computed) {
  if (operation.checksum_full_object && upload.checksum_kind &&
      *operation.checksum_full_object != upload.checksum_full_object) {
    return s3::fault_saying(s3::ErrorCode::invalid_request,
                            "The upload was created with another checksum type than the one specified.");
  }
  if (!operation.checksum) return {};
  const auto& claimed = *operation.checksum;
  const auto found = std::ranges::find(computed, claimed.kind, &object::Checksum::kind);
  if (found == computed.end()) {
    return s3::fault_saying(s3::ErrorCode::invalid_request,
                            "The upload was created with another checksum algorithm than the one specified.");
  }
  // The "-<parts>" of a composite value may be left out by the client.
  if (found->value == claimed.value) return {};
  return s3::fault_saying(s3::ErrorCode::bad_digest,
                          "The " + std::string(s3::checksum_algorithm(claimed.kind)) +
                              " you specified did not match the calculated checksum.");
}

s3::Outcome<object::Seal> make_seal(const s3::CompleteMultipartUpload& operation,
                                    const object::UploadInfo& upload, std::span<const s3::PartDigest> parts) {
  object::Seal seal{.etag = s3::multipart_etag(parts), .checksums = {}};
  TRY(const auto declared, declared_checksum(upload, parts));
  if (declared) seal.checksums.push_back(to_object(*declared));
  const bool has_crc64 = declared && declared->kind == base::ChecksumKind::crc64nvme;
  if (const auto whole = s3::full_object_checksum(base::ChecksumKind::crc64nvme, parts);
      whole && !has_crc64) {
    seal.checksums.push_back(to_object(*whole));
  }
  TRY_VOID(check_claims(operation, upload, seal.checksums));
  return seal;
}

/// A client that did not hear the answer asks again: the upload is gone, and the object is what those parts
/// make.
async::net::awaitable<std::optional<object::ObjectInfo>> find_completed(
    Call& call, const std::vector<s3::CompletedPart>& named) {
  std::vector<s3::PartDigest> parts;
  for (const auto& part : named) parts.push_back({.size = 0, .etag = part.etag, .checksums = {}});
  object::HeadRequest request{.name = call.name(), .conditions = {}};
  auto info = co_await call.store().head(std::move(request));
  if (!info || info->etag != s3::multipart_etag(parts)) co_return std::nullopt;
  co_return std::move(*info);
}

using Join = async::Apart<object::ObjectInfo>;

std::string completed_document(const Call& call, const object::ObjectInfo& info) {
  return s3::write_complete_multipart(
      "/" + call.request.bucket + "/" + base::percent_encode(call.request.key, true), call.request.bucket,
      call.request.key, info.etag, shown_checksums(info.checksums));
}

s3::Fault complete_fault(const Call& call, const s3::CompleteMultipartUpload& operation,
                         const base::Error& error) {
  if (error.code == base::Code::precondition_failed)
    return write_condition_fault(call, error, operation.conditions);
  if (error.code == base::Code::invalid_argument)
    return s3::fault(s3::ErrorCode::invalid_part, {{"UploadId", operation.upload_id}});
  return upload_fault(call, error, operation.upload_id);
}

/// What the client is told. Gone means that another completion of the same parts was faster.
async::net::awaitable<s3::Outcome<std::string>> told(Call& call, const s3::CompleteMultipartUpload& operation,
                                                     const std::vector<s3::CompletedPart>& named,
                                                     const base::Result<object::ObjectInfo>& result) {
  if (result) co_return completed_document(call, *result);
  if (object::is_upload_not_found(result.error())) {
    if (const auto completed = co_await find_completed(call, named))
      co_return completed_document(call, *completed);
  }
  co_return complete_fault(call, operation, result.error());
}

/// The rest of an answer whose head (200) went out before the outcome was known: spaces until then, and a
/// document that says what became of it.
async::Task<void> stream_outcome(Call& call, const s3::CompleteMultipartUpload& operation,
                                 const std::vector<s3::CompletedPart>& named, Join& join) {
  base::HttpResponseHead head = call.head(200);
  head.fields.set("Content-Type", "application/xml");
  CO_TRY_VOID(co_await call.exchange.start_response(std::move(head)));
  CO_TRY_VOID(co_await call.exchange.write_body(base::as_bytes(kXmlDeclaration)));
  while (!join.result()) {
    CO_TRY_VOID(co_await call.exchange.write_body(base::as_bytes(" ")));
    CO_TRY_VOID(co_await join.wait(call.options().keep_alive_interval));
  }
  const s3::ErrorContext context{.resource = "/" + call.request.bucket + "/" + call.request.key,
                                 .request_id = call.request_id,
                                 .host_id = {}};
  const auto outcome = co_await told(call, operation, named, *join.result());
  std::string document = outcome ? *outcome : s3::error_document(outcome.error(), context);
  if (document.starts_with(kXmlDeclaration)) document.erase(0, kXmlDeclaration.size());
  CO_TRY_VOID(co_await call.exchange.write_body(base::as_bytes(document)));
  co_return co_await call.exchange.end_body();
}

}  // namespace

ReplyTask handle(Call& call, const s3::CompleteMultipartUpload& operation) {
  CO_TRY(object::Multipart* const uploads, uploads_of(call));
  CO_TRY(const std::string document, co_await read_document(call, {}));
  CO_TRY(const auto named, s3::parse_complete_multipart_upload(document));
  auto upload = co_await list_all_parts(call, *uploads, operation.upload_id);
  if (!upload) {
    if (upload.error().code != s3::ErrorCode::no_such_upload) co_return std::move(upload).error();
    const auto completed = co_await find_completed(call, named);
    if (!completed) co_return std::move(upload).error();
    co_return call.xml(200, completed_document(call, *completed));
  }
  CO_TRY(const auto parts, check_parts(operation, named, upload->parts));
  CO_TRY(auto seal, make_seal(operation, upload->info, parts));
  object::CompleteRequest request{.name = call.name(),
                                  .upload_id = operation.upload_id,
                                  .parts = {},
                                  .seal = std::move(seal),
                                  .conditions = to_object(operation.conditions)};
  for (const auto& part : named) request.parts.push_back(upload->parts.at(part.part_number));
  auto holder = call.background().hold();
  if (!holder) co_return s3::fault(s3::ErrorCode::service_unavailable);
  const async::Executor executor = co_await async::net::this_coro::executor;
  auto join = Join::start(executor, std::move(*holder), "complete multipart upload", call.parts().log,
                          uploads->complete_upload(std::move(request)));
  CO_TRY_VOID(or_fault(call, co_await join.wait(call.options().keep_alive_interval)));
  if (!join.result()) {
    Reply reply{.head = {}, .body = {}, .sent = true, .broken = {}};
    if (auto streamed = co_await stream_outcome(call, operation, named, join); !streamed)
      reply.broken = std::move(streamed).error();
    co_return reply;
  }
  CO_TRY(std::string answer, co_await told(call, operation, named, *join.result()));
  co_return call.xml(200, std::move(answer));
}

}  // namespace reelway::gateway
