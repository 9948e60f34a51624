#include <algorithm>
#include <array>
#include <limits>

#include "base/encoding.h"
#include "s3/request.h"
#include "s3/text.h"

namespace reelway::s3 {

namespace {

/// Digits only; a number that does not fit is the largest one, since no object is that long.
std::optional<std::uint64_t> parse_position(std::string_view text) {
  if (text.empty() || !std::ranges::all_of(text, is_digit)) return std::nullopt;
  return base::parse_decimal(text).value_or(std::numeric_limits<std::uint64_t>::max());
}

std::optional<int> parse_number(std::string_view text) {
  const auto number = base::parse_decimal(text);
  if (!number || *number > 9999) return std::nullopt;
  return static_cast<int>(*number);
}

std::optional<unsigned> parse_month(std::string_view text) {
  constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto it = std::ranges::find(kMonths, text);
  if (it == kMonths.end()) return std::nullopt;
  return static_cast<unsigned>(it - kMonths.begin()) + 1;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < text.size() && words.size() < 16;) {
    const std::size_t begin = text.find_first_not_of(separators, at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    at = end;
  }
  return words;
}

struct DateWords {
  std::string_view day, month, year, hour, minute, second;
};

std::optional<base::TimePoint> time_of(int year, unsigned month, unsigned day, std::string_view hour,
                                       std::string_view minute, std::string_view second) {
  const auto h = parse_number(hour);
  const auto m = parse_number(minute);
  const auto s = parse_number(second);
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{month},
                                         std::chrono::day{day}};
  if (!h || !m || !s || *h > 23 || *m > 59 || *s > 60 || !date.ok() || year < 1678 || year > 2261)
    return std::nullopt;
  return base::TimePoint{std::chrono::sys_days{date} + std::chrono::hours{*h} + std::chrono::minutes{*m} +
                         std::chrono::seconds{*s}};
}

std::optional<base::TimePoint> time_of(const DateWords& words) {
  const auto month = parse_month(words.month);
  const auto day = parse_number(words.day);
  auto year = parse_number(words.year);
  if (!month || !day || !year) return std::nullopt;
  if (words.year.size() == 2) *year += *year < 70 ? 2000 : 1900;
  return time_of(*year, *month, static_cast<unsigned>(*day), words.hour, words.minute, words.second);
}

/// One entity tag at the front of `text`, which is advanced past it and its comma.
std::string take_etag(std::string_view& text) {
  if (text.starts_with("W/")) text.remove_prefix(2);
  const bool quoted = text.starts_with('"');
  if (quoted) text.remove_prefix(1);
  const std::size_t end = std::min(text.find(quoted ? '"' : ','), text.size());
  std::string etag(trim(text.substr(0, end)));
  const std::size_t comma = std::min(text.find(',', end), text.size());
  text.remove_prefix(std::min(comma + 1, text.size()));
  return etag;
}

}  // namespace

std::optional<Range> parse_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes=";
  if (!base::equals_ignoring_case(text.substr(0, kUnit.size()), kUnit)) return std::nullopt;
  const std::string_view spec = trim(text.substr(kUnit.size()));
  const auto dash = spec.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view first_text = trim(spec.substr(0, dash));
  const std::string_view last_text = trim(spec.substr(dash + 1));
  Range range{.first = parse_position(first_text), .last = parse_position(last_text)};
  if ((!range.first && !first_text.empty()) || (!range.last && !last_text.empty())) return std::nullopt;
  if (!range.first && !range.last) return std::nullopt;
  if (range.first && range.last && *range.first > *range.last) return std::nullopt;
  return range;
}

Outcome<Range> parse_copy_range(std::string_view text) {
  const auto range = parse_range(text);
  if (!range || !range->first || !range->last) {
    return invalid_argument(
        "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the "
        "zero-based offsets "
        "of the first and last bytes to copy",
        "x-amz-copy-source-range", std::string(text));
  }
  return *range;
}

Outcome<CopySource> parse_copy_source(std::string_view text) {
  const auto refuse = [&] {
    return invalid_argument("Invalid copy source object key", "x-amz-copy-source", std::string(text));
  };
  constexpr std::string_view kVersion = "?versionId=";
  const auto version = text.rfind(kVersion);
  std::string_view path = text.substr(0, version);
  if (path.starts_with('/')) path.remove_prefix(1);
  // Some clients encode the slash between bucket and key too.
  auto decoded = base::percent_decode(path, /*plus_is_space=*/false);
  if (!decoded) return refuse();
  const auto slash = decoded->find('/');
  if (slash == std::string::npos || slash + 1 == decoded->size()) return refuse();
  CopySource source{.bucket = decoded->substr(0, slash), .key = decoded->substr(slash + 1), .version_id = {}};
  if (!check_bucket_name(source.bucket) || !check_key(source.key)) return refuse();
  if (version != std::string_view::npos) {
    auto id = base::percent_decode(text.substr(version + kVersion.size()), false);
    if (!id) return refuse();
    source.version_id = std::move(*id);
  }
  return source;
}

std::vector<std::string> parse_etag_list(std::string_view text) {
  std::vector<std::string> etags;
  for (text = trim(text); !text.empty(); text = trim(text)) {
    std::string etag = take_etag(text);
    if (!etag.empty()) etags.push_back(std::move(etag));
  }
  return etags;
}

std::optional<base::TimePoint> parse_http_date(std::string_view text) {
  const auto words = split(text, " ,-:");
  if (words.size() == 8 && words[7] == "GMT") {
    return time_of({.day = words[1],
                    .month = words[2],
                    .year = words[3],
                    .hour = words[4],
                    .minute = words[5],
                    .second = words[6]});
  }
  if (words.size() == 7) {
    return time_of({.day = words[2],
                    .month = words[1],
                    .year = words[6],
                    .hour = words[3],
                    .minute = words[4],
                    .second = words[5]});
  }
  return std::nullopt;
}

std::optional<base::TimePoint> parse_iso8601(std::string_view text) {
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' ||
      text[16] != ':' || text.back() != 'Z') {
    return std::nullopt;
  }
  const auto year = parse_number(text.substr(0, 4));
  const auto month = parse_number(text.substr(5, 2));
  const auto day = parse_number(text.substr(8, 2));
  if (!year || !month || !day) return std::nullopt;
  const auto whole = time_of(*year, static_cast<unsigned>(*month), static_cast<unsigned>(*day),
                             text.substr(11, 2), text.substr(14, 2), text.substr(17, 2));
  const std::string_view fraction = text.substr(19, text.size() - 20);
  if (!whole || fraction.empty()) return whole;
  if (fraction[0] != '.' || fraction.size() < 2 || fraction.size() > 10 ||
      !std::ranges::all_of(fraction.substr(1), is_digit)) {
    return std::nullopt;
  }
  std::string nanoseconds(fraction.substr(1));
  nanoseconds.resize(9, '0');
  return *whole + std::chrono::nanoseconds{base::parse_decimal(nanoseconds).value_or(0)};
}

}  // namespace reelway::s3
