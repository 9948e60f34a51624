#include "app/server.h"

#include <sched.h>
#include <sys/statvfs.h>

#include <filesystem>

#include "app/parse.h"
#include "async/spawn.h"
#include "obs/log.h"
#include "rdma/ofi/ofi_plane.h"

namespace reelway::app {

namespace {

constexpr std::size_t kFileThreads = 32;

/// Half of the pool for HTTP would starve the tape; the shares follow what each road moves at a time.
base::BufferPoolOptions share_out(std::uint64_t bytes) {
  base::BufferPoolOptions options;
  options.http_bytes = bytes / 4;
  options.drives_bytes = (bytes - options.http_bytes) / 2;
  options.planes_bytes = bytes - options.http_bytes - options.drives_bytes;
  return options;
}

/// Cores that this process may run on: more reactors than that would only take turns.
std::size_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
}

base::Result<void> make_folder(const std::string& path, std::string_view what) {
  if (path.empty()) return base::fail(base::Code::invalid_argument, std::string(what) + " is missing");
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return base::from_errno(error.value(), "cannot make " + path);
  return {};
}

void describe_meters(obs::PrometheusMeter& meter) {
  meter.describe("reelway_requests_total", "S3 requests by operation and status");
  meter.describe("reelway_request_seconds", "Time from a request's head to the end of its answer");
  meter.describe("reelway_request_bytes_total", "Object bytes received in HTTP bodies");
  meter.describe("reelway_response_bytes_total", "Bytes of HTTP response bodies");
  meter.describe("reelway_rdma_offers_total", "Requests that offered a window, by what became of it");
  meter.describe("reelway_rdma_bytes_total", "Object bytes moved out of band");
}

transfer::EtagKind to_etag(std::string_view word) {
  return word == "crc64" ? transfer::EtagKind::crc64 : transfer::EtagKind::md5;
}

}  // namespace

Server::Server(const ServeOptions& options) : options_(options) {}

base::Result<std::unique_ptr<Server>> Server::create(const ServeOptions& options) {
  std::unique_ptr<Server> server(new Server(options));
  TRY_VOID(server->open_observers());
  TRY_VOID(server->open_storage());
  TRY_VOID(server->open_archive());
  server->open_planes();
  TRY_VOID(server->open_gateway());
  return server;
}

base::Result<void> Server::open_observers() {
  obs::LogOptions log_options;
  log_options.level = obs::parse_log_level(options_.log_level).value_or(base::LogLevel::info);
  log_options.format = options_.log_format == "json" ? obs::LogFormat::json : obs::LogFormat::text;
  log_options.file = options_.log_file;
  TRY(log_, obs::make_log(log_options));
  meter_ = std::make_unique<obs::PrometheusMeter>();
  describe_meters(*meter_);
  TRY(auto accounts, iam::Accounts::with_root(options_.access_key, options_.secret_key));
  accounts_ = std::make_unique<iam::Accounts>(std::move(accounts));
  return {};
}

base::Result<void> Server::open_storage() {
  TRY_VOID(make_folder(options_.root, "--root"));
  TRY_VOID(make_folder(options_.state, "--state"));
  TRY(buffers_, base::BufferPool::create(share_out(options_.pool_bytes.bytes)));
  const std::size_t cores = usable_cores();
  reactors_ = std::make_unique<Reactors>("reactor", options_.threads == 0 ? cores : options_.threads);
  file_pool_ = std::make_unique<async::BlockingPool>("files", kFileThreads);
  hash_pool_ = std::make_unique<async::BlockingPool>("hash", cores);
  store::posix::Options options;
  options.root = options_.root;
  options.durability =
      options_.durability == "none" ? store::posix::Durability::none : store::posix::Durability::full;
  options.evict_on_any_file_system = options_.evict_on_any_file_system;
  options.region = options_.region;
  options.pool = file_pool_.get();
  options.clock = &clock_;
  options.rng = &rng_;
  options.log = log_.get();
  TRY(posix_, store::posix::PosixStore::create(std::move(options)));
  return {};
}

base::Result<void> Server::open_archive() {
  if (options_.vtl.empty()) return {};
  const ArchiveStack::Parts parts{.store = *posix_,
                                  .buffers = *buffers_,
                                  .rng = rng_,
                                  .hash_pool = *hash_pool_,
                                  .log = *log_,
                                  .meter = *meter_};
  TRY(archive_, ArchiveStack::create(options_, parts));
  const store::ArchiveStoreOptions options{.recall_on_read = options_.recall_on_read,
                                           .patience = options_.patience};
  archive_store_ = std::make_unique<store::ArchiveStore>(*posix_, archive_->client(), options);
  return {};
}

/// A provider that cannot be used here is said once and done without: HTTP carries everything.
void Server::open_planes() {
  for (const auto& provider : options_.rdma) {
    if (provider == "off") continue;
    rdma::ofi::OfiOptions options;
    options.provider = provider;
    options.address = options_.rdma_address;
    options.peers = options_.rdma_peers;
    options.shm_trust_local = options_.rdma_shm_trust_local;
    auto plane = rdma::ofi::open_plane(*buffers_, std::move(options), *log_);
    if (plane) {
      planes_.add(std::move(*plane));
    } else {
      log_->write(base::LogLevel::warning, "rdma", "no " + provider + " plane: " + plane.error().detail);
    }
  }
}

base::Result<void> Server::open_gateway() {
  object::Store& store = archive_store_ ? static_cast<object::Store&>(*archive_store_) : *posix_;
  const gateway::GatewayParts parts{.store = store,
                                    .accounts = *accounts_,
                                    .pool = *buffers_,
                                    .hash_pool = *hash_pool_,
                                    .planes = planes_,
                                    .clock = clock_,
                                    .rng = rng_,
                                    .log = *log_,
                                    .meter = *meter_,
                                    .recalls = archive_ ? &archive_->client() : nullptr};
  gateway::GatewayOptions options;
  options.region = options_.region;
  options.hosts.virtual_host_domains = options_.virtual_host_domains;
  options.etag = to_etag(options_.etag);
  options.rdma_etag = to_etag(options_.rdma_etag);
  gateway_ = std::make_unique<gateway::Gateway>(parts, std::move(options));
  return {};
}

base::Result<void> Server::start() {
  if (archive_) {
    TRY_VOID(archive_->start());
  } else {
    TRY_VOID(recover());
  }
  return listen();
}

/// What evictions and recalls of an earlier run with an archive left behind is brought to its end without one
/// too.
base::Result<void> Server::recover() {
  TRY(const auto conflicts,
      async::run_until_done(async::run_on(reactors_->first(), posix_->tiered()->recover())));
  for (const object::Conflict& conflict : conflicts)
    log_->write(base::LogLevel::warning, "store",
                "conflict at " + conflict.name.bucket + "/" + conflict.name.key + ": " + conflict.reason);
  return {};
}

base::Result<void> Server::listen() {
  TRY(const Address s3_address, parse_address(options_.listen));
  TRY(const Address admin_address, parse_address(options_.admin_listen));
  http::ServerOptions s3_options;
  s3_options.address = s3_address.host;
  s3_options.port = s3_address.port;
  s3_options.tls_certificate_file = options_.tls_certificate;
  s3_options.tls_key_file = options_.tls_key;
  s3_options.progress_timeout = options_.client_patience;
  const auto s3_handler = [this](http::Exchange& exchange) { return gateway_->handle(exchange); };
  TRY(s3_server_, http::Server::create(reactors_->executors(), std::move(s3_options), s3_handler, *log_));

  const admin::AdminParts parts{
      .accounts = *accounts_,
      .archive = archive_ ? &archive_->client() : nullptr,
      .clock = clock_,
      .log = *log_,
      .metrics = [this] { return meter_->expose(); },
      .disk = [root = options_.root]() -> admin::DiskView {
        struct statvfs status{};
        if (statvfs(root.c_str(), &status) != 0) return {};
        return {.bytes_total = status.f_blocks * status.f_frsize,
                .bytes_free = status.f_bavail * status.f_frsize};
      },
      .archive_missing = [] { return std::string("there is no tape library: start with --vtl"); }};
  admin::AdminOptions admin_options;
  admin_options.region = options_.region;
  admin_options.s3_address = s3_url();
  admin_ = std::make_unique<admin::Admin>(parts, std::move(admin_options));
  http::ServerOptions server_options;
  server_options.address = admin_address.host;
  server_options.port = admin_address.port;
  const auto admin_handler = [this](http::Exchange& exchange) { return admin_->handle(exchange); };
  TRY(admin_server_,
      http::Server::create({reactors_->first()}, std::move(server_options), admin_handler, *log_));
  return {};
}

base::Result<void> Server::stop() {
  base::Result<void> outcome;
  const auto take = [&](base::Result<void> result, std::string_view what) {
    if (!result && outcome)
      outcome = base::fail(result.error().code, std::string(what) + ": " + result.error().detail);
  };
  const auto run = [&](async::Task<void> task) {
    return async::run_until_done(async::run_on(reactors_->first(), std::move(task)));
  };
  const base::Duration patience = options_.shutdown_patience;
  if (archive_) archive_->send_readers_away();
  if (s3_server_) take(run(s3_server_->shut_down(patience)), "S3 server");
  // Before the administrator's requests end: those that wait for a tape are answered now.
  if (archive_) take(archive_->stop(), "archive");
  if (admin_) take(run(admin_->close()), "admin");
  if (admin_server_) take(run(admin_server_->shut_down(patience)), "admin server");
  if (gateway_) take(run(gateway_->close()), "gateway");
  take(run(planes_.close()), "planes");
  s3_server_.reset();
  admin_server_.reset();
  reactors_->stop();
  return outcome;
}

std::string Server::url(const http::Server& server, std::string_view listen_address, bool tls) const {
  std::string host(listen_address.substr(0, listen_address.rfind(':')));
  if (host.empty() || host == "0.0.0.0") host = "127.0.0.1";
  return (tls ? "https://" : "http://") + host + ":" + std::to_string(server.port());
}

std::string Server::s3_url() const {
  return url(*s3_server_, options_.listen, !options_.tls_certificate.empty());
}

std::string Server::admin_url() const { return url(*admin_server_, options_.admin_listen, false); }

}  // namespace reelway::app
