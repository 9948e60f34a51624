// `reelway archive ...`: policies, and what moves between disk and tape.

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fstream>
#include <iterator>
#include <memory>

#include "app/parse.h"
#include "app/print.h"
#include "app/remote.h"
#include "async/spawn.h"
#include "async/timer.h"
#include "config/units.h"

namespace reelway::app {

namespace json = boost::json;

namespace {

constexpr base::Duration kPollInterval = std::chrono::milliseconds{200};

struct ArchiveOptions : RemoteOptions {
  std::string bucket;
  std::string prefix;
  std::string url;
  std::string keys_file;
  std::uint32_t days = 1;
  bool wait = false;
};

base::Result<json::array> read_keys(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  if (!file || error || !value.is_array()) {
    return base::fail(base::Code::invalid_argument, "--keys " + path + " does not hold a JSON list of keys");
  }
  return value.get_array();
}

base::Result<json::object> where(const ArchiveOptions& options) {
  json::object members{{"bucket", options.bucket}};
  if (!options.prefix.empty()) members["prefix"] = options.prefix;
  if (!options.keys_file.empty()) {
    TRY(members["keys"], read_keys(options.keys_file));
  }
  return members;
}

std::uint64_t count_of(const json::object& answer, std::string_view name) {
  const auto* value = answer.if_contains(name);
  return value && (value->is_int64() || value->is_uint64()) ? value->to_number<std::uint64_t>() : 0;
}

base::Result<Exit> print_and_end(const ArchiveOptions& options, const json::object& answer, bool partly) {
  print_answer(answer, options.as_json);
  return partly ? Exit::partly : Exit::done;
}

base::Result<Exit> run_plain(const ArchiveOptions& options, const std::string& command) {
  TRY(auto members, where(options));
  TRY(const auto answer, call_admin(options, command, std::move(members)));
  const bool partly = count_of(answer, "skipped_count") > 0;
  return print_and_end(options, answer, partly);
}

base::Result<Exit> run_why(const ArchiveOptions& options) {
  TRY(const auto name, parse_s3_url(options.url));
  TRY(const auto answer, call_admin(options, "archive/why", {{"bucket", name.bucket}, {"key", name.key}}));
  return print_and_end(options, answer, false);
}

async::Task<void> pause() {
  async::SystemTimer timer;
  co_return co_await timer.sleep_for(kPollInterval);
}

/// Until no recall is queued or running; answers the archive's status then.
base::Result<json::object> wait_for_recalls(const ArchiveOptions& options) {
  while (true) {
    TRY(const auto status, call_admin(options, "archive/status", {}));
    if (count_of(status, "recalls_queued") + count_of(status, "recalls_running") == 0) return status;
    TRY_VOID(async::run_until_done(pause()));
  }
}

base::Result<Exit> run_recall(const ArchiveOptions& options) {
  TRY(auto members, where(options));
  members["days"] = options.days;
  TRY(const auto before, call_admin(options, "archive/status", {}));
  TRY(auto answer, call_admin(options, "archive/recall", std::move(members)));
  if (!options.wait) return print_and_end(options, answer, false);
  TRY(const auto after, wait_for_recalls(options));
  const std::uint64_t failed_before = count_of(before, "recalls_failed");
  const std::uint64_t failed = count_of(after, "recalls_failed");
  answer["failed"] = failed > failed_before ? failed - failed_before : 0;
  return print_and_end(options, answer, failed > failed_before);
}

struct PolicyOptions : ArchiveOptions {
  std::vector<std::string> pools;
  std::uint32_t minimum_age_s = 0;
  std::uint32_t batch_age_s = 300;
  std::uint64_t batch_count = 10'000;
  std::string batch_bytes = "10GiB";
  std::string bundle_below = "64MiB";
  std::string verify = "read-back";
};

base::Result<Exit> run_policy_set(const PolicyOptions& options) {
  TRY(auto members, where(options));
  TRY(const auto batch_bytes, config::parse_bytes(options.batch_bytes));
  TRY(const auto bundle_below, config::parse_bytes(options.bundle_below));
  json::array pools;
  for (const auto& pool : options.pools) pools.emplace_back(pool);
  members["pools"] = std::move(pools);
  members["minimum_age_s"] = options.minimum_age_s;
  members["batch_age_s"] = options.batch_age_s;
  members["batch_count"] = options.batch_count;
  members["batch_bytes"] = batch_bytes;
  members["bundle_below_bytes"] = bundle_below;
  members["verify"] = options.verify;
  TRY(const auto answer, call_admin(options, "archive/policy/set", std::move(members)));
  return print_and_end(options, answer, false);
}

void add_place(CLI::App& command, ArchiveOptions& options) {
  command.add_option("--bucket", options.bucket, "Bucket")->required()->type_name("NAME");
  command.add_option("--prefix", options.prefix, "Only keys that begin with this")->type_name("TEXT");
}

/// A subcommand with its own copy of the options.
template <class Options>
std::shared_ptr<Options> add_command(CLI::App& parent, const char* name, const char* help, Action& action,
                                     base::Result<Exit> (*run)(const Options&)) {
  auto* command = parent.add_subcommand(name, help);
  const auto options = std::make_shared<Options>();
  add_remote_options(*command, *options);
  command->callback([options, &action, run] { action = [options, run] { return run(*options); }; });
  return options;
}

void add_policy(CLI::App& archive, Action& action) {
  auto* policy = archive.add_subcommand("policy", "What goes to tape, how often, and when");
  policy->require_subcommand(1);
  const auto set =
      add_command<PolicyOptions>(*policy, "set", "Give a bucket or prefix a policy", action, run_policy_set);
  auto& command = *policy->get_subcommand("set");
  add_place(command, *set);
  command.add_option("--pool", set->pools, "A copy goes to this pool; once for each copy")
      ->required()
      ->type_name("NAME");
  command.add_option("--minimum-age", set->minimum_age_s, "Only objects unchanged for so long")
      ->type_name("SECONDS")
      ->capture_default_str();
  command.add_option("--batch-age", set->batch_age_s, "A batch starts when its oldest object waited so long")
      ->type_name("SECONDS")
      ->capture_default_str();
  command.add_option("--batch-count", set->batch_count, "... or when it has so many objects")
      ->type_name("COUNT")
      ->capture_default_str();
  command.add_option("--batch-bytes", set->batch_bytes, "... or so many bytes")
      ->type_name("SIZE")
      ->capture_default_str();
  command.add_option("--bundle-below", set->bundle_below, "Smaller objects share a tar file on tape")
      ->type_name("SIZE")
      ->capture_default_str();
  command.add_option("--verify", set->verify, "How a copy is checked before it counts")
      ->check(CLI::IsMember({"lbp", "read-back", "none"}))
      ->capture_default_str();
  add_command<ArchiveOptions>(
      *policy, "get", "List the policies", action, +[](const ArchiveOptions& options) -> base::Result<Exit> {
        TRY(const auto answer, call_admin(options, "archive/policy/list", {}));
        return print_and_end(options, answer, false);
      });
  const auto remove = add_command<ArchiveOptions>(
      *policy, "remove", "Take a policy away; copies on tape stay", action,
      +[](const ArchiveOptions& options) { return run_plain(options, "archive/policy/remove"); });
  add_place(*policy->get_subcommand("remove"), *remove);
}

}  // namespace

void add_archive(CLI::App& app, Action& action) {
  auto* archive = app.add_subcommand("archive", "Move objects between disk and tape");
  archive->require_subcommand(1);
  add_policy(*archive, action);
  add_command<ArchiveOptions>(
      *archive, "status", "What waits, what is on tape, what failed", action,
      +[](const ArchiveOptions& options) -> base::Result<Exit> {
        TRY(const auto answer, call_admin(options, "archive/status", {}));
        return print_and_end(options, answer, false);
      });
  const auto now = add_command<ArchiveOptions>(
      *archive, "now",
      "Archive everything under a prefix, whatever the batch limits; ends when it is on tape", action,
      +[](const ArchiveOptions& options) { return run_plain(options, "archive/now"); });
  add_place(*archive->get_subcommand("now"), *now);
  const auto evict = add_command<ArchiveOptions>(
      *archive, "evict", "Drop the disk copies of what is safe on tape", action,
      +[](const ArchiveOptions& options) { return run_plain(options, "archive/evict"); });
  add_place(*archive->get_subcommand("evict"), *evict);
  const auto recall = add_command<ArchiveOptions>(
      *archive, "recall", "Bring objects back to disk, in tape order", action, run_recall);
  auto& recall_command = *archive->get_subcommand("recall");
  add_place(recall_command, *recall);
  recall_command.add_option("--keys", recall->keys_file, "Only these: a JSON list of keys")
      ->type_name("FILE");
  recall_command
      .add_option("--days", recall->days, "How long they stay on disk at least; 0: until the next evict")
      ->capture_default_str();
  recall_command.add_flag("--wait", recall->wait, "End when all recalls have ended");
  const auto estimate = add_command<ArchiveOptions>(
      *archive, "estimate", "Drive time that a recall would cost, by the LTO-9 model", action,
      +[](const ArchiveOptions& options) { return run_plain(options, "archive/estimate"); });
  auto& estimate_command = *archive->get_subcommand("estimate");
  estimate_command.add_option("--bucket", estimate->bucket, "Bucket")->required()->type_name("NAME");
  estimate_command.add_option("--keys", estimate->keys_file, "A JSON list of keys, in the order asked")
      ->required()
      ->type_name("FILE");
  const auto why = add_command<ArchiveOptions>(
      *archive, "why", "Say why an object is or is not archived, evicted, recalled", action, run_why);
  archive->get_subcommand("why")->add_option("object", why->url, "s3://BUCKET/KEY")->required();
}

}  // namespace reelway::app
