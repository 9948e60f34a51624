#pragma once
// AWS Signature Version 4 for S3, both ways. A server does: parse_authorization(head) -> who claims to send
// this; look up the secret; SigningKeyCache::get(); verify(). A client does: sign() or presign(). The path is
// encoded once and not normalised. Times are UTC seconds. Comparisons of signatures take constant time;
// secrets and tokens appear in no fault. Source: Amazon S3 API Reference, "Authenticating Requests (AWS
// Signature Version 4)".

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/http_head.h"
#include "s3/errors.h"

namespace reelway::s3 {

inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";
inline constexpr std::string_view kStreamingSigned = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
inline constexpr std::string_view kStreamingSignedTrailer = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";
inline constexpr std::string_view kStreamingUnsignedTrailer = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
inline constexpr std::string_view kEmptySha256 =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Every header under which some client offers a window of its memory, the standard one first.
inline constexpr std::array<std::string_view, 5> kRdmaTokenHeaders{
    "x-amz-rdma-token", "x-cuobj-rdma-descr", "x-rdma-info", "x-amz-meta-rdma-token", "x-scal-rdma"};

enum class PayloadForm : std::uint8_t {
  signed_hash,                 // plain; `sha256` is checked at the end
  unsigned_payload,            // plain
  streaming_signed,            // aws-chunked, each chunk signed
  streaming_signed_trailer,    // the same with a signed trailer
  streaming_unsigned_trailer,  // aws-chunked, not signed, trailer optional
};
inline bool is_chunked(PayloadForm form) { return form >= PayloadForm::streaming_signed; }

struct Payload {
  PayloadForm form = PayloadForm::unsigned_payload;
  std::array<std::byte, 32> sha256{};  ///< with signed_hash
};
/// From x-amz-content-sha256. InvalidArgument, or NotImplemented for the ECDSA forms. Absent header:
/// unsigned_payload.
Outcome<Payload> parse_payload(const base::HttpRequestHead& head);

using SigningKey = std::array<std::byte, 32>;
SigningKey derive_signing_key(std::string_view secret, std::string_view date, std::string_view region,
                              std::string_view service);

/// Signing keys by access key, day, region and service: at most `capacity`, the least recently used goes.
/// Safe for several threads.
class SigningKeyCache {
 public:
  explicit SigningKeyCache(std::size_t capacity = 1024);
  ~SigningKeyCache();
  SigningKeyCache(const SigningKeyCache&) = delete;
  SigningKeyCache& operator=(const SigningKeyCache&) = delete;
  /// A changed secret is noticed.
  SigningKey get(std::string_view access_key, std::string_view secret, std::string_view date,
                 std::string_view region, std::string_view service = "s3");

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What a request claims; syntax checked, nothing verified.
struct Authorization {
  bool presigned = false;
  std::string access_key;
  std::string date;  ///< "20261130"
  std::string region;
  std::string service;
  std::string timestamp;                    ///< "20261130T164345Z"
  std::vector<std::string> signed_headers;  ///< lower case, sorted
  std::string signature;                    ///< 64 hex digits
  std::uint32_t expires = 0;                ///< seconds, with presigned
  Payload payload;
  std::string scope() const { return date + "/" + region + "/" + service + "/aws4_request"; }
};
/// nullopt: anonymous. Faults: AuthorizationHeaderMalformed, AuthorizationQueryParametersError, AccessDenied
/// (no date), InvalidRequest (SigV2, both kinds at once), InvalidToken (session tokens are not known here).
Outcome<std::optional<Authorization>> parse_authorization(const base::HttpRequestHead& head);

/// What the bytes of the body are checked with.
struct SigningContext {
  SigningKey key{};
  std::string scope;
  std::string timestamp;
  std::string seed_signature;
};

struct Verified {
  Payload payload;
  SigningContext signing;
};

/// Faults: AuthorizationHeaderMalformed or AuthorizationQueryParametersError (region, service, date),
/// RequestTimeTooSkewed, AccessDenied (expired, unsigned headers; an unsigned RDMA token of whatever name),
/// SignatureDoesNotMatch.
Outcome<Verified> verify(const Authorization& authorization, const base::HttpRequestHead& head,
                         const SigningKey& key, std::string_view region, base::TimePoint now);

/// For an access key that nobody has.
Fault invalid_access_key(std::string_view access_key);

struct Credentials {
  std::string access_key;
  std::string secret_key;
  std::string region = "us-east-1";
  std::string service = "s3";
};

/// Adds x-amz-date, x-amz-content-sha256 (= `payload_hash`: 64 hex digits or one of the words above) and
/// Authorization. `head` must carry Host; host, content-type, content-md5, range and every x-amz-* header are
/// signed. Returns what the chunks of a streaming body are signed with.
SigningContext sign(base::HttpRequestHead& head, const Credentials& credentials, SigningKeyCache& keys,
                    std::string_view payload_hash, base::TimePoint now);

/// The target ("/bucket/key?X-Amz-...") of a presigned request; `head` carries method, target, Host and the
/// headers that shall be signed.
std::string presign(const base::HttpRequestHead& head, const Credentials& credentials, SigningKeyCache& keys,
                    std::uint32_t expires_seconds, base::TimePoint now);

}  // namespace reelway::s3
