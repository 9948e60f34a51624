#pragma once
// One request on its way through the gateway, and the words that handlers are written in. A handler gets a
// Call and its operation, and returns a Reply (head and a small body still to be sent, or word that
// everything was sent) or the Fault that the client shall see.

#include <optional>
#include <string>
#include <string_view>

#include "gateway/gateway.h"
#include "s3/response.h"

namespace reelway::gateway {

struct Reply {
  base::HttpResponseHead head;
  std::string body;
  bool sent = false;  ///< the handler has answered by itself
  std::optional<base::Error>
      broken;  ///< an answer that was begun could not be ended: the connection must close
};

using ReplyTask = async::net::awaitable<s3::Outcome<Reply>>;

struct Call {
  Gateway& gateway;
  http::Exchange& exchange;
  const s3::Request& request;
  const s3::OperationRow& row;
  const iam::Principal& principal;
  const s3::Verified& verified;
  const std::string& request_id;

  const GatewayParts& parts() const { return gateway.parts_; }
  const GatewayOptions& options() const { return gateway.options_; }
  object::Store& store() const { return gateway.parts_.store; }
  async::Gate& background() const { return gateway.background_; }
  object::ObjectName name() const { return {request.bucket, request.key}; }
  bool signs_hash() const { return verified.payload.form == s3::PayloadForm::signed_hash; }
  s3::Owner owner() const { return {principal.account_id, principal.display_name}; }

  /// A head with the fields that every answer bears.
  base::HttpResponseHead head(int status) const;
  Reply reply(int status) const { return {.head = head(status), .body = {}, .sent = false, .broken = {}}; }
  Reply xml(int status, std::string document) const;
};

void add_standard_fields(base::HttpFields& fields, std::string_view request_id, std::string_view host_id);

/// The value, or what the error means to the client who asked for this bucket and key.
template <class T>
s3::Outcome<T> or_fault(const Call& call, base::Result<T> result) {
  if (result) {
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      return std::move(*result);
    }
  }
  return s3::to_fault(result.error(), call.request.bucket, call.request.key);
}

/// Reads and checks (length, signed hash, Content-MD5, checksum) the XML body of an operation.
async::net::awaitable<s3::Outcome<std::string>> read_document(Call& call, const s3::Integrity& integrity);

/// No version but the current one exists: NoSuchVersion for any other.
s3::Outcome<void> check_version(const Call& call, std::string_view version_id);

/// "If-Match" or "If-None-Match": which of a write's conditions failed.
s3::Fault write_condition_fault(const Call& call, const base::Error& error, const s3::Conditions& conditions);

// ---- one handler per operation ----

ReplyTask handle(Call& call, const s3::WellKnown& operation);
ReplyTask handle(Call& call, const s3::ListBuckets& operation);
ReplyTask handle(Call& call, const s3::CreateBucket& operation);
ReplyTask handle(Call& call, const s3::HeadBucket& operation);
ReplyTask handle(Call& call, const s3::DeleteBucket& operation);
ReplyTask handle(Call& call, const s3::GetBucketLocation& operation);
ReplyTask handle(Call& call, const s3::PutObject& operation);
ReplyTask handle(Call& call, const s3::GetObject& operation);
ReplyTask handle(Call& call, const s3::HeadObject& operation);
ReplyTask handle(Call& call, const s3::DeleteObject& operation);
ReplyTask handle(Call& call, const s3::CopyObject& operation);
ReplyTask handle(Call& call, const s3::DeleteObjects& operation);
ReplyTask handle(Call& call, const s3::ListObjects& operation);
ReplyTask handle(Call& call, const s3::ListObjectsV2& operation);
ReplyTask handle(Call& call, const s3::CreateMultipartUpload& operation);
ReplyTask handle(Call& call, const s3::UploadPart& operation);
ReplyTask handle(Call& call, const s3::UploadPartCopy& operation);
ReplyTask handle(Call& call, const s3::CompleteMultipartUpload& operation);
ReplyTask handle(Call& call, const s3::AbortMultipartUpload& operation);
ReplyTask handle(Call& call, const s3::ListParts& operation);
ReplyTask handle(Call& call, const s3::ListMultipartUploads& operation);
ReplyTask handle(Call& call, const s3::RestoreObject& operation);
ReplyTask handle(Call& call, const s3::DefaultConfiguration& operation);
ReplyTask handle(Call& call, const s3::Unsupported& operation);

}  // namespace reelway::gateway
