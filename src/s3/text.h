#pragma once
// Small helpers for the text of requests. Only for this room.

#include <string>
#include <string_view>

namespace reelway::s3 {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Without spaces and tabs around.
inline std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

inline std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

inline bool starts_with_ignoring_case(std::string_view text, std::string_view lower_prefix) {
  return lower(text.substr(0, lower_prefix.size())) == lower_prefix;
}

}  // namespace reelway::s3
