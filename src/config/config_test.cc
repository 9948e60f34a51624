#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <map>

#include "config/options.h"
#include "config/toml_file.h"
#include "config/units.h"

namespace reelway::config {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

TEST(Toml, MalformedTextIsAnErrorThatNamesTheFile) {
  for (const char* text : {"[&", "[", "a", "a = ", "[[", "a.b.", "a = [1,", "\"", "a = 1\na = 2"}) {
    const auto parsed = parse_toml(text, "reelway.toml");
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code, base::Code::invalid_argument) << text;
    EXPECT_THAT(parsed.error().detail, HasSubstr("reelway.toml")) << text;
  }
}

TEST(Units, ReadsBytes) {
  EXPECT_EQ(parse_bytes("0").value(), 0U);
  EXPECT_EQ(parse_bytes("512").value(), 512U);
  EXPECT_EQ(parse_bytes("4MiB").value(), 4U << 20);
  EXPECT_EQ(parse_bytes("4 mib").value(), 4U << 20);
  EXPECT_EQ(parse_bytes("10GB").value(), 10'000'000'000U);
  EXPECT_EQ(parse_bytes("18TB").value(), 18'000'000'000'000U);
  for (const char* bad :
       {"", "MiB", "-1", "1.5GiB", "1 2", "1XB", "1 GiB x", "99999999999TiB", "20000000TiB", "+1"}) {
    EXPECT_FALSE(parse_bytes(bad).has_value()) << bad;
  }
}

TEST(Units, ReadsDurations) {
  EXPECT_EQ(parse_duration("250ms").value(), 250ms);
  EXPECT_EQ(parse_duration("30s").value(), 30s);
  EXPECT_EQ(parse_duration("5m").value(), 5min);
  EXPECT_EQ(parse_duration("1d").value(), 24h);
  EXPECT_EQ(parse_duration("0").value(), 0s);
  for (const char* bad : {"", "30", "s", "-1s", "1w", "1.5h", "999999999999d"})
    EXPECT_FALSE(parse_duration(bad).has_value()) << bad;
}

TEST(Units, WritesWhatItReads) {
  for (const char* text : {"0", "1B", "1025B", "64KiB", "4MiB", "3GiB", "1TiB", "10GB", "7MB"}) {
    EXPECT_EQ(format_bytes(parse_bytes(text).value()), text);
  }
  for (const char* text : {"0", "250ms", "30s", "90s", "5m", "2h", "1d", "7us"})
    EXPECT_EQ(format_duration(parse_duration(text).value()), text);
}

class TempFile {
 public:
  explicit TempFile(const std::string& text) {
    const int descriptor = ::mkstemp(path_.data());
    ::close(descriptor);
    std::ofstream(path_) << text;
  }
  ~TempFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "/options_XXXXXX";
};

struct Settings {
  std::string listen = "127.0.0.1:9000";
  std::string admin_listen = "127.0.0.1:9001";
  std::uint64_t threads = 4;
  ByteCount pool{64 << 20};
  base::Duration patience = 45s;
  bool verbose = false;
  std::vector<std::string> vtl;
  std::string durability = "full";
  std::string secret_key;
};

struct Outcome {
  Settings settings;
  std::string help;
  base::Result<void> result;
};

Outcome run(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& variables,
            const std::string& file) {
  Outcome done;
  Options options;
  options.add("listen", done.settings.listen, "Where S3 is served");
  options.add("admin-listen", done.settings.admin_listen, "Where commands are served");
  options.add("threads", done.settings.threads, "Reactors");
  options.add("pool", done.settings.pool, "Memory for buffers");
  options.add("patience", done.settings.patience, "How long a request waits for a tape");
  options.add("verbose", done.settings.verbose, "Say more");
  options.add("vtl", done.settings.vtl, "Virtual library");
  options.add_choice("durability", done.settings.durability, {"full", "none"}, "When a PUT is answered");
  options.add_secret("secret-key", done.settings.secret_key, "The root secret key");
  options.check("threads", [&] {
    return done.settings.threads == 0 ? std::optional<std::string>("at least 1") : std::nullopt;
  });
  options.allow_key("of-another-command");
  CLI::App app;
  options.attach(app);
  done.help = app.help();
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  app.parse(reversed);
  const auto environment = [&](const std::string& name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    return it == variables.end() ? std::nullopt : std::optional(it->second);
  };
  done.result = options.resolve(file, environment);
  return done;
}

TEST(Options, FlagsWinOverEnvironmentOverFileOverDefaults) {
  const TempFile file(
      "listen = \"file:1\"\nthreads = 2\npool = \"1GiB\"\npatience = \"10s\"\nverbose = "
      "true\nof-another-command = 1\n[admin]\nlisten = \"file:2\"\n");
  const Outcome done = run({"--listen", "flag:1", "--no-verbose"},
                           {{"REELWAY_LISTEN", "env:1"}, {"REELWAY_THREADS", "3"}}, file.path());
  ASSERT_TRUE(done.result.has_value()) << done.result.error().detail;
  EXPECT_EQ(done.settings.listen, "flag:1");
  EXPECT_EQ(done.settings.threads, 3U);
  EXPECT_EQ(done.settings.pool.bytes, 1U << 30);
  EXPECT_EQ(done.settings.patience, 10s);
  EXPECT_EQ(done.settings.admin_listen, "file:2");
  EXPECT_FALSE(done.settings.verbose);
  EXPECT_EQ(done.settings.durability, "full");
}

TEST(Options, AFlagTakesNoWordOfAPositionalThatMayBeLeftOut) {
  Settings settings;
  Options options;
  options.add("listen", settings.listen, "Where S3 is served");
  options.add("vtl", settings.vtl, "Virtual library");
  CLI::App app;
  options.attach(app);
  std::string from;
  std::string to;
  app.add_option("FROM", from)->required();
  app.add_option("TO", to);
  app.parse(std::vector<std::string>{"there", "here", "a", "--vtl", "flag:1", "--listen"});
  ASSERT_TRUE(options.resolve("", [](const std::string&) { return std::nullopt; }).has_value());
  EXPECT_EQ(from, "here");
  EXPECT_EQ(to, "there");
  EXPECT_EQ(settings.listen, "flag:1");
  EXPECT_EQ(settings.vtl, std::vector<std::string>{"a"});
}

TEST(Options, ListsComeFromAllThree) {
  EXPECT_EQ(run({"--vtl", "a", "--vtl", "b:drives=2,cartridges=8"}, {}, "").settings.vtl,
            (std::vector<std::string>{"a", "b:drives=2,cartridges=8"}));
  EXPECT_EQ(run({}, {{"REELWAY_VTL", "a,b"}}, "").settings.vtl, (std::vector<std::string>{"a", "b"}));
  const TempFile file("vtl = [\"a\", \"b,c\"]\n");
  EXPECT_EQ(run({}, {}, file.path()).settings.vtl, (std::vector<std::string>{"a", "b,c"}));
}

TEST(Options, AnUnknownKeyIsNamedWithItsLine) {
  const TempFile file("threads = 2\n\nlisten_ = \"x\"\n");
  const Outcome done = run({}, {}, file.path());
  ASSERT_FALSE(done.result.has_value());
  EXPECT_THAT(done.result.error().detail, HasSubstr(file.path() + ":3: listen_: there is no such option"));
}

TEST(Options, BadValuesNameTheirSource) {
  const auto detail = [](const Outcome& done) {
    return done.result.has_value() ? "" : done.result.error().detail;
  };
  EXPECT_THAT(detail(run({"--pool", "much"}, {}, "")),
              HasSubstr("--pool: \"much\" is not an amount of bytes"));
  EXPECT_THAT(detail(run({}, {{"REELWAY_PATIENCE", "45"}}, "")),
              HasSubstr("REELWAY_PATIENCE: \"45\" is not a duration"));
  EXPECT_THAT(detail(run({"--durability", "some"}, {}, "")),
              HasSubstr("--durability: \"some\" is not one of full, none"));
  EXPECT_THAT(detail(run({"--threads", "0"}, {}, "")), HasSubstr("threads: at least 1"));
  EXPECT_THAT(detail(run({}, {{"REELWAY_VERBOSE", "maybe"}}, "")), HasSubstr("neither true nor false"));
  for (const char* text : {"threads = \n", "threads = 1\nthreads = 2\n", "threads = 1979-05-27\n",
                           "threads = [1, 2]\n", "[[threads]]\na = 1\n"}) {
    const TempFile file(text);
    EXPECT_THAT(detail(run({}, {}, file.path())), HasSubstr(file.path() + ":")) << text;
  }
  EXPECT_THAT(detail(run({}, {}, "/nowhere/reelway.toml")), HasSubstr("/nowhere/reelway.toml"));
}

TEST(Options, SecretsHaveNoFlagAndAreNeverShown) {
  const TempFile file("secret-key = \"from file\"\n");
  EXPECT_EQ(run({}, {}, file.path()).settings.secret_key, "from file");
  const Outcome done = run({}, {{"REELWAY_SECRET_KEY", "from environment"}}, file.path());
  EXPECT_EQ(done.settings.secret_key, "from environment");
  EXPECT_THAT(done.help, HasSubstr("REELWAY_SECRET_KEY"));
  EXPECT_THAT(done.help, Not(HasSubstr("--secret-key")));
  EXPECT_ANY_THROW(run({"--secret-key", "x"}, {}, ""));
  const TempFile list("secret-key = [\"one secret\", \"two\"]\n");
  EXPECT_THAT(run({}, {}, list.path()).result.error().detail, Not(HasSubstr("one secret")));
}

TEST(Options, HelpTellsVariableAndDefault) {
  const std::string help = run({}, {}, "").help;
  EXPECT_THAT(help, HasSubstr("[REELWAY_ADMIN_LISTEN] (127.0.0.1:9001)"));
  EXPECT_THAT(help, HasSubstr("[REELWAY_POOL] (64MiB)"));
  EXPECT_THAT(help, HasSubstr("full|none"));
}

}  // namespace
}  // namespace reelway::config
