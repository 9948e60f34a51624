#pragma once
// The parts of a running server in the order of their dependence: what is declared later uses what is
// declared earlier, and goes first.

#include <memory>

#include "admin/admin.h"
#include "app/archive_stack.h"
#include "app/reactors.h"
#include "app/serve_options.h"
#include "base/buffer_pool.h"
#include "gateway/gateway.h"
#include "http/server.h"
#include "obs/meter.h"
#include "store/archive/archive_store.h"
#include "store/posix/posix_store.h"

namespace reelway::app {

class Server {
 public:
  static base::Result<std::unique_ptr<Server>> create(const ServeOptions& options);
  /// Starts the archive, then listens.
  base::Result<void> start();
  /// Lets running requests end, then everything else; says what could not be ended in order.
  base::Result<void> stop();

  std::string s3_url() const;
  std::string admin_url() const;
  base::Log& log() { return *log_; }

 private:
  explicit Server(const ServeOptions& options);
  base::Result<void> open_observers();
  base::Result<void> open_storage();
  base::Result<void> open_archive();
  void open_planes();
  base::Result<void> open_gateway();
  base::Result<void> recover();
  base::Result<void> listen();
  std::string url(const http::Server& server, std::string_view listen, bool tls) const;

  const ServeOptions options_;
  base::SystemClock clock_;
  base::SystemRng rng_;
  std::unique_ptr<base::Log> log_;
  std::unique_ptr<obs::PrometheusMeter> meter_;
  std::unique_ptr<base::BufferPool> buffers_;
  std::unique_ptr<Reactors> reactors_;
  std::unique_ptr<async::BlockingPool> file_pool_;
  std::unique_ptr<async::BlockingPool> hash_pool_;
  std::unique_ptr<store::posix::PosixStore> posix_;
  std::unique_ptr<ArchiveStack> archive_;
  std::unique_ptr<store::ArchiveStore> archive_store_;
  rdma::Planes planes_;
  std::unique_ptr<iam::Accounts> accounts_;
  std::unique_ptr<gateway::Gateway> gateway_;
  std::unique_ptr<admin::Admin> admin_;
  std::unique_ptr<http::Server> s3_server_;
  std::unique_ptr<http::Server> admin_server_;
};

}  // namespace reelway::app
