#include "app/transfer_jobs.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <boost/json.hpp>

#include "app/parse.h"
#include "app/print.h"
#include "async/gate.h"
#include "async/spawn.h"

namespace reelway::app {

namespace json = boost::json;

namespace {

constexpr std::size_t kFailuresShown = 100;

struct Queue {
  std::size_t next = 0;
  std::size_t count = 0;
};

/// Takes the next job until none is left.
async::Task<void> work(Queue& queue, const Job& job, const std::function<std::string(std::size_t)>& name,
                       Report& report) {
  while (queue.next < queue.count) {
    const std::size_t index = queue.next++;
    const auto done = co_await job(index);
    if (!done) report.failed.push_back(name(index) + ": " + done.error().detail);
  }
  co_return base::Result<void>{};
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

/// CPU seconds of this process so far, user and system.
double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

}  // namespace

void add_endpoint_options(CLI::App& command, EndpointOptions& options) {
  options.options->add("endpoint", options.endpoint, "The S3 address");
  options.options->add("region", options.region, "Region to sign for");
  options.options->add("parallel", options.parallel, "Transfers at a time");
  options.options->add_secret("access-key", options.access_key, "Access key");
  options.options->add_secret("secret-key", options.secret_key, "Secret key");
  options.options->attach(command);
  command.add_flag("--recursive", options.recursive, "Everything under a folder or prefix");
  command.add_flag("--json", options.as_json, "Print the report as JSON");
}

void add_rdma_option(CLI::App& command, EndpointOptions& options) {
  command
      .add_option("--rdma", options.rdma,
                  "off: HTTP bodies; auto: out of band where it pays and works; require: out of band or fail")
      ->check(CLI::IsMember({"off", "auto", "require"}))
      ->capture_default_str();
}

base::Result<s3client::Options> client_options(const EndpointOptions& options) {
  TRY_VOID(options.options->resolve({}, config::Options::system_environment()));
  TRY(const auto endpoint, parse_endpoint(options.endpoint));
  s3client::Options out;
  out.http.host = endpoint.address.host;
  out.http.port = endpoint.address.port;
  out.http.tls = endpoint.tls;
  out.http.progress_timeout = std::chrono::minutes{5};  // the server may fetch the object from a tape first
  out.credentials = {.access_key = options.access_key,
                     .secret_key = options.secret_key,
                     .region = options.region,
                     .service = "s3"};
  return out;
}

async::Task<void> run_jobs(std::size_t count, std::size_t parallel, const Job& job,
                           const std::function<std::string(std::size_t)>& name, Report& report) {
  Queue queue{.next = 0, .count = count};
  async::Gate gate;
  const async::Executor executor = co_await async::net::this_coro::executor;
  for (std::size_t worker = 0; worker < std::max<std::size_t>(parallel, 1); ++worker) {
    CO_TRY(auto holder, gate.hold());
    async::spawn(executor, std::move(holder), "transfers", base::null_log(), work(queue, job, name, report));
  }
  co_return co_await gate.close();
}

async::Task<std::unique_ptr<Session>> open_session(const s3client::Options& client,
                                                   const EndpointOptions& options, std::string bucket) {
  auto session = std::make_unique<Session>();
  const async::Executor executor = co_await async::net::this_coro::executor;
  CO_TRY(session->client, s3client::Client::create(executor, client, session->clock, session->rng));
  PlaneOptions plane{.bucket = std::move(bucket),
                     .server_host = client.http.host,
                     .rdma = options.rdma,
                     .parallel = options.parallel};
  CO_TRY(session->mover, co_await make_mover(*session->client, session->rng, std::move(plane)));
  co_return session;
}

Exit print_report(const Report& report, double seconds, bool as_json) {
  json::array failed;
  for (const auto& text : report.failed) {
    if (failed.size() < kFailuresShown) failed.emplace_back(text);
  }
  json::object out{{"objects", report.objects},  {"bytes", report.bytes},
                   {"seconds", seconds},         {"cpu_seconds", cpu_seconds()},
                   {"plane", report.plane},      {"failed_count", report.failed.size()},
                   {"failed", std::move(failed)}};
  if (as_json) {
    out["sha256"] = report.sha256;
  } else {
    // As sha256sum has it.
    for (const auto& entry : report.sha256) {
      fmt::print("{}  {}\n", std::string_view(entry.value().get_string()), std::string_view(entry.key()));
    }
  }
  print_answer(out, as_json);
  if (report.failed.empty()) return Exit::done;
  return report.objects > 0 ? Exit::partly : Exit::failed;
}

base::Result<Exit> run_transfers(async::Task<Report> transfers, bool as_json) {
  const base::SystemClock clock;
  const auto started = clock.steady_now();
  TRY(const auto report, async::run_until_done(std::move(transfers)));
  const double seconds = std::chrono::duration<double>(clock.steady_now() - started).count();
  return print_report(report, seconds, as_json);
}

}  // namespace reelway::app
