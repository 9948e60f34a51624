#pragma once
// The admin address. Open and read-only: the status page `/`, its JSON `/status.json`, the same live at
// `/events`, `/health`, `/metrics`; none of them shows a key, a secret or a token. Signed with the root keys
// (SigV4, service s3): `POST /v1/<command>` with a JSON object, for the commands of `reelway archive` and
// `reelway tape`. docs/admin-api.md lists commands and members.
//
// A command answers 200 with its JSON, or an error status with {"error": {"code", "message"}}. One that takes
// long answers 200 at once, sends spaces until it has ended, and then its JSON, which may be such an error.

#include <functional>
#include <string>

#include "archive/client.h"
#include "async/gate.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/server.h"
#include "iam/accounts.h"
#include "s3/sigv4.h"

namespace reelway::admin {

/// The file system that holds the objects.
struct DiskView {
  std::uint64_t bytes_total = 0;
  std::uint64_t bytes_free = 0;
};

struct AdminParts {
  const iam::Accounts& accounts;
  archive::Client* archive = nullptr;  ///< null: no archive; its commands answer 501
  const base::Clock& clock;
  base::Log& log;
  std::function<std::string()> metrics;  ///< Prometheus text
  std::function<DiskView()> disk;
  std::function<std::string()> archive_missing;  ///< why there is no archive; may be null
};

struct AdminOptions {
  std::string region = "us-east-1";
  std::string s3_address;  ///< shown on the page
  std::size_t event_readers_max = 64;
  base::Duration event_interval = std::chrono::seconds{1};
};

class Admin {
 public:
  Admin(AdminParts parts, AdminOptions options);
  ~Admin();
  Admin(const Admin&) = delete;
  Admin& operator=(const Admin&) = delete;

  /// The http::Handler of the admin address.
  async::Task<void> handle(http::Exchange& exchange);
  /// Ends the readers of /events and waits for commands that still run. To be awaited before the server is
  /// shut down.
  async::Task<void> close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reelway::admin
