// `reelway tape ...` (a running server's library) and `reelway vtl ...` (a virtual library that no server has
// open).

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <cstdio>
#include <memory>

#include "app/print.h"
#include "app/remote.h"
#include "vtl/library.h"

namespace reelway::app {

namespace json = boost::json;

namespace {

struct TapeOptions : RemoteOptions {
  std::string volume;
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

std::string_view text_of(const json::object& entry, std::string_view name) {
  const auto* value = entry.if_contains(name);
  return value && value->is_string() ? std::string_view(value->get_string()) : std::string_view{};
}

std::uint64_t number_of(const json::object& entry, std::string_view name) {
  const auto* value = entry.if_contains(name);
  return value && value->is_number() ? value->to_number<std::uint64_t>() : 0;
}

/// "verified  1:12345  4096  bucket/key  generation  /path on the volume"
std::string line_of(const json::object& entry) {
  const std::string object = fmt::format("{}/{}", text_of(entry, "bucket"), text_of(entry, "key"));
  const std::string place = fmt::format("{}:{}", number_of(entry, "partition"), number_of(entry, "block"));
  return fmt::format("{:<8}  {:<10}  {:>12}  {}  {}  {}\n", text_of(entry, "state"), place,
                     number_of(entry, "bytes"), one_line(object), text_of(entry, "generation"),
                     one_line(text_of(entry, "path")));
}

void print_text(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

/// Page by page: a volume may hold millions of copies. As JSON it is one document all the same.
base::Result<Exit> run_ls(const TapeOptions& options) {
  bool first_page = true;
  bool first_entry = true;
  std::string after;
  do {
    TRY(auto answer, call_admin(options, "tape/ls",
                                {{"volume", options.volume}, {"prefix", options.prefix}, {"after", after}}));
    const json::array entries = answer["entries"].is_array() ? answer["entries"].get_array() : json::array{};
    after = text_of(answer, "next");
    if (options.as_json && first_page) {
      const json::object head{
          {"barcode", answer["barcode"]}, {"uuid", answer["uuid"]}, {"pool", answer["pool"]}};
      std::string text = json::serialize(head);
      text.pop_back();
      print_text(text + ",\"entries\":[");
    }
    for (const json::value& entry : entries) {
      if (!options.as_json) print_text(line_of(entry.as_object()));
      if (options.as_json) print_text((first_entry ? "" : ",") + json::serialize(entry));
      first_entry = false;
    }
    first_page = false;
  } while (!after.empty());
  if (options.as_json) print_text("]}\n");
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
  const auto ls = add_command(*tape, "ls", "What lies on a volume, by the catalog", action, run_ls);
  auto& ls_command = *tape->get_subcommand("ls");
  ls_command.add_option("volume", ls->volume, "Its barcode, or its LTFS UUID")->required();
  ls_command.add_option("prefix", ls->prefix, "Only objects of this bucket, or with this beginning")
      ->type_name("BUCKET[/KEY]");
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
