#pragma once
// Options, declared once: each has a flag (--admin-listen), an environment variable (REELWAY_ADMIN_LISTEN)
// and a key in a TOML file (admin-listen, or listen in the table [admin]). Flags win over the environment,
// the environment over the file, the file over what the variable held when it was declared. Secrets have no
// flag, because other users of a machine see command lines; and no message shows their values.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace CLI {
class App;
}

namespace reelway::config {

/// An amount of bytes as an option; see config/units.h.
struct ByteCount {
  std::uint64_t bytes = 0;
};

class Options {
 public:
  /// Reads one environment variable; tests hand in their own.
  using Environment = std::function<std::optional<std::string>(const std::string& name)>;
  static Environment system_environment();

  Options();
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  // The variable is written by resolve(); what it holds now is the default. It must live as long as the
  // options.
  void add(std::string name, std::string& value, std::string help);
  void add(std::string name, bool& value, std::string help);
  void add(std::string name, std::uint64_t& value, std::string help);
  void add(std::string name, double& value, std::string help);
  void add(std::string name, ByteCount& value, std::string help);
  void add(std::string name, base::Duration& value, std::string help);
  /// Given several times as a flag, as an array in the file, separated by commas in the environment.
  void add(std::string name, std::vector<std::string>& value, std::string help);
  /// Environment and file only.
  void add_secret(std::string name, std::string& value, std::string help);
  /// One of the words; the variable gets the word.
  void add_choice(std::string name, std::string& value, std::vector<std::string> words, std::string help);
  /// Refuses values (after resolve has written the variable): the sentence says what is wrong; nullopt
  /// accepts.
  void check(std::string name, std::function<std::optional<std::string>()> rule);
  /// A key that the file may hold although this command does not know it.
  void allow_key(std::string name);

  /// Adds the flags, and for each option its variable, key and default to the help.
  void attach(CLI::App& app);
  /// After the command line was parsed. `file` empty: none. invalid_argument naming file and line, variable
  /// or flag, and the cure.
  base::Result<void> resolve(const std::string& file, const Environment& environment);

  static std::string environment_name(const std::string& option_name);

 private:
  struct Option;
  Option& declare(std::string name, std::string help);
  Option* find(const std::string& name);
  base::Result<void> apply_file(const std::string& file);

  std::vector<std::unique_ptr<Option>> options_;
  std::vector<std::string> allowed_keys_;
};

}  // namespace reelway::config
