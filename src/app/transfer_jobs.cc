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

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

Exit print_report(const Report& report, double seconds, double cpu, bool as_json) {
  json::array failed;
  for (const auto& text : report.failed) {
    if (failed.size() < kFailuresShown) failed.emplace_back(text);
  }
  json::object out{{"objects", report.objects},  {"bytes", report.bytes},
                   {"seconds", seconds},         {"cpu_seconds", cpu},
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

}  // namespace reelway::app
