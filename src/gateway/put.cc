// PutObject, and the receiving of bytes that UploadPart shares with it.

#include "gateway/put.h"

#include "gateway/convert.h"
#include "gateway/plane_path.h"
#include "transfer/http_source.h"

namespace reelway::gateway {

namespace {

transfer::HttpSource make_source(const Call& call, std::uint64_t length, const s3::Integrity& integrity) {
  const auto form = call.verified.payload.form;
  if (!s3::is_chunked(form)) return transfer::HttpSource(call.exchange, length);
  s3::ChunkedOptions options{
      .form = form, .signing = call.verified.signing, .decoded_length = length, .trailer = integrity.trailer};
  return transfer::HttpSource(call.exchange, std::move(options));
}

transfer::UploadRules make_rules(const s3::Integrity& integrity, std::optional<base::ChecksumKind> also,
                                 transfer::EtagKind etag) {
  return {.etag = etag, .integrity = integrity, .sha256 = {}, .also = also, .trailer = {}};
}

Reply stored_reply(const Call& call, const Stored& stored) {
  Reply reply = call.reply(200);
  reply.head.fields.set("ETag", s3::quote_etag(stored.etag));
  s3::add_checksum_headers(reply.head.fields, shown_checksums(stored.checksums));
  return reply;
}

ReplyTask receive_in_band(Call& call, const s3::Integrity& integrity, std::optional<base::ChecksumKind> also,
                          const StoreCall& store) {
  CO_TRY(const std::uint64_t length, s3::object_length(call.exchange.head()));
  transfer::HttpSource source = make_source(call, length, integrity);
  transfer::UploadRules rules = make_rules(integrity, also, call.options().etag);
  if (call.signs_hash()) rules.sha256 = call.verified.payload.sha256;
  rules.trailer = [&source] { return source.trailer(); };
  auto stored = co_await store_bytes(call, source, std::move(rules), store);
  if (source.fault()) co_return *source.fault();
  if (!stored) co_return std::move(stored).error();
  call.parts().meter.count("reelway_request_bytes_total", static_cast<double>(length));
  co_return stored_reply(call, *stored);
}

/// A request that offers a window has no body, and its signed hash, if any, is that of nothing.
bool has_body(const Call& call) {
  const auto& head = call.exchange.head();
  if (head.chunked || head.content_length.value_or(0) > 0 || s3::is_chunked(call.verified.payload.form))
    return true;
  return call.signs_hash() && base::to_hex(call.verified.payload.sha256) != s3::kEmptySha256;
}

std::optional<std::uint64_t> crc64_of(const Stored& stored) {
  for (const auto& checksum : stored.checksums) {
    if (checksum.kind == base::ChecksumKind::crc64nvme)
      return base::parse_hex_u64(base::to_hex(checksum.value)).value_or(0);
  }
  return std::nullopt;
}

ReplyTask receive_by_plane(Call& call, const s3::Integrity& integrity, std::optional<base::ChecksumKind> also,
                           const StoreCall& store) {
  const auto& parts = call.parts();
  if (has_body(call)) co_return plane_fault(rdma::token_with_body());
  CO_TRY(const auto put,
         or_fault(call, co_await transfer::open_put(parts.planes, parts.pool, parts.clock,
                                                    call.request.rdma.token, call.exchange.peer(), {})));
  if (!put.detail.empty()) parts.log.write(base::LogLevel::info, "rdma", put.detail);
  if (!put.source) {
    count_plane(call, "put", put.refusal.status == 501 ? "declined" : "refused", 0);
    co_return plane_fault(put.refusal);
  }
  base::HttpRequestHead declared;
  declared.content_length = put.source->length();
  CO_TRY_VOID(s3::object_length(declared));
  auto stored =
      co_await store_bytes(call, *put.source, make_rules(integrity, also, call.options().rdma_etag), store);
  const auto fenced = co_await put.source->finish();
  if (put.source->failed() || !fenced) {
    count_plane(call, "put", "failed", 0);
    co_return plane_fault(rdma::transfer_failed());
  }
  if (!stored) co_return std::move(stored).error();
  const std::uint64_t bytes = put.source->length().value_or(0);
  count_plane(call, "put", "moved", bytes);
  Reply reply = stored_reply(call, *stored);
  const rdma::Answer answer = rdma::put_stored(bytes, crc64_of(*stored));
  for (const auto& field : answer.fields) reply.head.fields.set(field.name, field.value);
  co_return reply;
}

async::Task<Stored> put_into(object::Store& store, object::PutRequest request, object::ByteSource& source) {
  CO_TRY(auto info, co_await store.put(std::move(request), source));
  co_return Stored{.etag = std::move(info.etag), .checksums = std::move(info.checksums)};
}

/// Conditions that already fail are answered before the body is asked for; the store checks them again when
/// it publishes.
async::net::awaitable<s3::Outcome<void>> check_conditions_early(Call& call,
                                                                const s3::Conditions& conditions) {
  if (conditions.empty()) co_return s3::Outcome<void>{};
  object::HeadRequest request{.name = call.name(), .conditions = {}};
  const auto info = co_await call.store().head(std::move(request));
  if (!info && !object::is_object_not_found(info.error()))
    co_return s3::to_fault(info.error(), call.request.bucket, call.request.key);
  const auto checked = object::check_write_conditions(to_object(conditions), info ? &*info : nullptr);
  if (checked) co_return s3::Outcome<void>{};
  // If-Match on nothing is NoSuchKey, which needs the store's own word for it.
  if (!info) co_return s3::to_fault(info.error(), call.request.bucket, call.request.key);
  co_return write_condition_fault(call, checked.error(), conditions);
}

}  // namespace

async::net::awaitable<s3::Outcome<Stored>> store_bytes(Call& call, object::ByteSource& source,
                                                       transfer::UploadRules rules, const StoreCall& store) {
  object::Buffers buffers = source.buffers();
  if (!buffers) {
    auto taken = co_await transfer::take_upload_buffers(call.parts().pool, source.length(),
                                                        call.options().chunk_patience);
    if (!taken) co_return s3::fault(s3::ErrorCode::slow_down);
    buffers = std::move(*taken);
  }
  transfer::Upload upload(source, std::move(rules), std::move(buffers), call.parts().hash_pool);
  auto stored = co_await store(upload, upload.sealer());
  if (upload.fault()) co_return *upload.fault();
  co_return or_fault(call, std::move(stored));
}

ReplyTask receive_object(Call& call, const s3::Integrity& integrity, std::optional<base::ChecksumKind> also,
                         const StoreCall& store) {
  if (call.request.rdma) co_return co_await receive_by_plane(call, integrity, also, store);
  co_return co_await receive_in_band(call, integrity, also, store);
}

ReplyTask handle(Call& call, const s3::PutObject& operation) {
  CO_TRY_VOID(co_await check_conditions_early(call, operation.conditions));
  const auto attributes = to_object(operation.attributes, operation.storage_class, call.principal.account_id);
  const StoreCall store = [&](object::ByteSource& source, object::Sealer seal) {
    object::PutRequest request{.name = call.name(),
                               .attributes = attributes,
                               .conditions = to_object(operation.conditions),
                               .seal = std::move(seal)};
    return put_into(call.store(), std::move(request), source);
  };
  auto reply = co_await receive_object(call, operation.integrity, std::nullopt, store);
  if (!reply && reply.error().code == s3::ErrorCode::precondition_failed) {
    reply.error().fields = {
        {"Condition", operation.conditions.if_match.empty() ? "If-None-Match" : "If-Match"}};
  }
  if (reply && operation.storage_class != "STANDARD")
    reply->head.fields.set("x-amz-storage-class", operation.storage_class);
  co_return reply;
}

}  // namespace reelway::gateway
