#include <fmt/format.h>

#include <algorithm>

#include "s3client/body.h"
#include "s3client/client_impl.h"

namespace reelway::s3client {

namespace {

constexpr std::size_t kReplyBytesMax = 16 * base::kMiB;
constexpr std::uint64_t kContinueFrom = base::kMiB;  ///< larger bodies wait for "100 Continue"

std::string host_field(const http::ClientOptions& options) {
  const std::string host = options.host.contains(':') ? "[" + options.host + "]" : options.host;
  const std::uint16_t standard = options.tls ? 443 : 80;
  return options.port == standard ? host : fmt::format("{}:{}", host, options.port);
}

std::string target_of(const Call& call) {
  std::string target = "/" + base::percent_encode(call.bucket, /*keep_slash=*/false);
  if (!call.key.empty()) target += "/" + base::percent_encode(call.key, /*keep_slash=*/true);
  char separator = '?';
  for (const s3::QueryParameter& parameter : call.query) {
    target += separator + base::percent_encode(parameter.name, false) + "=" +
              base::percent_encode(parameter.value, false);
    separator = '&';
  }
  return target;
}

bool is_worth_another(const base::Result<Reply>& reply) {
  if (!reply) {
    using enum base::Code;
    const base::Code code = reply.error().code;
    return code == unavailable || code == closed || code == busy || code == deadline_exceeded ||
           code == checksum_mismatch;
  }
  constexpr std::array kStatuses{429, 500, 502, 503, 504};
  return std::ranges::find(kStatuses, reply->head.status) != kStatuses.end();
}

/// The CRC64NVME that the answer declares for the whole of its body.
std::optional<base::Bytes> declared_crc(const base::HttpResponseHead& head) {
  const auto text = head.fields.get("x-amz-checksum-crc64nvme");
  if (!text || head.status != 200) return std::nullopt;
  auto value = base::from_base64(*text);
  return value ? std::optional(std::move(*value)) : std::nullopt;
}

/// Passes bytes on and takes their CRC64NVME.
class SummingSink final : public Sink {
 public:
  explicit SummingSink(Sink& next) : next_(next), hasher_(base::make_hasher(base::ChecksumKind::crc64nvme)) {}
  async::Task<void> write(std::uint64_t offset, base::ByteView bytes) override {
    hasher_->update(bytes);
    return next_.write(offset, bytes);
  }
  base::Bytes digest() const { return hasher_->digest(); }

 private:
  Sink& next_;
  std::unique_ptr<base::Hasher> hasher_;
};

/// Makes the body of a call and says so in the head; returns the payload's word or hash.
std::string frame_body(const Call& call, base::HttpRequestHead& head, std::size_t piece_bytes,
                       std::unique_ptr<http::BodyProducer>& body) {
  if (call.content == nullptr) {
    if (!call.body.empty()) body = std::make_unique<TextBody>(call.body);
    if (!call.body.empty() || call.method == "PUT" || call.method == "POST")
      head.content_length = call.body.size();
    return base::to_hex(base::digest_of(base::ChecksumKind::sha256, base::as_bytes(call.body)));
  }
  const std::uint64_t length = call.content_range.length;
  head.expects_continue = length >= kContinueFrom;
  if (!call.trailer_checksum) {
    head.content_length = length;
    body = std::make_unique<PlainBody>(*call.content, call.content_range);
    return std::string(s3::kUnsignedPayload);
  }
  constexpr auto kForm = s3::PayloadForm::streaming_unsigned_trailer;
  head.content_length =
      s3::ChunkedEncoder::encoded_length(kForm, length, piece_bytes, base::ChecksumKind::crc64nvme);
  const std::string encoding(head.fields.get_or("content-encoding", ""));
  head.fields.set("content-encoding", encoding.empty() ? "aws-chunked" : "aws-chunked," + encoding);
  head.fields.set("x-amz-decoded-content-length", std::to_string(length));
  head.fields.set("x-amz-trailer", s3::checksum_header(base::ChecksumKind::crc64nvme));
  body = std::make_unique<TrailerBody>(*call.content, call.content_range, piece_bytes);
  return std::string(s3::kStreamingUnsignedTrailer);
}

}  // namespace

ClientImpl::ClientImpl(async::Executor executor, Options options, std::unique_ptr<http::Client> transport,
                       const base::Clock& clock, base::Rng& rng)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      transport_(std::move(transport)),
      clock_(clock),
      rng_(rng),
      host_(host_field(options_.http)) {}

base::HttpRequestHead ClientImpl::head_of(const Call& call) {
  base::HttpRequestHead head;
  head.method = call.method;
  head.target = target_of(call);
  head.fields = call.headers;
  head.fields.set("Host", host_);
  head.fields.set("User-Agent", "reelway/" REELWAY_VERSION);
  return head;
}

void ClientImpl::authorize(base::HttpRequestHead& head, std::string_view payload_hash) {
  if (options_.credentials.access_key.empty()) {
    head.fields.set("x-amz-content-sha256", std::string(payload_hash));
    return;
  }
  s3::sign(head, options_.credentials, keys_, payload_hash, clock_.now());
}

async::Task<std::uint64_t> ClientImpl::pour(http::ClientResponse& response, Sink& sink) {
  base::Bytes buffer(options_.read_bytes);
  std::uint64_t at = 0;
  for (;;) {
    CO_TRY(const std::size_t got, co_await response.read_body(buffer));
    if (got == 0) co_return at;
    CO_TRY_VOID(co_await sink.write(at, base::ByteView(buffer).first(got)));
    at += got;
  }
}

async::Task<void> ClientImpl::take_body(http::ClientResponse& response, const Call& call, Reply& reply) {
  if (call.sink == nullptr || !reply.ok()) {
    CO_TRY(const base::Bytes bytes, co_await response.read_all(kReplyBytesMax));
    reply.body = base::as_text(bytes);
    co_return base::Result<void>{};
  }
  SummingSink sink(*call.sink);
  CO_TRY(reply.sink_bytes, co_await pour(response, sink));
  const auto declared = declared_crc(reply.head);
  // An answer to an out-of-band request declares the sum of bytes that did not come this way.
  if (declared && reply.sink_bytes > 0 && sink.digest() != *declared) {
    co_return base::fail(base::Code::checksum_mismatch, "the body differs from its CRC64NVME",
                         base::Scope::object, base::Retry::same_place);
  }
  co_return base::Result<void>{};
}

async::Task<Reply> ClientImpl::attempt(const Call& call) {
  base::HttpRequestHead head = head_of(call);
  std::unique_ptr<http::BodyProducer> body;
  const std::string payload_hash = frame_body(call, head, options_.read_bytes, body);
  authorize(head, payload_hash);
  CO_TRY(const auto response, co_await transport_->send(std::move(head), body.get()));
  Reply reply;
  reply.head = response->head();
  CO_TRY_VOID(co_await take_body(*response, call, reply));
  co_return reply;
}

async::Task<void> ClientImpl::back_off(unsigned attempts_made) {
  base::Duration wait = options_.backoff_first;
  for (unsigned i = 1; i < attempts_made && wait < options_.backoff_max; ++i) wait *= 2;
  wait = std::min(wait, options_.backoff_max);
  // Half of it at random, so that clients that failed together do not come back together.
  const auto half = static_cast<std::uint64_t>(wait.count() / 2);
  const base::Duration pause{static_cast<std::int64_t>(half + rng_.below(half + 1))};
  return timer_.sleep_for(pause);
}

async::Task<Reply> ClientImpl::call(Call call) {
  const unsigned attempts = call.attempts == 0 ? options_.attempts : call.attempts;
  for (unsigned made = 1;; ++made) {
    base::Result<Reply> reply = co_await attempt(call);
    if (made >= attempts || !is_worth_another(reply)) co_return reply;
    CO_TRY_VOID(co_await back_off(made));
  }
}

async::Task<Reply> ClientImpl::succeed(Call call_to_make) {
  const Call& described = call_to_make;
  CO_TRY(Reply reply, co_await call(described));
  if (!reply.ok()) co_return to_error(reply, described);
  co_return reply;
}

base::Result<std::unique_ptr<Client>> Client::create(async::Executor executor, Options options,
                                                     const base::Clock& clock, base::Rng& rng) {
  if (options.attempts == 0 || options.parts_at_once == 0 || options.read_bytes < s3::kChunkBytesMin ||
      options.part_bytes < s3::kPartBytesMin) {
    return base::fail(base::Code::invalid_argument,
                      "s3client: attempts, parts_at_once, read_bytes or part_bytes is too small");
  }
  TRY(auto transport, http::Client::create(executor, options.http));
  return std::unique_ptr<Client>(std::make_unique<ClientImpl>(std::move(executor), std::move(options),
                                                              std::move(transport), clock, rng));
}

}  // namespace reelway::s3client
