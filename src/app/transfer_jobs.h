#pragma once
// What `reelway get` and `reelway put` share: the endpoint and its keys, and many transfers at a time with
// one report.

#include <CLI/App.hpp>
#include <boost/json/object.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/mover.h"
#include "base/clock.h"
#include "base/rng.h"
#include "config/options.h"
#include "s3client/client.h"

namespace reelway::app {

struct EndpointOptions {
  std::string endpoint = "http://127.0.0.1:7070";
  std::string region = "us-east-1";
  std::string access_key;
  std::string secret_key;
  std::string rdma = "auto";
  std::uint64_t parallel = 4;
  bool recursive = false;
  bool as_json = false;
  std::shared_ptr<config::Options> options = std::make_shared<config::Options>();
};

/// Adds --endpoint, --region, --parallel, --recursive and --json.
void add_endpoint_options(CLI::App& command, EndpointOptions& options);

/// Adds --rdma, whose default is options.rdma.
void add_rdma_option(CLI::App& command, EndpointOptions& options);

base::Result<s3client::Options> client_options(const EndpointOptions& options);

/// One command's client, and the road of its transfers.
struct Session {
  const base::SystemClock clock;
  base::SystemRng rng;
  std::unique_ptr<s3client::Client> client;
  std::unique_ptr<Mover> mover;
};
async::Task<std::unique_ptr<Session>> open_session(const s3client::Options& client,
                                                   const EndpointOptions& options, std::string bucket);

/// What was done. `failed` holds "key: reason".
struct Report {
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> failed;
  boost::json::object sha256;
  std::string plane = "http";
};

/// Calls `job(index)` for 0 to count - 1, `parallel` at a time, on the caller's executor; errors go into the
/// report under `name(index)`.
using Job = std::function<async::Task<void>(std::size_t)>;
async::Task<void> run_jobs(std::size_t count, std::size_t parallel, const Job& job,
                           const std::function<std::string(std::size_t)>& name, Report& report);

/// Prints the report with the CPU seconds of this process so far; partly done when something failed and
/// something did not.
Exit print_report(const Report& report, double seconds, bool as_json);

/// Runs the transfers and prints their report.
base::Result<Exit> run_transfers(async::Task<Report> transfers, bool as_json);

}  // namespace reelway::app
