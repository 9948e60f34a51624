#include "obs/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/clock.h"

namespace reelway::obs {

namespace {

constexpr std::array<std::string_view, 4> kLevelNames{"debug", "info", "warning", "error"};

/// Control characters, quotes and backslashes in the way of JSON (RFC 8259, 7); `quotes` false leaves quotes
/// and backslashes.
std::string escape(std::string_view text, bool quotes) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (const auto value = static_cast<unsigned char>(c); value < 0x20 || value == 0x7f) {
      out += fmt::format("\\u{:04x}", value);
    } else {
      if (quotes && (c == '"' || c == '\\')) out += '\\';
      out += c;
    }
  }
  return out;
}

/// Each line is one write(2) to a descriptor in append mode: lines of several threads, and of several
/// processes that share a file, do not mix.
class LineLog final : public base::Log {
 public:
  LineLog(LogOptions options, int descriptor) : options_(std::move(options)), descriptor_(descriptor) {}
  ~LineLog() override {
    if (descriptor_ != STDERR_FILENO) ::close(descriptor_);
  }
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;

  void write(base::LogLevel level, std::string_view room, std::string_view message) override {
    if (level < options_.level) return;
    std::string line =
        format_line(options_.format, base::to_iso8601(base::SystemClock().now()), level, room, message);
    line += '\n';
    std::string_view rest = line;
    while (!rest.empty()) {
      const ssize_t count = ::write(descriptor_, rest.data(), rest.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return;  // a log that cannot be written (disk full, pipe closed) stops no request
      rest.remove_prefix(static_cast<std::size_t>(count));
    }
  }

 private:
  LogOptions options_;
  int descriptor_;
};

}  // namespace

std::optional<base::LogLevel> parse_log_level(std::string_view text) {
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (text == kLevelNames[i]) return static_cast<base::LogLevel>(i);
  }
  return std::nullopt;
}

std::string format_line(LogFormat format, std::string_view time, base::LogLevel level, std::string_view room,
                        std::string_view message) {
  const std::string_view name = kLevelNames[static_cast<std::size_t>(level)];
  if (format == LogFormat::json) {
    return fmt::format(R"({{"time":"{}","level":"{}","room":"{}","message":"{}"}})", time, name,
                       escape(room, true), escape(message, true));
  }
  return fmt::format("{} {:7} {}: {}", time, name, escape(room, false), escape(message, false));
}

base::Result<std::unique_ptr<base::Log>> make_log(const LogOptions& options) {
  int descriptor = STDERR_FILENO;
  if (!options.file.empty()) {
    descriptor = ::open(options.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (descriptor < 0) return base::from_errno(errno, "open the log file " + options.file);
  }
  return std::make_unique<LineLog>(options, descriptor);
}

}  // namespace reelway::obs
