#pragma once
// Reads the head of an HTTP/1.x message (RFC 9112). Strict where laxness lets two programs disagree about
// where a message ends: bare LF, NUL, folded lines, space before a colon, repeated or contradicting lengths
// are refused. Written by hand because Beast's parser accepts some of these and costs more than the rest of a
// small request.

#include <expected>
#include <string_view>

#include "base/http_head.h"

namespace reelway::http {

/// What to answer instead of the request; `reason` is a sentence for the log.
struct HeadError {
  int status = 400;
  std::string_view reason;
};

struct RequestHead {
  base::HttpRequestHead head;
  bool keep_alive = true;
  bool http_1_0 = false;
};

struct ResponseHead {
  base::HttpResponseHead head;
  bool chunked = false;
  bool keep_alive = true;
};

/// How far the search for a head's end has come, so that nothing is looked at twice when more bytes arrive.
struct HeadScan {
  std::size_t line = 0;  ///< start of the first line not seen whole
  std::size_t empty_lines = 0;
  bool content = false;  ///< a line that is not empty was seen
};

/// Bytes of the head at the front of `text`, its empty line included; 0 when more must come. Empty lines
/// before it count as part of it.
std::expected<std::size_t, HeadError> find_head_end(std::string_view text, HeadScan& scan);

/// `text` is exactly one head as found by find_head_end.
std::expected<RequestHead, HeadError> parse_request_head(std::string_view text);
std::expected<ResponseHead, HeadError> parse_response_head(std::string_view text);

/// True when a comma-separated list has the token, in either case (RFC 9110, 5.6.1).
bool list_contains(std::string_view list, std::string_view token);

}  // namespace reelway::http
