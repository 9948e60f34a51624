#include "s3/sigv4.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/encoding.h"
#include "s3/canonical.h"
#include "s3/request.h"
#include "s3/text.h"

namespace reelway::s3 {

namespace {

constexpr auto kSkewMax = std::chrono::minutes{15};

/// "20261130T164345Z"; its digits were checked before.
std::optional<base::TimePoint> time_of(std::string_view timestamp) {
  if (timestamp.size() != 16) return std::nullopt;
  return parse_iso8601(fmt::format("{}-{}-{}T{}:{}:{}Z", timestamp.substr(0, 4), timestamp.substr(4, 2),
                                   timestamp.substr(6, 2), timestamp.substr(9, 2), timestamp.substr(11, 2),
                                   timestamp.substr(13, 2)));
}

/// What the two ways to sign call the same mistake.
Fault malformed(const Authorization& authorization, std::string_view why,
                std::vector<std::pair<std::string, std::string>> fields = {}) {
  if (authorization.presigned) {
    return fault_saying(ErrorCode::authorization_query_parameters_error,
                        fmt::format("Error parsing the X-Amz-Credential parameter; {}", why),
                        std::move(fields));
  }
  return fault_saying(ErrorCode::authorization_header_malformed,
                      fmt::format("The authorization header is malformed; {}", why), std::move(fields));
}

Outcome<void> check_scope(const Authorization& authorization, std::string_view region) {
  if (authorization.date != std::string_view(authorization.timestamp).substr(0, 8)) {
    return malformed(
        authorization,
        fmt::format("Invalid credential date \"{}\". This date is not the same as X-Amz-Date: \"{}\".",
                    authorization.date, std::string_view(authorization.timestamp).substr(0, 8)));
  }
  if (authorization.region != region) {
    return malformed(authorization,
                     fmt::format("the region '{}' is wrong; expecting '{}'", authorization.region, region),
                     {{"Region", std::string(region)}});
  }
  if (authorization.service != "s3") {
    return malformed(authorization, fmt::format("incorrect service \"{}\". This endpoint belongs to \"s3\".",
                                                authorization.service));
  }
  return {};
}

Outcome<void> check_presigned_time(const Authorization& authorization, base::TimePoint signed_at,
                                   base::TimePoint now) {
  if (signed_at > now + kSkewMax) return fault_saying(ErrorCode::access_denied, "Request is not valid yet");
  const base::TimePoint end = signed_at + std::chrono::seconds{authorization.expires};
  if (now <= end) return {};
  return fault_saying(ErrorCode::access_denied, "Request has expired",
                      {{"X-Amz-Expires", std::to_string(authorization.expires)},
                       {"Expires", base::to_iso8601(end)},
                       {"ServerTime", base::to_iso8601(now)}});
}

Outcome<void> check_time(const Authorization& authorization, base::TimePoint now) {
  const auto signed_at = time_of(authorization.timestamp);
  if (!signed_at) return malformed(authorization, "the date is no date.");
  if (authorization.presigned) return check_presigned_time(authorization, *signed_at, now);
  if (std::chrono::abs(now - *signed_at) <= kSkewMax) return {};
  const auto skew_max = std::chrono::duration_cast<std::chrono::milliseconds>(kSkewMax).count();
  return fault(ErrorCode::request_time_too_skewed,
               {{"RequestTime", authorization.timestamp},
                {"ServerTime", base::to_iso8601(now)},
                {"MaxAllowedSkewMilliseconds", std::to_string(skew_max)}});
}

bool must_be_signed(std::string_view name) {
  return starts_with_ignoring_case(name, "x-amz-") || base::equals_ignoring_case(name, "host") ||
         is_rdma_token_header(name);
}

Outcome<void> check_signed_headers(const Authorization& authorization, const base::HttpRequestHead& head) {
  std::string unsigned_names;
  const auto require = [&](const std::string& name) {
    if (std::ranges::binary_search(authorization.signed_headers, name)) return;
    if (!unsigned_names.empty()) unsigned_names += ", ";
    unsigned_names += name;
  };
  for (const base::HttpField& field : head.fields) {
    if (must_be_signed(field.name)) require(lower(field.name));
  }
  if (!head.fields.contains("host")) require("host");
  if (unsigned_names.empty()) return {};
  return fault_saying(ErrorCode::access_denied,
                      "There were headers present in the request which were not signed",
                      {{"HeadersNotSigned", unsigned_names}});
}

std::string spaced_hex(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (!out.empty()) out += ' ';
    out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

Fault mismatch(const Authorization& authorization, const base::HttpRequestHead& head,
               const std::string& to_sign) {
  const auto shown = canonical_request(head, authorization.signed_headers, authorization.presigned,
                                       payload_text(authorization.payload),
                                       /*redacted=*/true);
  const std::string canonical = shown.value_or("");
  return fault(ErrorCode::signature_does_not_match, {{"AWSAccessKeyId", authorization.access_key},
                                                     {"StringToSign", to_sign},
                                                     {"SignatureProvided", authorization.signature},
                                                     {"StringToSignBytes", spaced_hex(to_sign)},
                                                     {"CanonicalRequest", canonical},
                                                     {"CanonicalRequestBytes", spaced_hex(canonical)}});
}

std::string scope_of(const Credentials& credentials, std::string_view date) {
  return fmt::format("{}/{}/{}/aws4_request", date, credentials.region, credentials.service);
}

std::vector<std::string> headers_to_sign(const base::HttpFields& fields) {
  std::vector<std::string> names;
  for (const base::HttpField& field : fields) {
    const std::string name = lower(field.name);
    const bool content = name == "content-type" || name == "content-md5" || name == "range";
    if (content || must_be_signed(name)) names.push_back(name);
  }
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

std::string joined(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ";")); }

}  // namespace

Outcome<Verified> verify(const Authorization& authorization, const base::HttpRequestHead& head,
                         const SigningKey& key, std::string_view region, base::TimePoint now) {
  TRY_VOID(check_scope(authorization, region));
  TRY_VOID(check_time(authorization, now));
  TRY_VOID(check_signed_headers(authorization, head));
  TRY(const auto canonical, canonical_request(head, authorization.signed_headers, authorization.presigned,
                                              payload_text(authorization.payload), /*redacted=*/false));
  std::string scope = authorization.scope();
  const std::string to_sign = string_to_sign(authorization.timestamp, scope, canonical);
  const std::string expected = signature_of(key, to_sign);
  if (!equal_in_constant_time(expected, authorization.signature))
    return mismatch(authorization, head, to_sign);
  return Verified{.payload = authorization.payload,
                  .signing = {.key = key,
                              .scope = std::move(scope),
                              .timestamp = authorization.timestamp,
                              .seed_signature = authorization.signature}};
}

Fault invalid_access_key(std::string_view access_key) {
  return fault(ErrorCode::invalid_access_key_id, {{"AWSAccessKeyId", std::string(access_key)}});
}

SigningContext sign(base::HttpRequestHead& head, const Credentials& credentials, SigningKeyCache& keys,
                    std::string_view payload_hash, base::TimePoint now) {
  SigningContext context;
  context.timestamp = base::to_basic_iso8601(now);
  const std::string_view date = std::string_view(context.timestamp).substr(0, 8);
  context.scope = scope_of(credentials, date);
  context.key =
      keys.get(credentials.access_key, credentials.secret_key, date, credentials.region, credentials.service);
  head.fields.set("x-amz-date", context.timestamp);
  head.fields.set("x-amz-content-sha256", std::string(payload_hash));
  const std::vector<std::string> names = headers_to_sign(head.fields);
  // Only a target with a broken escape has no canonical form; the server refuses that request whatever its
  // signature.
  const std::string canonical =
      canonical_request(head, names, /*presigned=*/false, payload_hash, /*redacted=*/false).value_or("");
  context.seed_signature =
      signature_of(context.key, string_to_sign(context.timestamp, context.scope, canonical));
  head.fields.set("Authorization",
                  fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
                              credentials.access_key, context.scope, joined(names), context.seed_signature));
  return context;
}

std::string presign(const base::HttpRequestHead& head, const Credentials& credentials, SigningKeyCache& keys,
                    std::uint32_t expires_seconds, base::TimePoint now) {
  const std::string timestamp = base::to_basic_iso8601(now);
  const std::string_view date = std::string_view(timestamp).substr(0, 8);
  const std::string scope = scope_of(credentials, date);
  const SigningKey key =
      keys.get(credentials.access_key, credentials.secret_key, date, credentials.region, credentials.service);
  const std::vector<std::string> names = headers_to_sign(head.fields);
  base::HttpRequestHead extended = head;
  extended.target += fmt::format(
      "{}X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={}&X-Amz-Date={}&X-Amz-Expires={}&X-Amz-"
      "SignedHeaders={}",
      head.target.contains('?') ? '&' : '?',
      base::percent_encode(credentials.access_key + "/" + scope, /*keep_slash=*/false), timestamp,
      expires_seconds, base::percent_encode(joined(names), false));
  const std::string canonical =
      canonical_request(extended, names, /*presigned=*/true, kUnsignedPayload, /*redacted=*/false)
          .value_or("");
  return extended.target +
         "&X-Amz-Signature=" + signature_of(key, string_to_sign(timestamp, scope, canonical));
}

}  // namespace reelway::s3
