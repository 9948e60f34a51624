#include "s3/canonical.h"

#include <openssl/crypto.h>

#include <algorithm>

#include "base/checksum.h"
#include "base/encoding.h"
#include "s3/text.h"

namespace reelway::s3 {

namespace {

/// Decodes and encodes again, so that every spelling of the same path or parameter has one form.
bool append_normalised(std::string& out, std::string_view text, bool is_path) {
  const auto decoded = base::percent_decode(text, /*plus_is_space=*/!is_path);
  if (!decoded) return false;
  out += base::percent_encode(*decoded, /*keep_slash=*/is_path);
  return true;
}

bool append_canonical_query(std::string& out, std::string_view query, bool presigned) {
  std::vector<std::pair<std::string, std::string>> items;
  while (!query.empty()) {
    const auto end = query.find('&');
    const std::string_view item = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view{} : query.substr(end + 1);
    if (item.empty() || (presigned && item.starts_with("X-Amz-Signature="))) continue;
    const auto equals = item.find('=');
    std::pair<std::string, std::string> pair;
    if (!append_normalised(pair.first, item.substr(0, equals), false)) return false;
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view{} : item.substr(equals + 1);
    if (!append_normalised(pair.second, value, false)) return false;
    items.push_back(std::move(pair));
  }
  std::ranges::sort(items);
  for (const auto& [name, value] : items) {
    if (&name != &items.front().first) out += '&';
    out += name;
    out += '=';
    out += value;
  }
  return true;
}

/// Trimmed, with runs of spaces made one.
void append_canonical_value(std::string& out, std::string_view value) {
  bool after_space = false;
  for (const char c : trim(value)) {
    if (c == ' ' && after_space) continue;
    after_space = c == ' ';
    out += c;
  }
}

void append_canonical_header(std::string& out, const base::HttpRequestHead& head, std::string_view name,
                             bool redacted) {
  out += name;
  out += ':';
  bool first = true;
  for (const base::HttpField& field : head.fields) {
    if (!base::equals_ignoring_case(field.name, name)) continue;
    if (!first) out += ',';
    first = false;
    if (redacted && is_rdma_token_header(name)) {
      out += "(withheld)";
    } else {
      append_canonical_value(out, field.value);
    }
  }
  if (first && name == "content-length" && head.content_length) out += std::to_string(*head.content_length);
  out += '\n';
}

}  // namespace

bool is_rdma_token_header(std::string_view name) {
  return std::ranges::any_of(kRdmaTokenHeaders,
                             [&](std::string_view token) { return base::equals_ignoring_case(token, name); });
}

Outcome<std::string> canonical_request(const base::HttpRequestHead& head,
                                       const std::vector<std::string>& signed_headers, bool presigned,
                                       std::string_view payload_hash, bool redacted) {
  const std::string_view target = head.target;
  const auto question = target.find('?');
  std::string out;
  out.reserve(1024 + target.size());
  out += head.method;
  out += '\n';
  if (!append_normalised(out, target.substr(0, question), true)) return fault(ErrorCode::invalid_uri);
  out += '\n';
  if (question != std::string_view::npos &&
      !append_canonical_query(out, target.substr(question + 1), presigned)) {
    return fault(ErrorCode::invalid_uri);
  }
  out += '\n';
  for (const std::string& name : signed_headers) append_canonical_header(out, head, name, redacted);
  out += '\n';
  for (const std::string& name : signed_headers) {
    if (&name != &signed_headers.front()) out += ';';
    out += name;
  }
  out += '\n';
  out += payload_hash;
  return out;
}

std::string string_to_sign(std::string_view timestamp, std::string_view scope, std::string_view canonical) {
  std::string text = "AWS4-HMAC-SHA256\n";
  text += timestamp;
  text += '\n';
  text += scope;
  text += '\n';
  text += sha256_hex(base::as_bytes(canonical));
  return text;
}

std::string signature_of(const SigningKey& key, std::string_view string_to_sign) {
  return base::to_hex(base::hmac_sha256(key, base::as_bytes(string_to_sign)));
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string sha256_hex(base::ByteView bytes) {
  return base::to_hex(base::digest_of(base::ChecksumKind::sha256, bytes));
}

std::string payload_text(const Payload& payload) {
  switch (payload.form) {
    case PayloadForm::signed_hash:
      return base::to_hex(payload.sha256);
    case PayloadForm::unsigned_payload:
      return std::string(kUnsignedPayload);
    case PayloadForm::streaming_signed:
      return std::string(kStreamingSigned);
    case PayloadForm::streaming_signed_trailer:
      return std::string(kStreamingSignedTrailer);
    case PayloadForm::streaming_unsigned_trailer:
      return std::string(kStreamingUnsignedTrailer);
  }
  return {};
}

}  // namespace reelway::s3
