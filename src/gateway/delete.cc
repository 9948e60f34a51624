// DeleteObject and DeleteObjects.

#include "gateway/call.h"
#include "gateway/convert.h"
#include "iam/authorize.h"
#include "s3/xml.h"

namespace reelway::gateway {

namespace {

async::net::awaitable<s3::Outcome<void>> delete_entry(Call& call, const s3::DeleteEntry& entry) {
  if (!entry.version_id.empty() && entry.version_id != "null") {
    co_return s3::fault(s3::ErrorCode::no_such_version,
                        {{"Key", entry.key}, {"VersionId", entry.version_id}});
  }
  CO_TRY_VOID(s3::check_key(entry.key));
  if (!iam::allow(call.principal, "s3:DeleteObject", {call.request.bucket, entry.key})) {
    co_return s3::fault(s3::ErrorCode::access_denied);
  }
  object::RemoveRequest request{.name = {call.request.bucket, entry.key}, .conditions = {}};
  if (entry.etag) request.conditions.if_match = {*entry.etag};
  const auto removed = co_await call.store().remove(std::move(request));
  if (!removed) co_return s3::to_fault(removed.error(), call.request.bucket, entry.key);
  co_return s3::Outcome<void>{};
}

}  // namespace

ReplyTask handle(Call& call, const s3::DeleteObject& operation) {
  CO_TRY_VOID(check_version(call, operation.version_id));
  object::RemoveRequest request{.name = call.name(), .conditions = to_object(operation.conditions)};
  const auto removed = co_await call.store().remove(std::move(request));
  if (!removed) co_return write_condition_fault(call, removed.error(), operation.conditions);
  co_return call.reply(204);
}

ReplyTask handle(Call& call, const s3::DeleteObjects& operation) {
  CO_TRY(const std::string document, co_await read_document(call, operation.integrity));
  CO_TRY(const auto body, s3::parse_delete(document));
  CO_TRY(const auto bucket, or_fault(call, co_await call.store().head_bucket(call.request.bucket)));
  std::vector<s3::DeletedEntry> deleted;
  std::vector<s3::DeleteErrorEntry> errors;
  for (const auto& entry : body.objects) {
    auto done = co_await delete_entry(call, entry);
    if (done) {
      deleted.push_back({.key = entry.key, .version_id = entry.version_id});
    } else {
      errors.push_back({.key = entry.key, .version_id = entry.version_id, .fault = std::move(done).error()});
    }
  }
  co_return call.xml(200, s3::write_delete_result(deleted, errors, body.quiet));
}

}  // namespace reelway::gateway
