#pragma once
// The text of a response's head.

#include <string>
#include <string_view>

#include "base/http_head.h"

namespace reelway::http {

std::string_view reason_of(int status);

struct ResponseForm {
  bool chunked = false;
  bool close = false;       ///< say that the connection ends after this
  bool keep_alive = false;  ///< say that it does not (HTTP/1.0 clients want to hear it)
};

/// Appends status line, fields, framing, Date and Server. The caller's own framing and Connection fields are
/// left out. False, and nothing appended, when a field would break the head apart (CR, LF, NUL).
bool append_response_head(std::string& out, const base::HttpResponseHead& head, const ResponseForm& form);

}  // namespace reelway::http
