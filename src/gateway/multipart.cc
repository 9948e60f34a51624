// Multipart uploads: create, parts, abort, and the two lists. Completion is in complete.cc.

#include "gateway/multipart.h"

#include <algorithm>

#include "gateway/convert.h"
#include "gateway/put.h"
#include "gateway/source.h"
#include "s3/xml.h"

namespace reelway::gateway {

s3::Outcome<object::Multipart*> uploads_of(const Call& call) {
  if (object::Multipart* uploads = call.store().multipart()) return uploads;
  return s3::fault(s3::ErrorCode::not_implemented);
}

s3::Fault upload_fault(const Call& call, const base::Error& error, std::string_view upload_id) {
  if (object::is_upload_not_found(error))
    return s3::fault(s3::ErrorCode::no_such_upload, {{"UploadId", std::string(upload_id)}});
  return s3::to_fault(error, call.request.bucket, call.request.key);
}

namespace {

async::Task<Stored> put_part(object::Multipart& uploads, object::PutPartRequest request,
                             object::ByteSource& source) {
  CO_TRY(auto part, co_await uploads.put_part(std::move(request), source));
  co_return Stored{.etag = std::move(part.etag), .checksums = std::move(part.checksums)};
}

/// What was declared when the upload was created; one part is read at most.
async::net::awaitable<s3::Outcome<object::UploadInfo>> find_upload(Call& call, object::Multipart& uploads,
                                                                   const std::string& upload_id) {
  object::ListPartsRequest request{
      .name = call.name(), .upload_id = upload_id, .after = s3::kPartNumberMax, .count_max = 1};
  auto page = co_await uploads.list_parts(std::move(request));
  if (!page) co_return upload_fault(call, page.error(), upload_id);
  co_return std::move(page->upload);
}

bool declares_checksum(const s3::Integrity& integrity) {
  return integrity.checksum || integrity.trailer || integrity.algorithm;
}

s3::UploadEntry to_entry(const Call& call, const object::UploadInfo& upload) {
  return {.key = upload.name.key,
          .upload_id = upload.upload_id,
          .initiated = upload.initiated,
          .owner = call.owner(),
          .storage_class = upload.attributes.storage_class,
          .checksum_kind = upload.checksum_kind,
          .checksum_full_object = upload.checksum_full_object};
}

}  // namespace

ReplyTask handle(Call& call, const s3::CreateMultipartUpload& operation) {
  CO_TRY(object::Multipart* const uploads, uploads_of(call));
  object::CreateUploadRequest request{
      .name = call.name(),
      .attributes = to_object(operation.attributes, operation.storage_class, call.principal.account_id),
      .checksum_kind = operation.checksum_kind,
      .checksum_full_object = operation.checksum_full_object};
  CO_TRY(const auto upload, or_fault(call, co_await uploads->create_upload(std::move(request))));
  Reply reply =
      call.xml(200, s3::write_initiate_multipart(call.request.bucket, call.request.key, upload.upload_id));
  if (operation.checksum_kind) {
    reply.head.fields.set("x-amz-checksum-algorithm",
                          std::string(s3::checksum_algorithm(*operation.checksum_kind)));
    reply.head.fields.set("x-amz-checksum-type",
                          operation.checksum_full_object ? "FULL_OBJECT" : "COMPOSITE");
  }
  co_return reply;
}

ReplyTask handle(Call& call, const s3::UploadPart& operation) {
  CO_TRY(object::Multipart* const uploads, uploads_of(call));
  std::optional<base::ChecksumKind> also;
  if (!declares_checksum(operation.integrity)) {
    CO_TRY(const auto upload, co_await find_upload(call, *uploads, operation.upload_id));
    also = upload.checksum_kind;
  }
  const StoreCall store = [&](object::ByteSource& source, object::Sealer seal) {
    object::PutPartRequest request{.name = call.name(),
                                   .upload_id = operation.upload_id,
                                   .part_number = operation.part_number,
                                   .seal = std::move(seal)};
    return put_part(*uploads, std::move(request), source);
  };
  auto reply = co_await receive_object(call, operation.integrity, also, store);
  if (!reply && reply.error().code == s3::ErrorCode::no_such_upload)
    reply.error().fields = {{"UploadId", operation.upload_id}};
  co_return reply;
}

ReplyTask handle(Call& call, const s3::UploadPartCopy& operation) {
  CO_TRY(object::Multipart* const uploads, uploads_of(call));
  CO_TRY(const auto upload, co_await find_upload(call, *uploads, operation.upload_id));
  CO_TRY(const auto source, co_await find_source(call, operation.source, operation.source_conditions));
  if (!operation.range && source.size > s3::kObjectBytesMax) {
    co_return s3::fault_saying(
        s3::ErrorCode::invalid_request,
        "The specified copy source is larger than the maximum allowable size for a copy source: 5368709120");
  }
  if (operation.range && operation.range->last.value_or(0) >= source.size) {
    co_return s3::invalid_argument(
        "Range specified is not valid for source object of size: " + std::to_string(source.size),
        "x-amz-copy-source-range",
        std::string(call.exchange.head().fields.get_or("x-amz-copy-source-range", "")));
  }
  object::GetRequest get{
      .name = source.name, .conditions = {}, .range = to_object(operation.range), .part_number = {}};
  if (!source.etag.empty()) get.conditions.if_match = {source.etag};
  const auto reader = co_await call.store().get(std::move(get));
  if (!reader) co_return source_fault(operation.source, reader.error());
  const StoreCall store = [&](object::ByteSource& bytes, object::Sealer seal) {
    object::PutPartRequest request{.name = call.name(),
                                   .upload_id = operation.upload_id,
                                   .part_number = operation.part_number,
                                   .seal = std::move(seal)};
    return put_part(*uploads, std::move(request), bytes);
  };
  transfer::UploadRules rules{.etag = call.options().etag,
                              .integrity = {},
                              .sha256 = {},
                              .also = upload.checksum_kind,
                              .trailer = {}};
  CO_TRY(const auto stored, co_await store_bytes(call, **reader, std::move(rules), store));
  co_return call.xml(
      200, s3::write_copy_part(stored.etag, call.parts().clock.now(), shown_checksums(stored.checksums)));
}

ReplyTask handle(Call& call, const s3::AbortMultipartUpload& operation) {
  CO_TRY(object::Multipart* const uploads, uploads_of(call));
  const auto aborted = co_await uploads->abort_upload(call.name(), operation.upload_id);
  if (!aborted) co_return upload_fault(call, aborted.error(), operation.upload_id);
  co_return call.reply(204);
}

ReplyTask handle(Call& call, const s3::ListParts& operation) {
  CO_TRY(object::Multipart* const uploads, uploads_of(call));
  object::ListPartsRequest request{.name = call.name(),
                                   .upload_id = operation.upload_id,
                                   .after = operation.part_number_marker,
                                   .count_max = std::min(operation.max_parts, s3::kPageMax)};
  const auto page = co_await uploads->list_parts(std::move(request));
  if (!page) co_return upload_fault(call, page.error(), operation.upload_id);
  s3::ListPartsResult result{.bucket = call.request.bucket,
                             .key = call.request.key,
                             .upload_id = operation.upload_id,
                             .owner = call.owner(),
                             .storage_class = page->upload.attributes.storage_class,
                             .checksum_kind = page->upload.checksum_kind,
                             .checksum_full_object = page->upload.checksum_full_object,
                             .part_number_marker = operation.part_number_marker,
                             .max_parts = operation.max_parts,
                             .truncated = page->truncated,
                             .encode_url = operation.encode_url,
                             .parts = {}};
  for (const auto& part : page->parts) {
    result.parts.push_back({.part_number = part.part_number,
                            .size = part.size,
                            .etag = part.etag,
                            .last_modified = part.last_modified,
                            .checksums = shown_checksums(part.checksums)});
  }
  co_return call.xml(200, s3::write_list_parts(result));
}

ReplyTask handle(Call& call, const s3::ListMultipartUploads& operation) {
  CO_TRY(object::Multipart* const uploads, uploads_of(call));
  object::ListUploadsRequest request{.bucket = call.request.bucket,
                                     .prefix = operation.prefix,
                                     .delimiter = operation.delimiter,
                                     .key_marker = operation.key_marker,
                                     .upload_id_marker = operation.upload_id_marker,
                                     .count_max = std::min(operation.max_uploads, s3::kPageMax)};
  CO_TRY(const auto page, or_fault(call, co_await uploads->list_uploads(std::move(request))));
  s3::ListUploadsResult result{.bucket = call.request.bucket,
                               .prefix = operation.prefix,
                               .delimiter = operation.delimiter,
                               .key_marker = operation.key_marker,
                               .upload_id_marker = operation.upload_id_marker,
                               .next_key_marker = page.next_key_marker,
                               .next_upload_id_marker = page.next_upload_id_marker,
                               .max_uploads = operation.max_uploads,
                               .truncated = page.truncated,
                               .encode_url = operation.encode_url,
                               .uploads = {},
                               .common_prefixes = page.common_prefixes};
  for (const auto& upload : page.uploads) result.uploads.push_back(to_entry(call, upload));
  co_return call.xml(200, s3::write_list_uploads(result));
}

}  // namespace reelway::gateway
