#include "obs/log.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>

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

class SpdlogLog final : public base::Log {
 public:
  SpdlogLog(std::shared_ptr<spdlog::sinks::sink> sink, LogOptions options)
      : logger_("reelway", std::move(sink)), options_(std::move(options)) {
    logger_.set_formatter(std::make_unique<spdlog::pattern_formatter>("%v"));
    logger_.set_level(spdlog::level::trace);
    logger_.flush_on(spdlog::level::trace);
  }
  void write(base::LogLevel level, std::string_view room, std::string_view message) override {
    if (level < options_.level) return;
    const std::string line =
        format_line(options_.format, base::to_iso8601(base::SystemClock().now()), level, room, message);
    logger_.log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
  }

 private:
  spdlog::logger logger_;
  LogOptions options_;
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
  try {
    std::shared_ptr<spdlog::sinks::sink> sink;
    if (options.file.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file);
    }
    return std::make_unique<SpdlogLog>(std::move(sink), options);
  } catch (const spdlog::spdlog_ex& error) {
    return base::fail(base::Code::invalid_argument,
                      fmt::format("log file {}: {}", options.file, error.what()), base::Scope::node);
  }
}

}  // namespace reelway::obs
