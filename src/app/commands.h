#pragma once
// The command line: one function per subcommand adds its options and what to run. Exit status: 0 done, 1
// failed, 2 wrong use, 3 done in part.

#include <CLI/App.hpp>
#include <functional>

#include "base/result.h"

namespace reelway::app {

enum class Exit : int { done = 0, failed = 1, usage = 2, partly = 3 };

int run(int argc, char** argv);

/// What the chosen subcommand does, to be called once the whole line has been read.
using Action = std::function<base::Result<Exit>()>;

void add_serve(CLI::App& app, Action& action);
void add_archive(CLI::App& app, Action& action);
void add_tape(CLI::App& app, Action& action);
void add_vtl(CLI::App& app, Action& action);
void add_get(CLI::App& app, Action& action);
void add_put(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);

}  // namespace reelway::app
