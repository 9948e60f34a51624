#include "app/serve.h"

#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "app/server.h"

namespace reelway::app {

namespace {

/// The addresses, for whoever started the server; appears whole or not at all.
base::Result<void> write_ready_file(const std::string& path, const Server& server) {
  const std::string temporary = path + ".new";
  {
    std::ofstream file(temporary, std::ios::trunc);
    file << fmt::format("{{\"s3\": \"{}\", \"admin\": \"{}\"}}\n", server.s3_url(), server.admin_url());
    if (!file.flush()) return base::fail(base::Code::invalid_argument, "cannot write the ready file " + path);
  }
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  if (error) return base::from_errno(error.value(), "cannot write the ready file " + path);
  return {};
}

}  // namespace

base::Result<void> serve(const ServeOptions& options) {
  // Blocked in all threads, which inherit the mask, and taken by this one when everything runs.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGHUP, SIG_IGN);  // a terminal that goes away; there is nothing to read anew

  TRY(const auto server, Server::create(options));
  if (auto started = server->start(); !started) {
    if (auto stopped = server->stop(); !stopped)
      server->log().write(base::LogLevel::error, "serve", stopped.error().detail);
    return started;
  }
  server->log().write(base::LogLevel::info, "serve",
                      fmt::format("S3 at {}, admin at {}", server->s3_url(), server->admin_url()));
  if (!options.ready_file.empty()) TRY_VOID(write_ready_file(options.ready_file, *server));
  int received = 0;
  sigwait(&signals, &received);
  server->log().write(base::LogLevel::info, "serve", "going down in order; a second signal ends at once");
  signal(SIGTERM, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  return server->stop();
}

}  // namespace reelway::app
