// `reelway bench`: how many requests and bytes a second an endpoint gives this machine. For comparisons with
// other servers see scripts/bench.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/asio/this_coro.hpp>

#include "app/parse.h"
#include "app/transfer_jobs.h"
#include "async/spawn.h"
#include "config/units.h"

namespace reelway::app {

namespace {

struct BenchOptions : EndpointOptions {
  std::string method = "get";
  std::string place;
  std::string size = "1MiB";
  std::uint64_t count = 1000;
  std::uint64_t objects = 16;
};

/// Counts what comes.
class CountingSink final : public s3client::Sink {
 public:
  async::Task<void> write(std::uint64_t, base::ByteView) override { co_return base::Result<void>{}; }
};

class Bench {
 public:
  Bench(const BenchOptions& options, object::ObjectName place, std::uint64_t size)
      : options_(options), place_(std::move(place)), bytes_(size), content_(bytes_) {}

  async::Task<Report> run(const s3client::Options& client_options) {
    Report report;
    const base::SystemClock clock;
    base::SystemRng rng;
    rng.fill(bytes_);
    const async::Executor executor = co_await async::net::this_coro::executor;
    CO_TRY(const auto client, s3client::Client::create(executor, client_options, clock, rng));
    Report prepared;
    const Job prepare = [&](std::size_t index) { return put(*client, index, prepared); };
    const auto name = [&](std::size_t index) { return key(index); };
    if (options_.method == "get")
      CO_TRY_VOID(co_await run_jobs(options_.objects, options_.parallel, prepare, name, prepared));
    if (!prepared.failed.empty()) co_return base::fail(base::Code::unavailable, prepared.failed.front());
    const auto started = clock.steady_now();
    const Job job = [&](std::size_t index) {
      return options_.method == "get" ? get(*client, index, report) : put(*client, index, report);
    };
    CO_TRY_VOID(co_await run_jobs(options_.count, options_.parallel, job, name, report));
    seconds_ = std::chrono::duration<double>(clock.steady_now() - started).count();
    co_return report;
  }
  double seconds() const { return seconds_; }

 private:
  std::string key(std::size_t index) const {
    return place_.key + "bench-" + std::to_string(index % options_.objects);
  }

  async::Task<void> put(s3client::Client& client, std::size_t index, Report& report) {
    CO_TRY(const auto stored, co_await client.put(place_.bucket, key(index), content_, {}));
    ++report.objects;
    report.bytes += bytes_.size();
    co_return base::Result<void>{};
  }

  async::Task<void> get(s3client::Client& client, std::size_t index, Report& report) {
    CountingSink sink;
    CO_TRY(const auto got, co_await client.get(place_.bucket, key(index), sink, {}));
    ++report.objects;
    report.bytes += got.bytes;
    co_return base::Result<void>{};
  }

  const BenchOptions& options_;
  const object::ObjectName place_;
  base::Bytes bytes_;
  s3client::MemoryContent content_;
  double seconds_ = 0;
};

base::Result<Exit> run_bench(const BenchOptions& options) {
  TRY(const auto endpoint, client_options(options));
  TRY(auto place, parse_s3_url(options.place));
  TRY(const std::uint64_t size, config::parse_bytes(options.size));
  if (options.objects == 0) return base::fail(base::Code::invalid_argument, "--objects must be at least 1");
  Bench bench(options, std::move(place), size);
  TRY(const auto report, async::run_until_done(bench.run(endpoint)));
  if (!options.as_json && report.objects > 0) {
    fmt::print("{:.0f} requests/s, {:.1f} MB/s\n", static_cast<double>(report.objects) / bench.seconds(),
               static_cast<double>(report.bytes) / 1e6 / bench.seconds());
  }
  return print_report(report, bench.seconds(), options.as_json);
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("bench", "Measure an endpoint with puts or gets of one size");
  const auto options = std::make_shared<BenchOptions>();
  add_endpoint_options(*command, *options);
  command->add_option("method", options->method, "get or put")
      ->required()
      ->check(CLI::IsMember({"get", "put"}));
  command->add_option("place", options->place, "s3://BUCKET/PREFIX for the objects, which stay there")
      ->required();
  command->add_option("--size", options->size, "Of an object")->type_name("SIZE")->capture_default_str();
  command->add_option("--count", options->count, "Requests in all")->capture_default_str();
  command->add_option("--objects", options->objects, "Different objects")->capture_default_str();
  command->callback([options, &action] { action = [options] { return run_bench(*options); }; });
}

}  // namespace reelway::app
