#pragma once
// The log as lines of text or JSON (one object a line: time, level, room, message), to standard error or a
// file. Control characters in messages are escaped, so that a client cannot forge lines. Safe for several
// threads.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/result.h"

namespace reelway::obs {

enum class LogFormat : std::uint8_t { text, json };

struct LogOptions {
  base::LogLevel level = base::LogLevel::info;
  LogFormat format = LogFormat::text;
  std::string file;  ///< empty: standard error; appended to
};

/// "debug", "info", "warning", "error".
std::optional<base::LogLevel> parse_log_level(std::string_view text);
/// invalid_argument when the file cannot be opened.
base::Result<std::unique_ptr<base::Log>> make_log(const LogOptions& options);

/// One line, without its end.
std::string format_line(LogFormat format, std::string_view time, base::LogLevel level, std::string_view room,
                        std::string_view message);

}  // namespace reelway::obs
