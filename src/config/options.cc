#include "config/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "base/encoding.h"
#include "config/toml_file.h"
#include "config/units.h"

namespace reelway::config {

using base::Code;
using base::Result;

struct Options::Option {
  std::string name;
  std::string help;
  std::string default_text;
  std::string type_name;
  bool secret = false;
  bool list = false;
  bool is_switch = false;
  std::vector<std::string> from_flags;
  /// Writes the variable; one text unless `list`.
  std::function<Result<void>(const std::vector<std::string>&)> set;
  std::function<std::optional<std::string>()> rule;

  Result<void> apply(const std::string& source, const std::vector<std::string>& texts) {
    if (!list && texts.size() != 1) return base::fail(Code::invalid_argument, source + ": one value, please");
    if (const Result<void> written = set(texts); !written.has_value()) {
      return base::fail(Code::invalid_argument,
                        source + ": " + (secret ? "not usable" : written.error().detail));
    }
    return {};
  }
};

namespace {

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (!text.empty()) {
    const std::size_t comma = text.find(',', begin);
    parts.push_back(text.substr(begin, comma - begin));
    if (comma == std::string::npos) break;
    begin = comma + 1;
  }
  return parts;
}

Result<bool> parse_bool(const std::string& text) {
  for (const char* yes : {"true", "yes", "on", "1"}) {
    if (text == yes) return true;
  }
  for (const char* no : {"false", "no", "off", "0"}) {
    if (text == no) return false;
  }
  return base::fail(Code::invalid_argument, "\"" + text + "\" is neither true nor false");
}

Result<double> parse_double(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size())
    return base::fail(Code::invalid_argument, "\"" + text + "\" is no number");
  return value;
}

std::string join(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : std::string(between)) + word;
  return text;
}

std::string shown(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  return text.ends_with('.') ? text + '0' : text;
}

}  // namespace

Options::Options() = default;
Options::~Options() = default;

Options::Environment Options::system_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

std::string Options::environment_name(const std::string& option_name) {
  std::string name = "REELWAY_";
  for (const char c : option_name)
    name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return name;
}

Options::Option& Options::declare(std::string name, std::string help) {
  auto option = std::make_unique<Option>();
  option->name = std::move(name);
  option->help = std::move(help);
  return *options_.emplace_back(std::move(option));
}

Options::Option* Options::find(const std::string& name) {
  const auto it = std::ranges::find_if(options_, [&](const auto& option) { return option->name == name; });
  return it == options_.end() ? nullptr : it->get();
}

void Options::add(std::string name, std::string& value, std::string help) {
  Option& option = declare(std::move(name), std::move(help));
  option.default_text = value;
  option.type_name = "TEXT";
  option.set = [&value](const std::vector<std::string>& texts) -> Result<void> {
    value = texts.front();
    return {};
  };
}

void Options::add(std::string name, bool& value, std::string help) {
  Option& option = declare(std::move(name), std::move(help));
  option.default_text = value ? "true" : "false";
  option.is_switch = true;
  option.set = [&value](const std::vector<std::string>& texts) -> Result<void> {
    TRY(value, parse_bool(texts.front()));
    return {};
  };
}

void Options::add(std::string name, std::uint64_t& value, std::string help) {
  Option& option = declare(std::move(name), std::move(help));
  option.default_text = std::to_string(value);
  option.type_name = "NUMBER";
  option.set = [&value](const std::vector<std::string>& texts) -> Result<void> {
    const auto parsed = base::parse_decimal(texts.front());
    if (!parsed.has_value())
      return base::fail(Code::invalid_argument, "\"" + texts.front() + "\" is no whole number");
    value = *parsed;
    return {};
  };
}

void Options::add(std::string name, double& value, std::string help) {
  Option& option = declare(std::move(name), std::move(help));
  option.default_text = shown(value);
  option.type_name = "NUMBER";
  option.set = [&value](const std::vector<std::string>& texts) -> Result<void> {
    TRY(value, parse_double(texts.front()));
    return {};
  };
}

void Options::add(std::string name, ByteCount& value, std::string help) {
  Option& option = declare(std::move(name), std::move(help));
  option.default_text = format_bytes(value.bytes);
  option.type_name = "BYTES";
  option.set = [&value](const std::vector<std::string>& texts) -> Result<void> {
    TRY(value.bytes, parse_bytes(texts.front()));
    return {};
  };
}

void Options::add(std::string name, base::Duration& value, std::string help) {
  Option& option = declare(std::move(name), std::move(help));
  option.default_text = format_duration(value);
  option.type_name = "DURATION";
  option.set = [&value](const std::vector<std::string>& texts) -> Result<void> {
    TRY(value, parse_duration(texts.front()));
    return {};
  };
}

void Options::add(std::string name, std::vector<std::string>& value, std::string help) {
  Option& option = declare(std::move(name), std::move(help));
  option.default_text = join(value, ",");
  option.type_name = "TEXT";
  option.list = true;
  option.set = [&value](const std::vector<std::string>& texts) -> Result<void> {
    value = texts;
    return {};
  };
}

void Options::add_secret(std::string name, std::string& value, std::string help) {
  add(std::move(name), value, std::move(help));
  options_.back()->secret = true;
  options_.back()->default_text.clear();
}

void Options::add_choice(std::string name, std::string& value, std::vector<std::string> words,
                         std::string help) {
  add(std::move(name), value, std::move(help));
  options_.back()->type_name = join(words, "|");
  options_.back()->set = [&value,
                          words = std::move(words)](const std::vector<std::string>& texts) -> Result<void> {
    if (std::ranges::find(words, texts.front()) == words.end()) {
      return base::fail(Code::invalid_argument,
                        "\"" + texts.front() + "\" is not one of " + join(words, ", "));
    }
    value = texts.front();
    return {};
  };
}

void Options::check(std::string name, std::function<std::optional<std::string>()> rule) {
  find(name)->rule = std::move(rule);
}

void Options::allow_key(std::string name) { allowed_keys_.push_back(std::move(name)); }

void Options::attach(CLI::App& app) {
  std::string secrets;
  for (const auto& option : options_) {
    const std::string variable = environment_name(option->name);
    if (option->secret) {
      secrets += "\n  " + variable + "  " + option->help;
      continue;
    }
    const std::string note = option->help + " [" + variable + "]" +
                             (option->default_text.empty() ? "" : " (" + option->default_text + ")");
    if (option->is_switch) {
      app.add_flag_callback("--" + option->name, [flags = &option->from_flags] { *flags = {"true"}; }, note);
      app.add_flag_callback("--no-" + option->name, [flags = &option->from_flags] { *flags = {"false"}; })
          ->group("");
    } else {
      CLI::Option* flag =
          app.add_option("--" + option->name, option->from_flags, note)->type_name(option->type_name);
      // One value each time the flag is given: never take the words that follow.
      flag->expected(1)->allow_extra_args(false);
      if (option->list) {
        flag->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      } else {
        flag->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
      }
    }
  }
  if (!secrets.empty()) app.footer("Only from the environment or the configuration file:" + secrets);
}

Result<void> Options::apply_file(const std::string& file) {
  TRY(const auto entries, read_toml_file(file));
  for (const TomlEntry& entry : entries) {
    const std::string source = file + ":" + std::to_string(entry.line) + ": " + entry.key;
    if (Option* option = find(entry.key)) {
      TRY_VOID(option->apply(source, entry.values));
    } else if (std::ranges::find(allowed_keys_, entry.key) == allowed_keys_.end()) {
      return base::fail(Code::invalid_argument, source + ": there is no such option; --help lists them");
    }
  }
  return {};
}

Result<void> Options::resolve(const std::string& file, const Environment& environment) {
  if (!file.empty()) TRY_VOID(apply_file(file));
  for (const auto& option : options_) {
    const std::string variable = environment_name(option->name);
    if (const auto text = environment(variable)) {
      TRY_VOID(option->apply(variable, option->list ? split_list(*text) : std::vector{*text}));
    }
    if (!option->from_flags.empty()) TRY_VOID(option->apply("--" + option->name, option->from_flags));
  }
  for (const auto& option : options_) {
    if (!option->rule) continue;
    if (const auto wrong = option->rule())
      return base::fail(Code::invalid_argument, option->name + ": " + *wrong);
  }
  return {};
}

}  // namespace reelway::config
