#pragma once
// A TOML file (v1.0) as a flat list of keys and texts: `listen` in table [admin] is "admin-listen". Strings,
// integers, floats, booleans and arrays of them; nothing else.

#include <string>
#include <vector>

#include "base/result.h"

namespace reelway::config {

struct TomlEntry {
  std::string key;
  std::vector<std::string> values;
  std::size_t line = 0;
};

/// invalid_argument naming file and line; not_found.
base::Result<std::vector<TomlEntry>> read_toml_file(const std::string& file);
/// The same of a text; `name` is for messages.
base::Result<std::vector<TomlEntry>> parse_toml(std::string_view text, const std::string& name);

}  // namespace reelway::config
