// `reelway tape ...` (a running server's library) and `reelway vtl ...` (a virtual library that no server has
// open).

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <memory>

#include "app/print.h"
#include "app/remote.h"
#include "vtl/library.h"

namespace reelway::app {

namespace json = boost::json;

namespace {

struct TapeOptions : RemoteOptions {
  std::string bucket;
  std::string prefix;
  bool without_stubs = false;
};

using Run = base::Result<Exit> (*)(const TapeOptions&);

base::Result<Exit> run_library(const TapeOptions& options) {
  TRY(const auto answer, call_admin(options, "tape/library", {}));
  print_answer(answer, options.as_json);
  return Exit::done;
}

base::Result<Exit> run_volumes(const TapeOptions& options) {
  TRY(const auto answer, call_admin(options, "tape/library", {}));
  const auto* volumes = answer.if_contains("cartridges");
  print_answer({{"volumes", volumes ? *volumes : json::value(json::array{})}}, options.as_json);
  return Exit::done;
}

base::Result<Exit> run_import(const TapeOptions& options) {
  TRY(const auto answer, call_admin(options, "tape/import", {{"without_stubs", options.without_stubs}}));
  print_answer(answer, options.as_json);
  const auto* problems = answer.if_contains("problems");
  return problems && problems->is_array() && !problems->get_array().empty() ? Exit::partly : Exit::done;
}

base::Result<Exit> run_verify(const TapeOptions& options) {
  json::object members{{"bucket", options.bucket}};
  if (!options.prefix.empty()) members["prefix"] = options.prefix;
  TRY(const auto answer, call_admin(options, "tape/verify", std::move(members)));
  print_answer(answer, options.as_json);
  return Exit::done;
}

std::shared_ptr<TapeOptions> add_command(CLI::App& tape, const char* name, const char* help, Action& action,
                                         Run run) {
  auto* command = tape.add_subcommand(name, help);
  const auto options = std::make_shared<TapeOptions>();
  add_remote_options(*command, *options);
  command->callback([options, &action, run] { action = [options, run] { return run(*options); }; });
  return options;
}

}  // namespace

void add_tape(CLI::App& app, Action& action) {
  auto* tape = app.add_subcommand("tape", "Look at the library and its volumes");
  tape->require_subcommand(1);
  add_command(*tape, "library", "Slots, drives, cartridges and the queue", action, run_library);
  add_command(*tape, "volumes", "The cartridges: pool, state, fill, copies", action, run_volumes);
  const auto import =
      add_command(*tape, "import", "Rebuild the catalog from the tapes alone", action, run_import);
  tape->get_subcommand("import")->add_flag("--without-stubs", import->without_stubs,
                                           "Do not recreate evicted objects that are missing on disk");
  const auto verify =
      add_command(*tape, "verify", "Read copies from tape, compare checksums, repair", action, run_verify);
  tape->get_subcommand("verify")->add_option("--bucket", verify->bucket, "Bucket")->required();
  tape->get_subcommand("verify")->add_option("--prefix", verify->prefix, "Only keys that begin with this");
}

void add_vtl(CLI::App& app, Action& action) {
  auto* vtl = app.add_subcommand(
      "vtl", "Do to a virtual library what happens to real ones; no server may have it open");
  vtl->require_subcommand(1);
  struct FlipOptions {
    std::string folder;
    std::string barcode;
    unsigned partition = 1;
    std::uint64_t block = 0;
  };
  auto* flip = vtl->add_subcommand("flip-bit", "Damage one bit of one block on a cartridge");
  const auto options = std::make_shared<FlipOptions>();
  flip->add_option("library", options->folder, "The library's folder")->required()->type_name("DIR");
  flip->add_option("barcode", options->barcode, "The cartridge")->required();
  flip->add_option("--partition", options->partition, "0 or 1")
      ->capture_default_str()
      ->check(CLI::Range(0, 1));
  flip->add_option("--block", options->block, "Number of the block in its partition")->required();
  flip->callback([options, &action] {
    action = [options]() -> base::Result<Exit> {
      TRY(auto library_options, vtl::parse_options(options->folder));
      library_options.cartridges = 0;  // as many as there are
      TRY(const auto library, vtl::Library::open(std::move(library_options)));
      TRY_VOID(
          library->flip_bit(options->barcode, static_cast<std::uint8_t>(options->partition), options->block));
      return Exit::done;
    };
  });
}

}  // namespace reelway::app
