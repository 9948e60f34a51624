#include "tape/ltfs/version.h"

#include <algorithm>

#include "base/encoding.h"

namespace reelway::tape::ltfs {

using base::Code;
using base::fail;
using base::Result;

namespace {

constexpr int kYearMin = 1678;  // int64 nanoseconds reach from 1677-09-21 to 2262-04-11
constexpr int kYearMax = 2261;

base::Error bad_time(std::string_view text) {
  return fail(Code::data_loss, "not an LTFS time: " + printable(text), base::Scope::cartridge);
}

}  // namespace

bool is_supported_version(std::string_view version) {
  std::size_t numbers = 0;
  while (true) {
    const auto dot = version.find('.');
    const auto number = base::parse_decimal(version.substr(0, dot));
    if (!number || version.substr(0, dot).size() > 2) return false;
    if (numbers == 0 && *number != 1 && *number != 2) return false;
    ++numbers;
    if (dot == std::string_view::npos) return numbers == 3;
    version.remove_prefix(dot + 1);
  }
}

std::string printable(std::string_view text) {
  std::string out(text.substr(0, 32));
  for (char& c : out) {
    if (c < 0x20 || c > 0x7E) c = '?';
  }
  return out;
}

Result<base::TimePoint> parse_ltfs_time(std::string_view text) {
  // The positions of what is not a digit; the year has four digits in every volume ever written.
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd.dddddddddZ";
  if (text.size() != kForm.size()) return bad_time(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == 'd' ? !digit : text[i] != kForm[i]) return bad_time(text);
  }
  const auto number = [text](std::size_t offset, std::size_t digits) {
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) value = value * 10 + (text[offset + i] - '0');
    return value;
  };
  const int year = std::clamp(number(0, 4), kYearMin, kYearMax);
  const std::chrono::year_month_day date{std::chrono::year{year},
                                         std::chrono::month{static_cast<unsigned>(number(5, 2))},
                                         std::chrono::day{static_cast<unsigned>(number(8, 2))}};
  if (!date.ok() || number(11, 2) > 24 || number(14, 2) > 59 || number(17, 2) > 60) return bad_time(text);
  return base::TimePoint(std::chrono::sys_days(date)) + std::chrono::hours(number(11, 2)) +
         std::chrono::minutes(number(14, 2)) + std::chrono::seconds(number(17, 2)) +
         std::chrono::nanoseconds(number(20, 9));
}

}  // namespace reelway::tape::ltfs
