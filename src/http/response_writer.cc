#include "http/response_writer.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include "base/clock.h"

namespace reelway::http {

namespace {

void append_number(std::string& out, std::uint64_t value) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

/// Made once a second.
std::string_view date_now() {
  struct Cached {
    std::time_t second = 0;
    std::string text;
  };
  static thread_local Cached cached;
  if (const std::time_t second = std::time(nullptr); second != cached.second) {
    cached = {second, base::to_http_date(base::TimePoint{std::chrono::seconds{second}})};
  }
  return cached.text;
}

bool is_clean(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

bool is_ours(std::string_view name) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"Content-Length", "Transfer-Encoding", "Connection", "Server"},
      [&](std::string_view ours) { return base::equals_ignoring_case(name, ours); });
}

}  // namespace

std::string_view reason_of(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return "Status";
  }
}

bool append_response_head(std::string& out, const base::HttpResponseHead& head, const ResponseForm& form) {
  for (const auto& field : head.fields) {
    if (!is_clean(field.name) || !is_clean(field.value)) return false;
  }
  out += "HTTP/1.1 ";
  append_number(out, static_cast<std::uint64_t>(std::clamp(head.status, 100, 999)));
  out.append(" ").append(reason_of(head.status)).append("\r\n");
  bool dated = false;
  for (const auto& field : head.fields) {
    if (is_ours(field.name)) continue;
    dated = dated || base::equals_ignoring_case(field.name, "Date");
    out.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  if (form.chunked) out += "Transfer-Encoding: chunked\r\n";
  if (head.content_length && head.status != 204) {
    out += "Content-Length: ";
    append_number(out, *head.content_length);
    out += "\r\n";
  }
  if (form.close) out += "Connection: close\r\n";
  if (form.keep_alive) out += "Connection: keep-alive\r\n";
  if (!dated) out.append("Date: ").append(date_now()).append("\r\n");
  out += "Server: Reelway\r\n\r\n";
  return true;
}

}  // namespace reelway::http
