#include <algorithm>

#include "base/encoding.h"
#include "s3/request.h"
#include "s3/sigv4.h"
#include "s3/text.h"

namespace reelway::s3 {

namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::uint32_t kExpiresMax = 604'800;

Fault header_malformed(const std::string& why) {
  return fault_saying(ErrorCode::authorization_header_malformed,
                      "The authorization header is malformed; " + why);
}

Fault query_malformed(const std::string& why) {
  return fault_saying(ErrorCode::authorization_query_parameters_error, why);
}

Fault mechanism_not_supported() {
  return fault_saying(
      ErrorCode::invalid_request,
      "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.");
}

bool is_basic_time(std::string_view text) {
  return text.size() == 16 && text[8] == 'T' && text[15] == 'Z' &&
         std::ranges::all_of(text.substr(0, 8), is_digit) && std::ranges::all_of(text.substr(9, 6), is_digit);
}

/// access key "/" date "/" region "/" service "/aws4_request"; an access key may hold slashes.
bool parse_credential(std::string_view text, Authorization& out) {
  std::string_view parts[4];
  for (std::string_view& part : parts) {
    const auto slash = text.rfind('/');
    if (slash == std::string_view::npos) return false;
    part = text.substr(slash + 1);
    text = text.substr(0, slash);
  }
  if (text.empty() || parts[0] != "aws4_request") return false;
  out.access_key = text;
  out.service = parts[1];
  out.region = parts[2];
  out.date = parts[3];
  return out.date.size() == 8 && std::ranges::all_of(out.date, is_digit);
}

/// Lower-case names separated by ';'; sorted here, as the canonical form wants them.
bool parse_signed_headers(std::string_view text, Authorization& out) {
  if (text.empty() || text.size() > 8192) return false;
  while (!text.empty()) {
    const auto end = text.find(';');
    const std::string_view name = text.substr(0, end);
    if (name.empty()) return false;
    out.signed_headers.push_back(lower(name));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  std::ranges::sort(out.signed_headers);
  return std::ranges::adjacent_find(out.signed_headers) == out.signed_headers.end();
}

struct HeaderWords {
  std::string_view credential, signed_headers, signature;
};

std::optional<HeaderWords> split_header(std::string_view text) {
  HeaderWords words;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string_view item = trim(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    const auto equals = item.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view name = item.substr(0, equals);
    std::string_view* const place = name == "Credential"      ? &words.credential
                                    : name == "SignedHeaders" ? &words.signed_headers
                                    : name == "Signature"     ? &words.signature
                                                              : nullptr;
    if (place == nullptr || !place->empty()) return std::nullopt;
    *place = item.substr(equals + 1);
  }
  return words;
}

/// x-amz-date, or Date where that is missing.
Outcome<std::string> request_time(const base::HttpRequestHead& head) {
  if (const auto text = head.fields.get("x-amz-date"); text && is_basic_time(trim(*text)))
    return std::string(trim(*text));
  if (const auto text = head.fields.get("date"); text && !head.fields.contains("x-amz-date")) {
    if (is_basic_time(trim(*text))) return std::string(trim(*text));
    if (const auto time = parse_http_date(trim(*text))) return base::to_basic_iso8601(*time);
  }
  return fault_saying(ErrorCode::access_denied,
                      "AWS authentication requires a valid Date or x-amz-date header");
}

Outcome<Payload> payload_of(std::string_view text) {
  Payload payload;
  if (text == kUnsignedPayload) return payload;
  if (text == kStreamingSigned) return Payload{.form = PayloadForm::streaming_signed};
  if (text == kStreamingSignedTrailer) return Payload{.form = PayloadForm::streaming_signed_trailer};
  if (text == kStreamingUnsignedTrailer) return Payload{.form = PayloadForm::streaming_unsigned_trailer};
  if (text.starts_with("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD")) {
    return fault(ErrorCode::not_implemented, {{"Header", "x-amz-content-sha256"}});
  }
  const auto hash = base::from_hex(text);
  if (!hash || hash->size() != payload.sha256.size()) {
    return invalid_argument(
        "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, "
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD, "
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER, or a valid sha256 value.",
        "x-amz-content-sha256", std::string(text));
  }
  payload.form = PayloadForm::signed_hash;
  std::ranges::copy(*hash, payload.sha256.begin());
  return payload;
}

Outcome<std::optional<Authorization>> parse_header(const base::HttpRequestHead& head, std::string_view text) {
  if (text.starts_with("AWS4-ECDSA-P256-SHA256"))
    return fault(ErrorCode::not_implemented, {{"Header", "Authorization"}});
  if (!text.starts_with(kAlgorithm) || text.size() == kAlgorithm.size() || text[kAlgorithm.size()] != ' ') {
    return mechanism_not_supported();
  }
  if (head.fields.contains("x-amz-security-token")) return fault(ErrorCode::invalid_token);
  Authorization authorization;
  TRY(authorization.timestamp, request_time(head));
  const auto words = split_header(text.substr(kAlgorithm.size() + 1));
  if (!words) return header_malformed("its parts cannot be told apart.");
  if (!parse_credential(words->credential, authorization)) {
    return header_malformed(
        "the Credential is mal-formed; expecting \"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request\".");
  }
  if (!parse_signed_headers(words->signed_headers, authorization))
    return header_malformed("SignedHeaders is missing or not a list.");
  if (words->signature.empty()) return header_malformed("Signature is missing.");
  authorization.signature = words->signature;
  if (!head.fields.contains("x-amz-content-sha256")) {
    return fault_saying(ErrorCode::invalid_request,
                        "Missing required header for this request: x-amz-content-sha256");
  }
  TRY(authorization.payload, parse_payload(head));
  return std::optional(std::move(authorization));
}

Outcome<std::uint32_t> parse_expires(std::string_view text) {
  const auto number = base::parse_decimal(text);
  if (!number) return query_malformed("X-Amz-Expires should be a number");
  if (*number < 1) return query_malformed("X-Amz-Expires must be non-negative");
  if (*number > kExpiresMax)
    return query_malformed(
        "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less "
        "than 604800 seconds");
  return static_cast<std::uint32_t>(*number);
}

Outcome<std::optional<Authorization>> parse_presigned(const base::HttpRequestHead& head, const Query& query) {
  const auto algorithm = find(query, "X-Amz-Algorithm");
  const auto credential = find(query, "X-Amz-Credential");
  const auto date = find(query, "X-Amz-Date");
  const auto expires = find(query, "X-Amz-Expires");
  const auto signed_headers = find(query, "X-Amz-SignedHeaders");
  const auto signature = find(query, "X-Amz-Signature");
  if (!algorithm || !credential || !date || !expires || !signed_headers || !signature) {
    return query_malformed(
        "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, "
        "X-Amz-Signature, X-Amz-Date, "
        "X-Amz-SignedHeaders, and X-Amz-Expires parameters.");
  }
  if (*algorithm != kAlgorithm) return query_malformed("X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256\"");
  if (find(query, "X-Amz-Security-Token") || head.fields.contains("x-amz-security-token"))
    return fault(ErrorCode::invalid_token);
  Authorization authorization;
  authorization.presigned = true;
  if (!parse_credential(*credential, authorization)) {
    return query_malformed(
        "Error parsing the X-Amz-Credential parameter; the Credential is mal-formed; expecting "
        "\"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request\".");
  }
  if (!is_basic_time(*date))
    return query_malformed("X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\"");
  authorization.timestamp = *date;
  TRY(authorization.expires, parse_expires(*expires));
  if (!parse_signed_headers(*signed_headers, authorization))
    return query_malformed("X-Amz-SignedHeaders is not a list of headers");
  authorization.signature = *signature;
  const auto hash = find(query, "X-Amz-Content-Sha256");
  if (hash && !head.fields.contains("x-amz-content-sha256")) {
    TRY(authorization.payload, payload_of(*hash));
  } else {
    TRY(authorization.payload, parse_payload(head));
  }
  return std::optional(std::move(authorization));
}

Outcome<std::optional<Authorization>> parse_anonymous(const base::HttpRequestHead& head) {
  if (head.fields.get_or("x-amz-content-sha256", "").starts_with("STREAMING-AWS4-")) {
    return fault_saying(ErrorCode::invalid_request,
                        "Anonymous requests don't support this x-amz-content-sha256 value.");
  }
  return std::nullopt;
}

}  // namespace

Outcome<Payload> parse_payload(const base::HttpRequestHead& head) {
  const auto text = head.fields.get("x-amz-content-sha256");
  return text ? payload_of(trim(*text)) : Outcome<Payload>(Payload{});
}

Outcome<std::optional<Authorization>> parse_authorization(const base::HttpRequestHead& head) {
  const auto header = head.fields.get("authorization");
  const bool in_query = head.target.contains("X-Amz-") || head.target.contains("AWSAccessKeyId=");
  Target target;
  if (in_query) {
    TRY(target, parse_target(head.target));
  }
  const bool presigned = find(target.query, "X-Amz-Algorithm") || find(target.query, "X-Amz-Signature") ||
                         find(target.query, "X-Amz-Credential");
  const bool signature_v2 = find(target.query, "AWSAccessKeyId").has_value();
  if (header && (presigned || signature_v2)) {
    return fault_saying(ErrorCode::invalid_request,
                        "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, "
                        "Signature query string parameter or "
                        "the Authorization header should be specified");
  }
  if (signature_v2) return mechanism_not_supported();
  if (header) return parse_header(head, trim(*header));
  if (presigned) return parse_presigned(head, target.query);
  return parse_anonymous(head);
}

}  // namespace reelway::s3
