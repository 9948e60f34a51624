// XML bodies and the small checks that several handlers share.

#include <algorithm>

#include "base/checksum.h"
#include "base/encoding.h"
#include "gateway/call.h"
#include "transfer/http_source.h"

namespace reelway::gateway {

namespace {

s3::Outcome<void> check_document(const Call& call, const s3::Integrity& integrity, base::ByteView body) {
  if (call.signs_hash()) {
    const auto computed = base::digest_of(base::ChecksumKind::sha256, body);
    if (!std::ranges::equal(computed, call.verified.payload.sha256)) {
      return s3::fault(s3::ErrorCode::x_amz_content_sha256_mismatch,
                       {{"ClientComputedContentSHA256", base::to_hex(call.verified.payload.sha256)},
                        {"S3ComputedContentSHA256", base::to_hex(computed)}});
    }
  }
  if (integrity.content_md5 && base::digest_of(base::ChecksumKind::md5, body) != *integrity.content_md5) {
    return s3::fault(s3::ErrorCode::bad_digest);
  }
  if (integrity.checksum && base::digest_of(integrity.checksum->kind, body) != integrity.checksum->value) {
    return s3::fault(s3::ErrorCode::bad_digest);
  }
  return {};
}

}  // namespace

async::net::awaitable<s3::Outcome<std::string>> read_document(Call& call, const s3::Integrity& integrity) {
  const auto too_long = s3::fault(s3::ErrorCode::max_message_length_exceeded,
                                  {{"MaxMessageLengthBytes", std::to_string(call.row.body_max)}});
  const auto& head = call.exchange.head();
  if (head.content_length.value_or(0) > call.row.body_max) co_return too_long;
  std::string body;
  std::array<std::byte, 8192> piece;
  while (true) {
    const auto count = co_await call.exchange.read_body(piece);
    if (!count) co_return s3::to_fault(count.error());
    if (*count == 0) break;
    if (body.size() + *count > call.row.body_max) co_return too_long;
    body += base::as_text(base::ByteView(piece).first(*count));
  }
  CO_TRY_VOID(check_document(call, integrity, base::as_bytes(body)));
  co_return body;
}

s3::Outcome<void> check_version(const Call& call, std::string_view version_id) {
  if (version_id.empty() || version_id == "null") return {};
  return s3::fault(s3::ErrorCode::no_such_version,
                   {{"Key", call.request.key}, {"VersionId", std::string(version_id)}});
}

s3::Fault write_condition_fault(const Call& call, const base::Error& error,
                                const s3::Conditions& conditions) {
  if (error.code != base::Code::precondition_failed)
    return s3::to_fault(error, call.request.bucket, call.request.key);
  return s3::fault(s3::ErrorCode::precondition_failed,
                   {{"Condition", conditions.if_match.empty() ? "If-None-Match" : "If-Match"}});
}

}  // namespace reelway::gateway
