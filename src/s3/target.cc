#include <algorithm>

#include "base/encoding.h"
#include "s3/request.h"

namespace reelway::s3 {

namespace {

constexpr std::size_t kParametersMax = 100;

Outcome<QueryParameter> parse_parameter(std::string_view text) {
  const auto equals = text.find('=');
  auto name = base::percent_decode(text.substr(0, equals), /*plus_is_space=*/true);
  auto value = base::percent_decode(
      equals == std::string_view::npos ? std::string_view{} : text.substr(equals + 1), true);
  if (!name || !value) return fault(ErrorCode::invalid_uri);
  return QueryParameter{.name = std::move(*name), .value = std::move(*value)};
}

bool is_ipv4(std::string_view name) {
  int dots = 0;
  for (const char c : name) {
    if (c == '.') {
      ++dots;
    } else if (c < '0' || c > '9') {
      return false;
    }
  }
  return dots == 3;
}

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool is_bucket_name(std::string_view name) {
  if (name.size() < 3 || name.size() > 63) return false;
  if (!is_letter_or_digit(name.front()) || !is_letter_or_digit(name.back())) return false;
  if (!std::ranges::all_of(name, [](char c) { return is_letter_or_digit(c) || c == '-' || c == '.'; }))
    return false;
  if (name.contains("..") || is_ipv4(name)) return false;
  return !name.starts_with("xn--") && !name.ends_with("-s3alias") && !name.ends_with("--ol-s3");
}

}  // namespace

Outcome<Target> parse_target(std::string_view target) {
  if (!target.starts_with('/')) return fault(ErrorCode::invalid_uri);
  Target parsed;
  const auto question = target.find('?');
  parsed.path = target.substr(0, question);
  if (question == std::string_view::npos) return parsed;
  parsed.raw_query = target.substr(question + 1);
  std::string_view rest = parsed.raw_query;
  while (!rest.empty()) {
    const auto end = rest.find('&');
    const std::string_view item = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    if (item.empty()) continue;
    if (parsed.query.size() == kParametersMax) return fault(ErrorCode::invalid_uri);
    TRY(auto parameter, parse_parameter(item));
    parsed.query.push_back(std::move(parameter));
  }
  return parsed;
}

std::optional<std::string_view> find(const Query& query, std::string_view name) {
  const auto it = std::ranges::find(query, name, &QueryParameter::name);
  if (it == query.end()) return std::nullopt;
  return it->value;
}

Outcome<void> check_bucket_name(std::string_view name) {
  if (!is_bucket_name(name))
    return fault(ErrorCode::invalid_bucket_name, {{"BucketName", std::string(name)}});
  return {};
}

Outcome<void> check_key(std::string_view key) {
  if (key.size() > kKeyBytesMax) {
    return fault(ErrorCode::key_too_long_error,
                 {{"Size", std::to_string(key.size())}, {"MaxSizeAllowed", std::to_string(kKeyBytesMax)}});
  }
  if (key.empty() || key.contains('\0') || !base::is_valid_utf8(key)) return fault(ErrorCode::invalid_uri);
  return {};
}

std::string encode_continuation_token(std::string_view start_after) {
  return base::to_hex(base::as_bytes(start_after));
}

Outcome<std::string> decode_continuation_token(std::string_view token) {
  const auto bytes = base::from_hex(token);
  if (!bytes || bytes->empty()) {
    return invalid_argument("The continuation token provided is incorrect", "continuation-token",
                            std::string(token));
  }
  return std::string(base::as_text(*bytes));
}

}  // namespace reelway::s3
