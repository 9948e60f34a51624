#include "config/toml_file.h"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <stdexcept>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
// Some malformed files ("[&") trip the parser's own assertions: an error for the operator, not the end of the
// process.
#define TOML_ASSERT(condition) ((condition) ? void() : throw std::invalid_argument("not TOML"))
#include <fmt/format.h>
#include <toml++/toml.h>

namespace reelway::config {

namespace {

using base::Result;

base::Error bad(const std::string& name, std::size_t line, std::string_view what) {
  return base::fail(base::Code::invalid_argument, fmt::format("{}:{}: {}", name, line, what));
}

Result<std::string> text_of(const toml::node& node, const std::string& name, const std::string& key) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* truth = node.as_boolean()) return std::string(truth->get() ? "true" : "false");
  return bad(name, node.source().begin.line,
             key + ": a text, a number, true, false or an array of them, please");
}

Result<void> flatten(const toml::table& table, const std::string& prefix, const std::string& name,
                     std::vector<TomlEntry>& entries) {
  for (const auto& [table_key, node] : table) {
    const std::string key = prefix + std::string(table_key.str());
    if (const auto* inner = node.as_table()) {
      TRY_VOID(flatten(*inner, key + "-", name, entries));
      continue;
    }
    TomlEntry entry{.key = key, .values = {}, .line = node.source().begin.line};
    if (const auto* array = node.as_array()) {
      for (const auto& element : *array) {
        TRY(std::string text, text_of(element, name, key));
        entry.values.push_back(std::move(text));
      }
    } else {
      TRY(std::string text, text_of(node, name, key));
      entry.values.push_back(std::move(text));
    }
    entries.push_back(std::move(entry));
  }
  return {};
}

}  // namespace

Result<std::vector<TomlEntry>> parse_toml(std::string_view text, const std::string& name) {
  try {
    const toml::table parsed = toml::parse(text, name);
    std::vector<TomlEntry> entries;
    TRY_VOID(flatten(parsed, "", name, entries));
    return entries;
  } catch (const toml::parse_error& error) {
    return bad(name, error.source().begin.line, error.description());
  } catch (const std::invalid_argument& error) {
    return base::fail(base::Code::invalid_argument, fmt::format("{}: {}", name, error.what()));
  }
}

Result<std::vector<TomlEntry>> read_toml_file(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return base::from_errno(errno, "configuration file " + file);
  const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  return parse_toml(text, file);
}

}  // namespace reelway::config
