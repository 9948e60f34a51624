#include "app/commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

namespace reelway::app {

int run(int argc, char** argv) {
  CLI::App app{"Reelway: an S3 gateway that moves object bytes out of band, onto disk and LTFS tape.",
               "reelway"};
  app.require_subcommand(1);
  app.set_version_flag("--version", REELWAY_VERSION);
  Action action;
  add_serve(app, action);
  add_archive(app, action);
  add_tape(app, action);
  add_get(app, action);
  add_put(app, action);
  add_bench(app, action);
  add_vtl(app, action);
  app.add_subcommand("version", "Print the version")->callback([&action] {
    action = []() -> base::Result<Exit> {
      fmt::print("reelway {}\n", REELWAY_VERSION);
      return Exit::done;
    };
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? static_cast<int>(Exit::done) : static_cast<int>(Exit::usage);
  }
  const auto outcome = action();
  if (outcome) return static_cast<int>(*outcome);
  fmt::print(stderr, "reelway: {}\n", outcome.error().detail);
  return static_cast<int>(outcome.error().code == base::Code::invalid_argument ? Exit::usage : Exit::failed);
}

}  // namespace reelway::app
