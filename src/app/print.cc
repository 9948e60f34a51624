#include "app/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <vector>

namespace reelway::app {

namespace json = boost::json;

namespace {

/// Lists of words fit into a cell; lists and objects of more do not.
bool fits_cell(const json::value& value) {
  if (!value.is_array()) return !value.is_object();
  return std::ranges::none_of(value.get_array(),
                              [](const json::value& item) { return item.is_structured(); });
}

std::string cell(const json::value& value) {
  if (value.is_null()) return "-";
  if (value.is_array()) {
    std::string words;
    for (const json::value& item : value.get_array()) words += (words.empty() ? "" : ",") + cell(item);
    return words.empty() ? "-" : words;
  }
  if (value.is_double()) return fmt::format("{:.2f}", value.get_double());
  return value.is_string() ? one_line(value.get_string()) : json::serialize(value);
}

std::string table(const json::array& rows) {
  std::vector<std::string_view> names;
  for (const auto& member : rows.front().get_object()) {
    const std::string_view name = member.key();
    if (std::ranges::all_of(rows, [&](const json::value& row) { return fits_cell(row.at(name)); }))
      names.push_back(name);
  }
  std::vector<std::vector<std::string>> lines{{names.begin(), names.end()}};
  for (const auto& row : rows) {
    auto& line = lines.emplace_back();
    for (const std::string_view name : names) line.push_back(cell(row.at(name)));
  }
  std::vector<std::size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t column = 0; column < line.size(); ++column)
      widths[column] = std::max(widths[column], line[column].size());
  }
  std::string out;
  for (const auto& line : lines) {
    for (std::size_t column = 0; column + 1 < line.size(); ++column)
      out += fmt::format("  {:<{}}", line[column], widths[column]);
    out += line.empty() ? "\n" : "  " + line.back() + "\n";
  }
  return out;
}

std::string section(std::string_view name, const json::array& list) {
  if (list.empty()) return fmt::format("{}: none\n", name);
  std::string out = fmt::format("{}:\n", name);
  if (list.front().is_object()) return out + table(list);
  for (const auto& item : list) out += "  " + cell(item) + "\n";
  return out;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return out.empty() ? "-" : out;
}

std::string for_people(const json::object& answer) {
  std::string out;
  for (const auto& member : answer) {
    const std::string_view name = member.key();
    out += member.value().is_array() ? section(name, member.value().get_array())
                                     : fmt::format("{}: {}\n", name, cell(member.value()));
  }
  return out;
}

void print_answer(const json::object& answer, bool as_json) {
  const std::string text = as_json ? json::serialize(answer) + "\n" : for_people(answer);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace reelway::app
