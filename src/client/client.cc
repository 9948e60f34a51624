#include "client/client.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/checksum.h"
#include "client/discovery.h"
#include "client/reply.h"
#include "rdma/reply.h"

namespace reelway::client {
namespace {

using base::Code;
using base::Result;

std::string unquoted(std::string_view etag) {
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  return std::string(etag);
}

std::string range_text(const s3::Range& range) {
  return fmt::format("bytes={}-{}", range.first ? std::to_string(*range.first) : "",
                     range.last ? std::to_string(*range.last) : "");
}

Result<void> check_slice(const Memory& memory, const Slice& slice) {
  if (slice.offset > memory.bytes().size() || slice.length > memory.bytes().size() - slice.offset) {
    return base::fail(Code::out_of_range, "the slice leaves the registered memory");
  }
  return {};
}

base::MutableBytes bytes_of(const Memory& memory, const Slice& slice) {
  return memory.bytes().subspan(slice.offset, slice.length);
}

/// An HTTP body into the slice.
class SliceSink final : public s3client::Sink {
 public:
  explicit SliceSink(base::MutableBytes into) : into_(into) {}
  async::Task<void> write(std::uint64_t offset, base::ByteView bytes) override {
    if (offset > into_.size() || bytes.size() > into_.size() - offset) {
      co_return base::fail(Code::too_large, "the object is larger than the memory for it");
    }
    if (!bytes.empty()) std::memcpy(into_.data() + offset, bytes.data(), bytes.size());
    co_return Result<void>{};
  }

 private:
  base::MutableBytes into_;
};

Moved moved(s3client::Reply reply, std::uint64_t bytes, std::string plane) {
  Moved result{.bytes = bytes,
               .plane = std::move(plane),
               .etag = unquoted(reply.head.fields.get_or("etag", "")),
               .head = {}};
  result.head = std::move(reply.head);
  return result;
}

/// The same request without its offer.
s3client::Call without_token(s3client::Call call) {
  call.headers.erase(rdma::kTokenHeader);
  call.headers.erase(rdma::kModeHeader);
  call.attempts = 0;
  return call;
}

Result<void> check_placed(const base::HttpFields& fields, base::ByteView placed) {
  TRY(const auto told, told_crc64nvme(fields));
  if (told && *told != base::crc64nvme(0, placed)) {
    return base::fail(Code::checksum_mismatch, "the bytes in memory are not those that the server read");
  }
  return {};
}

}  // namespace

async::Task<std::unique_ptr<Client>> Client::create(s3client::Client& control, Options options,
                                                    base::Rng& rng) {
  const RdmaMode mode = options.rdma;
  std::unique_ptr<Client> client(new Client(control, std::move(options)));
  if (mode == RdmaMode::off) co_return std::move(client);
  const auto discovered = co_await client->discover(rng);
  if (!discovered && mode == RdmaMode::required) co_return discovered.error();
  co_return std::move(client);
}

async::Task<void> Client::discover(base::Rng& rng) {
  CO_TRY(const std::string document, co_await control_.well_known());
  CO_TRY(const ServerFacts facts, parse_facts(document));
  CO_TRY(const Route route, find_route(options_.server_host));
  small_object_bytes_ = facts.small_object_bytes;
  base::Error reason = base::fail(Code::unavailable, "the server offers no plane that reaches this machine",
                                  base::Scope::peer);
  for (const std::string& provider : rank(facts.providers, route.same_machine, options_.provider)) {
    auto domain = rdma::ofi::TargetDomain::open(provider, route.local_address, rng);
    if (domain) {
      domain_ = std::move(*domain);
      co_return Result<void>{};
    }
    reason = std::move(domain).error();
  }
  co_return reason;
}

std::string Client::plane() const { return domain_ ? "ofi1/" + domain_->provider() : "http"; }

Result<std::unique_ptr<Memory>> Client::register_memory(base::MutableBytes bytes) {
  auto memory = std::make_unique<Memory>();
  memory->bytes_ = bytes;
  if (domain_ && !bytes.empty()) {
    TRY(memory->target_, domain_->expose(bytes));
  }
  return memory;
}

bool Client::offers(const Memory& memory, const Slice& slice) const {
  if (!memory.target_ || slice.length == 0) return false;
  return options_.rdma == RdmaMode::required || slice.length >= small_object_bytes_;
}

/// After a failure: what the token allowed is over. Fails where that cannot be known, and where nothing but
/// the plane will do.
Result<void> Client::withdraw(Memory& memory, const base::Error& error) const {
  TRY_VOID(memory.target_->renew());
  if (options_.rdma == RdmaMode::required) return error;
  return {};
}

async::Task<Moved> Client::get(std::string bucket, std::string key, Memory& memory, Slice slice,
                               std::optional<s3::Range> range) {
  CO_TRY_VOID(check_slice(memory, slice));
  s3client::Call call;
  call.bucket = std::move(bucket);
  call.key = std::move(key);
  if (range) call.headers.set("Range", range_text(*range));
  if (offers(memory, slice)) co_return co_await get_offered(std::move(call), memory, slice);
  if (options_.rdma == RdmaMode::required && slice.length > 0) {
    co_return base::fail(Code::unavailable, "RDMA is required, and there is no plane");
  }
  co_return co_await get_in_band(std::move(call), memory, slice);
}

async::Task<Moved> Client::get_in_band(s3client::Call call, Memory& memory, Slice slice) {
  SliceSink sink(bytes_of(memory, slice));
  call.sink = &sink;
  CO_TRY(s3client::Reply reply, co_await control_.call(call));
  if (!reply.ok()) co_return s3client::to_error(reply, call);
  const std::uint64_t bytes = reply.sink_bytes;
  co_return moved(std::move(reply), bytes, "http");
}

async::Task<Moved> Client::get_offered(s3client::Call call, Memory& memory, Slice slice) {
  CO_TRY(std::string token, memory.target_->token(slice.offset, slice.length));
  call.headers.set(rdma::kTokenHeader, std::move(token));
  if (options_.rdma == RdmaMode::required) call.headers.set(rdma::kModeHeader, "require");
  call.attempts = 1;
  SliceSink sink(bytes_of(memory, slice));
  call.sink = &sink;
  std::optional<Result<s3client::Reply>> reply;
  {
    const rdma::ofi::Target::Expectation expectation(*memory.target_);
    reply.emplace(co_await control_.call(call));
  }
  if (!*reply) {
    if (domain_->provider() == "shm" || reply->error().code == Code::cancelled) co_return reply->error();
    CO_TRY_VOID(withdraw(memory, reply->error()));
    co_return co_await get_in_band(without_token(std::move(call)), memory, slice);
  }
  CO_TRY(const Judgement judgement, judge_get((*reply)->head, (*reply)->sink_bytes, slice.length));
  switch (judgement.verdict) {
    case Verdict::moved: {
      if (options_.checksum) {
        CO_TRY_VOID(check_placed((*reply)->head.fields, bytes_of(memory, slice).first(judgement.bytes)));
      }
      co_return moved(std::move(**reply), judgement.bytes, plane());
    }
    case Verdict::in_band: {
      if (options_.rdma == RdmaMode::required) {
        co_return base::fail(Code::unsupported, "RDMA is required, and the server answered in band");
      }
      const std::uint64_t bytes = (*reply)->sink_bytes;
      co_return moved(std::move(**reply), bytes, "http");
    }
    case Verdict::declined:
      break;
    case Verdict::ignored:
    case Verdict::failed:
      if ((*reply)->head.status != 500) co_return s3client::to_error(**reply, call);
      CO_TRY_VOID(withdraw(memory, s3client::to_error(**reply, call)));
      co_return co_await get_in_band(without_token(std::move(call)), memory, slice);
  }
  if (options_.rdma == RdmaMode::required) co_return s3client::to_error(**reply, call);
  co_return co_await get_in_band(without_token(std::move(call)), memory, slice);
}

async::Task<Moved> Client::put(std::string bucket, std::string key, Memory& memory, Slice slice,
                               base::HttpFields headers) {
  s3client::Call call;
  call.method = "PUT";
  call.bucket = std::move(bucket);
  call.key = std::move(key);
  call.headers = std::move(headers);
  co_return co_await upload(std::move(call), memory, slice);
}

async::Task<Moved> Client::put_part(std::string bucket, std::string key, std::string upload_id,
                                    std::uint32_t part_number, Memory& memory, Slice slice) {
  s3client::Call call;
  call.method = "PUT";
  call.bucket = std::move(bucket);
  call.key = std::move(key);
  call.query = {{"partNumber", std::to_string(part_number)}, {"uploadId", std::move(upload_id)}};
  co_return co_await upload(std::move(call), memory, slice);
}

async::Task<Moved> Client::upload(s3client::Call call, Memory& memory, Slice slice) {
  CO_TRY_VOID(check_slice(memory, slice));
  if (options_.checksum) {
    const auto digest = base::digest_of(base::ChecksumKind::crc64nvme, bytes_of(memory, slice));
    call.headers.set("x-amz-checksum-crc64nvme", base::to_base64(digest));
  }
  if (offers(memory, slice)) co_return co_await put_offered(std::move(call), memory, slice);
  if (options_.rdma == RdmaMode::required && slice.length > 0) {
    co_return base::fail(Code::unavailable, "RDMA is required, and there is no plane");
  }
  co_return co_await put_in_band(std::move(call), memory, slice);
}

async::Task<Moved> Client::put_in_band(s3client::Call call, Memory& memory, Slice slice) {
  s3client::MemoryContent content(bytes_of(memory, slice));
  call.content = &content;
  call.content_range = {.offset = 0, .length = slice.length};
  CO_TRY(s3client::Reply reply, co_await control_.call(call));
  if (!reply.ok()) co_return s3client::to_error(reply, call);
  co_return moved(std::move(reply), slice.length, "http");
}

async::Task<Moved> Client::put_offered(s3client::Call call, Memory& memory, Slice slice) {
  CO_TRY(std::string token, memory.target_->token(slice.offset, slice.length));
  call.headers.set(rdma::kTokenHeader, std::move(token));
  call.attempts = 1;
  std::optional<Result<s3client::Reply>> reply;
  {
    const rdma::ofi::Target::Expectation expectation(*memory.target_);
    reply.emplace(co_await control_.call(call));
  }
  // A server only reads the window of a PUT: going on in band is safe whatever it still does.
  if (!*reply) {
    if (reply->error().code == Code::cancelled) co_return reply->error();
    CO_TRY_VOID(withdraw(memory, reply->error()));
    co_return co_await put_in_band(without_token(std::move(call)), memory, slice);
  }
  CO_TRY(const Judgement judgement, judge_put((*reply)->head, slice.length));
  switch (judgement.verdict) {
    case Verdict::moved:
      co_return moved(std::move(**reply), judgement.bytes, plane());
    case Verdict::failed:
      if ((*reply)->head.status != 500) co_return s3client::to_error(**reply, call);
      CO_TRY_VOID(withdraw(memory, s3client::to_error(**reply, call)));
      break;
    case Verdict::ignored:
      if (options_.rdma == RdmaMode::required) {
        co_return base::fail(Code::data_loss,
                             "the server does not know RDMA tokens and has stored an empty object");
      }
      break;
    case Verdict::declined:
    case Verdict::in_band:
      if (options_.rdma == RdmaMode::required) co_return s3client::to_error(**reply, call);
      break;
  }
  co_return co_await put_in_band(without_token(std::move(call)), memory, slice);
}

}  // namespace reelway::client
