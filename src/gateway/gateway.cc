#include "gateway/gateway.h"

#include <fmt/format.h>

#include "async/spawn.h"
#include "base/encoding.h"
#include "gateway/access_log.h"
#include "gateway/call.h"
#include "iam/authenticate.h"
#include "iam/authorize.h"

namespace reelway::gateway {

namespace {

std::string random_text(base::Rng& rng) {
  std::array<std::byte, 24> bytes{};
  rng.fill(bytes);
  return base::to_base64(bytes);
}

/// Faults that S3 answers before it looks at a signature: there is no bucket or key to ask permission for.
bool precedes_authentication(s3::ErrorCode code) {
  return code == s3::ErrorCode::invalid_uri || code == s3::ErrorCode::invalid_bucket_name;
}

s3::Outcome<void> check_expected_owner(const Call& call, const std::string& bucket_owner) {
  const auto& expected = call.request.expected_bucket_owner;
  if (expected && *expected != bucket_owner) return s3::fault(s3::ErrorCode::access_denied);
  return {};
}

}  // namespace

void add_standard_fields(base::HttpFields& fields, std::string_view request_id, std::string_view host_id) {
  fields.set("x-amz-request-id", std::string(request_id));
  fields.set("x-amz-id-2", std::string(host_id));
  fields.set("Server", "Reelway");
}

base::HttpResponseHead Call::head(int status) const {
  base::HttpResponseHead head{.status = status, .fields = {}, .content_length = {}};
  add_standard_fields(head.fields, request_id, gateway.host_id_);
  return head;
}

Reply Call::xml(int status, std::string document) const {
  Reply out = reply(status);
  out.head.fields.set("Content-Type", "application/xml");
  out.body = std::move(document);
  return out;
}

namespace {

ReplyTask dispatch(Call& call) {
  if (!iam::allow(call.principal, call.row.action, {call.request.bucket, call.request.key})) {
    co_return s3::fault(s3::ErrorCode::access_denied);
  }
  if (call.row.body != s3::BodyKind::object && s3::is_chunked(call.verified.payload.form)) {
    co_return s3::fault_saying(s3::ErrorCode::invalid_request,
                               "The x-amz-content-sha256 you specified is valid for object uploads only.");
  }
  if (call.request.expected_bucket_owner && !call.request.bucket.empty()) {
    CO_TRY(const auto bucket, or_fault(call, co_await call.store().head_bucket(call.request.bucket)));
    CO_TRY_VOID(check_expected_owner(call, bucket.owner));
  }
  co_return co_await std::visit([&call](const auto& operation) { return handle(call, operation); },
                                call.request.operation);
}

/// Sends an error document; HEAD and 304 have none.
async::Task<void> send_fault(http::Exchange& exchange, const s3::Fault& fault, base::HttpResponseHead head,
                             const s3::ErrorContext& context) {
  for (const auto& field : fault.headers) head.fields.set(field.name, field.value);
  const bool has_body = exchange.head().method != "HEAD" && fault.status() != 304;
  std::string document;
  if (has_body) {
    head.fields.set("Content-Type", "application/xml");
    document = s3::error_document(fault, context);
  }
  if (fault.status() != 304) head.content_length = document.size();
  co_return co_await exchange.respond(std::move(head), base::as_bytes(document));
}

async::Task<void> send_reply(http::Exchange& exchange, Reply reply) {
  if (!reply.head.content_length && reply.head.status != 204) reply.head.content_length = reply.body.size();
  co_return co_await exchange.respond(std::move(reply.head), base::as_bytes(reply.body));
}

}  // namespace

Gateway::Gateway(GatewayParts parts, GatewayOptions options)
    : parts_(parts),
      options_(std::move(options)),
      host_id_(random_text(parts.rng)),
      request_ids_(parts.rng.next_u64()) {}

Gateway::~Gateway() = default;

async::Task<void> Gateway::close() { return background_.close(); }

async::Task<void> Gateway::handle(http::Exchange& exchange) {
  AccessRecord record;
  record.request_id = base::make_ulid(parts_.clock, request_ids_);
  record.started = parts_.clock.steady_now();
  auto parsed = s3::parse_request(exchange.head(), options_.hosts);
  const iam::Principal nobody;
  const iam::Principal* principal = &nobody;
  s3::Outcome<Reply> outcome = s3::fault(s3::ErrorCode::internal_error);
  if (!parsed && precedes_authentication(parsed.error().code)) {
    outcome = std::move(parsed).error();
  } else if (auto caller = iam::authenticate(exchange.head(), parts_.accounts, signing_keys_, options_.region,
                                             parts_.clock.now());
             !caller) {
    outcome = std::move(caller).error();
  } else if (!parsed) {
    principal = &caller->principal;
    outcome = principal->role == iam::Role::anonymous ? s3::fault(s3::ErrorCode::access_denied)
                                                      : std::move(parsed).error();
  } else {
    record.take(*parsed, caller->principal);
    const s3::OperationRow row = s3::operation_row(parsed->operation);
    Call call{*this, exchange, *parsed, row, caller->principal, caller->verified, record.request_id};
    outcome = co_await dispatch(call);
  }
  auto done = co_await finish(exchange, std::move(outcome), record, parsed ? &*parsed : nullptr);
  write_access(parts_, exchange, record);
  co_return done;
}

async::Task<void> Gateway::finish(http::Exchange& exchange, s3::Outcome<Reply> outcome, AccessRecord& record,
                                  const s3::Request* request) {
  if (!outcome) {
    record.error_code = outcome.error().name();
    base::HttpResponseHead head{.status = outcome.error().status(), .fields = {}, .content_length = {}};
    add_standard_fields(head.fields, record.request_id, host_id_);
    head.fields.set("x-amz-bucket-region", options_.region);
    if (outcome.error().status() == 503) {
      head.fields.set("Retry-After",
                      std::to_string(std::chrono::ceil<std::chrono::seconds>(options_.retry_after).count()));
    }
    std::string resource = request ? "/" + request->bucket : "/";
    if (request && !request->key.empty()) resource += "/" + request->key;
    const s3::ErrorContext context{
        .resource = std::move(resource), .request_id = record.request_id, .host_id = host_id_};
    co_return co_await send_fault(exchange, outcome.error(), std::move(head), context);
  }
  if (outcome->broken) co_return std::move(*outcome->broken);
  if (outcome->sent) co_return base::Result<void>{};
  co_return co_await send_reply(exchange, std::move(*outcome));
}

}  // namespace reelway::gateway
