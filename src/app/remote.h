#pragma once
// The client's side of the admin API: a signed command to a running server and its JSON answer.

#include <CLI/App.hpp>
#include <boost/json/object.hpp>
#include <memory>
#include <string>

#include "app/commands.h"
#include "config/options.h"

namespace reelway::app {

/// Where the server is and who asks; filled from flags and REELWAY_* variables.
struct RemoteOptions {
  std::string admin = "127.0.0.1:7071";
  std::string region = "us-east-1";
  std::string access_key;
  std::string secret_key;
  bool as_json = false;
  std::shared_ptr<config::Options> options = std::make_shared<config::Options>();
};

/// Adds --admin, --region and --json.
void add_remote_options(CLI::App& command, RemoteOptions& options);

/// One command; an error of the server's keeps its code and sentence.
base::Result<boost::json::object> call_admin(const RemoteOptions& options, std::string command,
                                             boost::json::object members);

}  // namespace reelway::app
