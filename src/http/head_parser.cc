#include "http/head_parser.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/encoding.h"

namespace reelway::http {

namespace {

constexpr std::size_t kEmptyLinesMax = 2;

/// RFC 9110, 5.6.2.
constexpr std::array<bool, 256> kTokenCharacters = [] {
  std::array<bool, 256> table{};
  for (const char c :
       std::string_view("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    table[static_cast<unsigned char>(c)] = true;
  }
  return table;
}();

bool is_token(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return kTokenCharacters[static_cast<unsigned char>(c)]; });
}

bool is_control(char c) {
  const auto value = static_cast<unsigned char>(c);
  return value < 0x20 || value == 0x7f;
}

std::string_view trim(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::unexpected<HeadError> refuse(int status, std::string_view reason) {
  return std::unexpected(HeadError{status, reason});
}
std::unexpected<HeadError> refuse(std::string_view reason) { return refuse(400, reason); }

/// Takes a line off the front; find_head_end has seen that each ends in CRLF.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find("\r\n");
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
  return line;
}

/// 10 or 11 for HTTP/1.x, 0 for what is no version, 20 for one that we do not speak.
int version_of(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() != 8 || !text.starts_with("HTTP/") || !is_digit(text[5]) || text[6] != '.' ||
      !is_digit(text[7]))
    return 0;
  if (text[5] != '1') return 20;
  return text[7] == '0' ? 10 : 11;
}

std::expected<base::HttpFields, HeadError> parse_fields(std::string_view text) {
  base::HttpFields fields;
  for (;;) {
    const std::string_view line = take_line(text);
    if (line.empty()) return fields;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return refuse("a field without a colon");
    // Also refuses folded lines and space before the colon: neither is a token.
    if (!is_token(line.substr(0, colon))) return refuse("a field name that is no token");
    const std::string_view value = trim(line.substr(colon + 1));
    if (std::ranges::any_of(value, [](char c) { return is_control(c) && c != '\t'; }))
      return refuse("a control character in a field");
    fields.add(std::string(line.substr(0, colon)), std::string(value));
  }
}

std::size_t count_of(const base::HttpFields& fields, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count_if(
      fields, [&](const base::HttpField& f) { return base::equals_ignoring_case(f.name, name); }));
}

struct Framing {
  std::optional<std::uint64_t> content_length;
  bool chunked = false;
};

/// RFC 9112, 6.3, without its leniencies.
std::expected<Framing, HeadError> framing_of(const base::HttpFields& fields) {
  Framing framing;
  const std::size_t lengths = count_of(fields, "Content-Length");
  const std::size_t codings = count_of(fields, "Transfer-Encoding");
  if (lengths > 1) return refuse("Content-Length is repeated");
  if (codings > 1) return refuse("Transfer-Encoding is repeated");
  if (lengths == 1 && codings == 1) return refuse("both Content-Length and Transfer-Encoding");
  if (lengths == 1) {
    const auto length = base::parse_decimal(fields.get_or("Content-Length", ""));
    if (!length.has_value()) return refuse("Content-Length is no number");
    framing.content_length = *length;
  }
  if (codings == 1) {
    if (!base::equals_ignoring_case(fields.get_or("Transfer-Encoding", ""), "chunked"))
      return refuse(501, "a transfer coding other than chunked");
    framing.chunked = true;
  }
  return framing;
}

bool keeps_alive(const base::HttpFields& fields, int version) {
  bool alive = version >= 11;
  for (const auto& field : fields) {
    if (!base::equals_ignoring_case(field.name, "Connection")) continue;
    if (list_contains(field.value, "close")) return false;
    if (version == 10 && list_contains(field.value, "keep-alive")) alive = true;
  }
  return alive;
}

struct RequestLine {
  std::string_view method;
  std::string_view target;
  std::string_view authority;  ///< of an absolute target
  int version = 0;
};

std::expected<RequestLine, HeadError> parse_request_line(std::string_view line) {
  RequestLine parsed;
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last)
    return refuse("a request line that is not three words");
  parsed.method = line.substr(0, first);
  parsed.target = line.substr(first + 1, last - first - 1);
  parsed.version = version_of(line.substr(last + 1));
  if (parsed.version == 0) return refuse("a request line without a version");
  if (parsed.version > 11) return refuse(505, "a version other than HTTP/1.x");
  if (!is_token(parsed.method)) return refuse("a method that is no token");
  if (std::ranges::any_of(parsed.target, [](char c) { return is_control(c) || c == ' '; }))
    return refuse("a target with spaces or control characters");
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!parsed.target.starts_with(scheme)) continue;
    parsed.target.remove_prefix(scheme.size());
    const std::size_t path = std::min(parsed.target.find_first_of("/?"), parsed.target.size());
    parsed.authority = parsed.target.substr(0, path);
    parsed.target.remove_prefix(path);
    if (parsed.target.empty()) parsed.target = "/";
  }
  if (!parsed.target.starts_with('/') && !(parsed.target == "*" && parsed.method == "OPTIONS"))
    return refuse("a target that is no path");
  return parsed;
}

}  // namespace

bool list_contains(std::string_view list, std::string_view token) {
  for (;;) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (base::equals_ignoring_case(trim(list.substr(0, comma)), token)) return true;
    if (comma == list.size()) return false;
    list.remove_prefix(comma + 1);
  }
}

std::expected<std::size_t, HeadError> find_head_end(std::string_view text, HeadScan& scan) {
  while (scan.line < text.size()) {
    const void* found = std::memchr(text.data() + scan.line, '\n', text.size() - scan.line);
    if (found == nullptr) break;
    const auto end = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    if (end == scan.line || text[end - 1] != '\r') return refuse("a line that ends in LF alone");
    const bool empty = end == scan.line + 1;
    scan.line = end + 1;
    if (!empty) {
      scan.content = true;
    } else if (scan.content) {
      return scan.line;
    } else if (++scan.empty_lines > kEmptyLinesMax) {
      return refuse("empty lines instead of a request");
    }
  }
  return 0U;
}

std::expected<RequestHead, HeadError> parse_request_head(std::string_view text) {
  while (text.starts_with("\r\n")) text.remove_prefix(2);
  const auto line = parse_request_line(take_line(text));
  if (!line.has_value()) return std::unexpected(line.error());
  auto fields = parse_fields(text);
  if (!fields.has_value()) return std::unexpected(fields.error());
  const auto framing = framing_of(*fields);
  if (!framing.has_value()) return std::unexpected(framing.error());
  if (framing->chunked && line->version == 10) return refuse("Transfer-Encoding in HTTP/1.0");
  const std::size_t hosts = count_of(*fields, "Host");
  if (hosts > 1 || (hosts == 0 && line->version >= 11)) return refuse("not exactly one Host");
  if (!line->authority.empty()) fields->set("Host", std::string(line->authority));

  RequestHead parsed;
  parsed.http_1_0 = line->version == 10;
  parsed.keep_alive = keeps_alive(*fields, line->version);
  parsed.head.method = line->method;
  parsed.head.target = line->target;
  parsed.head.content_length = framing->content_length;
  parsed.head.chunked = framing->chunked;
  if (const auto expect = fields->get("Expect"); expect && !parsed.http_1_0) {
    if (!base::equals_ignoring_case(*expect, "100-continue"))
      return refuse(417, "an expectation other than 100-continue");
    parsed.head.expects_continue = framing->chunked || framing->content_length.value_or(0) > 0;
  }
  parsed.head.fields = std::move(*fields);
  return parsed;
}

std::expected<ResponseHead, HeadError> parse_response_head(std::string_view text) {
  while (text.starts_with("\r\n")) text.remove_prefix(2);
  const std::string_view line = take_line(text);
  const int version = version_of(line.substr(0, std::min<std::size_t>(8, line.size())));
  if (version != 10 && version != 11) return refuse("no HTTP/1.x status line");
  if (line.size() < 12 || line[8] != ' ' || (line.size() > 12 && line[12] != ' '))
    return refuse("a broken status line");
  const auto status = base::parse_decimal(line.substr(9, 3));
  if (!status.has_value() || *status < 100) return refuse("a status that is no number from 100");
  auto fields = parse_fields(text);
  if (!fields.has_value()) return std::unexpected(fields.error());
  const auto framing = framing_of(*fields);
  if (!framing.has_value()) return std::unexpected(framing.error());
  if (framing->chunked && version == 10) return refuse("Transfer-Encoding in HTTP/1.0");

  ResponseHead parsed;
  parsed.keep_alive = keeps_alive(*fields, version);
  parsed.chunked = framing->chunked;
  parsed.head.status = static_cast<int>(*status);
  parsed.head.content_length = framing->content_length;
  parsed.head.fields = std::move(*fields);
  return parsed;
}

}  // namespace reelway::http
