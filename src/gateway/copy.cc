// CopyObject: by the store where it can (reflink, in the kernel), by reading where the client wants a
// checksum that the source lacks.

#include <algorithm>

#include "gateway/convert.h"
#include "gateway/put.h"
#include "gateway/source.h"
#include "iam/authorize.h"
#include "s3/xml.h"

namespace reelway::gateway {

s3::Fault source_fault(const s3::CopySource& source, const base::Error& error) {
  if (error.code == base::Code::precondition_failed || error.code == base::Code::not_modified) {
    return s3::fault(s3::ErrorCode::precondition_failed, {{"Condition", "x-amz-copy-source-If-Match"}});
  }
  return s3::to_fault(error, source.bucket, source.key);
}

async::net::awaitable<s3::Outcome<object::ObjectInfo>> find_source(Call& call, const s3::CopySource& source,
                                                                   const s3::Conditions& conditions) {
  if (!iam::allow(call.principal, "s3:GetObject", {source.bucket, source.key}))
    co_return s3::fault(s3::ErrorCode::access_denied);
  if (!source.version_id.empty() && source.version_id != "null") {
    co_return s3::fault(s3::ErrorCode::no_such_version,
                        {{"Key", source.key}, {"VersionId", source.version_id}});
  }
  if (call.request.source_expected_bucket_owner) {
    const auto bucket = co_await call.store().head_bucket(source.bucket);
    if (!bucket) co_return source_fault(source, bucket.error());
    if (bucket->owner != *call.request.source_expected_bucket_owner)
      co_return s3::fault(s3::ErrorCode::access_denied);
  }
  object::HeadRequest request{.name = {source.bucket, source.key}, .conditions = to_object(conditions)};
  auto info = co_await call.store().head(std::move(request));
  if (!info) co_return source_fault(source, info.error());
  if (info->residency == object::Residency::evicted) {
    co_return s3::fault(s3::ErrorCode::invalid_object_state, {{"StorageClass", shown_class(*info)}});
  }
  co_return std::move(*info);
}

namespace {

bool has_checksum(const object::ObjectInfo& info, base::ChecksumKind kind) {
  return std::ranges::find(info.checksums, kind, &object::Checksum::kind) != info.checksums.end();
}

bool is_onto_itself(const Call& call, const s3::CopyObject& operation) {
  return operation.source.bucket == call.request.bucket && operation.source.key == call.request.key &&
         !operation.replace_metadata && !operation.storage_class;
}

async::Task<Stored> put_for_copy(object::Store& store, object::PutRequest request, object::ByteSource& source,
                                 std::optional<object::ObjectInfo>& stored) {
  CO_TRY(stored, co_await store.put(std::move(request), source));
  co_return Stored{.etag = stored->etag, .checksums = stored->checksums};
}

object::Attributes target_attributes(const Call& call, const s3::CopyObject& operation,
                                     const object::ObjectInfo& source) {
  object::Attributes attributes = operation.replace_metadata
                                      ? to_object(operation.attributes, "STANDARD", call.principal.account_id)
                                      : source.attributes;
  attributes.storage_class = operation.storage_class.value_or("STANDARD");
  return attributes;
}

/// Reads the source and stores it anew, with the checksum asked for.
async::net::awaitable<s3::Outcome<object::ObjectInfo>> copy_by_reading(Call& call,
                                                                       const s3::CopyObject& operation,
                                                                       const object::ObjectInfo& source) {
  object::GetRequest request{.name = source.name, .conditions = {}, .range = {}, .part_number = {}};
  if (!source.etag.empty())
    request.conditions.if_match = {source.etag};  // the object that was looked at, not its successor
  const auto reader = co_await call.store().get(std::move(request));
  if (!reader) co_return source_fault(operation.source, reader.error());
  std::optional<object::ObjectInfo> stored;
  const StoreCall store = [&](object::ByteSource& bytes, object::Sealer seal) {
    object::PutRequest put{.name = call.name(),
                           .attributes = target_attributes(call, operation, source),
                           .conditions = to_object(operation.conditions),
                           .seal = std::move(seal)};
    return put_for_copy(call.store(), std::move(put), bytes, stored);
  };
  transfer::UploadRules rules{.etag = call.options().etag,
                              .integrity = {},
                              .sha256 = {},
                              .also = operation.checksum_kind,
                              .trailer = {}};
  CO_TRY(const auto done, co_await store_bytes(call, **reader, std::move(rules), store));
  co_return std::move(*stored);
}

async::net::awaitable<s3::Outcome<object::ObjectInfo>> copy_by_store(Call& call,
                                                                     const s3::CopyObject& operation,
                                                                     const object::ObjectInfo& source) {
  object::CopyRequest request{.source = source.name,
                              .source_conditions = {},
                              .target = call.name(),
                              .target_conditions = to_object(operation.conditions),
                              .replace_attributes = {},
                              .storage_class = operation.storage_class.value_or("STANDARD")};
  if (!source.etag.empty()) request.source_conditions.if_match = {source.etag};
  if (operation.replace_metadata) request.replace_attributes = target_attributes(call, operation, source);
  auto copied = co_await call.store().copy(std::move(request));
  if (!copied) co_return write_condition_fault(call, copied.error(), operation.conditions);
  co_return std::move(*copied);
}

}  // namespace

ReplyTask handle(Call& call, const s3::CopyObject& operation) {
  if (is_onto_itself(call, operation)) {
    co_return s3::fault_saying(
        s3::ErrorCode::invalid_request,
        "This copy request is illegal because it is trying to copy an object to itself without changing the "
        "object's "
        "metadata, storage class, website redirect location or encryption attributes.");
  }
  CO_TRY(const auto source, co_await find_source(call, operation.source, operation.source_conditions));
  if (source.size > s3::kObjectBytesMax) {
    co_return s3::fault_saying(
        s3::ErrorCode::invalid_request,
        "The specified copy source is larger than the maximum allowable size for a copy source: 5368709120");
  }
  const bool must_read = operation.checksum_kind && !has_checksum(source, *operation.checksum_kind);
  auto copied = must_read ? co_await copy_by_reading(call, operation, source)
                          : co_await copy_by_store(call, operation, source);
  if (!copied) co_return std::move(copied).error();
  co_return call.xml(
      200, s3::write_copy_object(copied->etag, copied->last_modified, shown_checksums(copied->checksums)));
}

}  // namespace reelway::gateway
