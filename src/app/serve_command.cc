#include <CLI/CLI.hpp>
#include <memory>

#include "app/commands.h"
#include "app/serve.h"
#include "rdma/ofi/peer_rules.h"

namespace reelway::app {

namespace {

struct ServeCommand {
  ServeOptions values;
  std::string file;
  config::Options options;
};

void declare_places(config::Options& options, ServeOptions& o) {
  options.add("root", o.root, "Folder of the objects: BUCKET/KEY is a file in it");
  options.add("state", o.state, "Folder of the archive's catalog, on a local disk");
  options.add("listen", o.listen, "S3 address HOST:PORT; port 0 takes any free one");
  options.add("admin-listen", o.admin_listen, "Address of the status page and of commands");
  options.add("region", o.region, "Region that clients sign for");
  options.add("virtual-host-domain", o.virtual_host_domains, "BUCKET.DOMAIN in Host names a bucket");
  options.add_secret("access-key", o.access_key, "Root's access key");
  options.add_secret("secret-key", o.secret_key, "Root's secret key");
  options.add("tls-cert", o.tls_certificate, "PEM chain; makes the S3 address HTTPS");
  options.add("tls-key", o.tls_key, "PEM key of the certificate");
  options.add("ready-file", o.ready_file, "Written with the addresses, as JSON, when requests are served");
  options.add_choice("log-level", o.log_level, {"debug", "info", "warning", "error"}, "What the log is told");
  options.add_choice("log-format", o.log_format, {"text", "json"}, "One line a message, or one JSON object");
  options.add("log-file", o.log_file, "Appended to, instead of standard error");
}

void declare_behaviour(config::Options& options, ServeOptions& o) {
  options.add_choice(
      "durability", o.durability, {"full", "none"},
      "What is synced before an answer; none: a crash of the machine may lose what was answered");
  options.add_choice("etag", o.etag, {"md5", "crc64"}, "ETag of what comes in an HTTP body");
  options.add("rdma", o.rdma, "libfabric providers to offer out of band: shm, tcp, verbs;ofi_rxm; or off");
  options.add_choice("rdma-etag", o.rdma_etag, {"md5", "crc64"}, "ETag of what comes out of band");
  options.add("rdma-address", o.rdma_address, "Local address of the planes");
  options.add("rdma-peers", o.rdma_peers,
              "Networks (CIDR) whose addresses tokens may name, besides the requester's own address");
  options.check("rdma-peers", [&o]() -> std::optional<std::string> {
    const auto rules = rdma::ofi::PeerRules::create(o.rdma_peers);
    return rules ? std::nullopt : std::optional(rules.error().detail);
  });
  options.add("rdma-shm-trust-local", o.rdma_shm_trust_local,
              "As root: serve the shm plane to root's own processes");
  options.add("recall-on-read", o.recall_on_read, "A GET of an object that is on tape only waits for it");
  options.add("patience", o.patience, "How long such a GET is held before 503 and Retry-After");
  options.add("evict-on-any-filesystem", o.evict_on_any_file_system,
              "Believe leases on file systems that are not known to be local: at the risk of losing a "
              "writer's bytes");
  options.add("pool-bytes", o.pool_bytes, "Memory for bytes on their way; bounds the process");
  options.add("vtl", o.vtl,
              "A virtual tape library: DIR[:drives=2,cartridges=8,scale=0.001,clock=lto9,speed=20,...]");
  options.add(
      "pool-tapes", o.pools,
      "POOL=BARCODE+BARCODE...: the cartridges of a pool; without it pools a and b share the library");
  options.add("threads", o.threads, "Reactors; 0 is one per core");
  options.add("client-patience", o.client_patience,
              "How long a client may send or take nothing in the middle of a body");
  options.add("shutdown-patience", o.shutdown_patience, "How long running requests may take to end");
}

void declare_rules(config::Options& options, const ServeOptions& o) {
  options.check("tls-key", [&o]() -> std::optional<std::string> {
    if (o.tls_certificate.empty() == o.tls_key.empty()) return std::nullopt;
    return "goes with --tls-cert: either both or neither";
  });
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("serve", "Run the gateway, and the archive behind it");
  const auto serve_command = std::make_shared<ServeCommand>();
  command
      ->add_option("--config", serve_command->file,
                   "TOML file: the same names, weaker than flags and REELWAY_* variables")
      ->type_name("FILE");
  declare_places(serve_command->options, serve_command->values);
  declare_behaviour(serve_command->options, serve_command->values);
  declare_rules(serve_command->options, serve_command->values);
  serve_command->options.attach(*command);
  command->callback([serve_command, &action] {
    action = [serve_command]() -> base::Result<Exit> {
      TRY_VOID(serve_command->options.resolve(serve_command->file, config::Options::system_environment()));
      TRY_VOID(serve(serve_command->values));
      return Exit::done;
    };
  });
}

}  // namespace reelway::app
