#include "rdma/ofi/ofi_plane.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "rdma/ofi/engine.h"
#include "rdma/ofi/fabric.h"
#include "rdma/ofi/peer_rules.h"
#include "rdma/ofi/shm_plane.h"
#include "rdma/ofi/windows.h"

namespace reelway::rdma::ofi {
namespace {

using base::Code;
using base::Result;
using base::Scope;

class OfiPlane;

/// The windows in use, so that no two transfers write into the same memory, and the endpoint of each client
/// address.
class Registry {
 public:
  struct Lease {
    PeerPtr peer;
    Engine* engine = nullptr;
    std::uint64_t id = 0;
  };

  Registry(std::vector<std::unique_ptr<Engine>>& engines, std::size_t peers_max)
      : engines_(engines), peers_max_(peers_max) {}

  Result<Lease> acquire(const base::Window& window);
  void release(const base::Window& window, const Lease& lease);
  void close();

 private:
  struct Client {
    PeerPtr peer;
    Engine* engine = nullptr;
    Ranges ranges;
  };

  Result<void> make_room();
  void attach_peer(Client& client, const base::Bytes& name);

  std::vector<std::unique_ptr<Engine>>& engines_;
  const std::size_t peers_max_;
  std::mutex mutex_;
  std::map<base::Bytes, Client> clients_;
  std::uint64_t next_id_ = 1;
  bool closed_ = false;
};

Result<Registry::Lease> Registry::acquire(const base::Window& window) {
  const std::scoped_lock lock(mutex_);
  if (closed_) return base::fail(Code::closed, "the plane is closed");
  if (!clients_.contains(window.endpoint)) TRY_VOID(make_room());
  Client& client = clients_[window.endpoint];
  const std::uint64_t id = next_id_++;
  TRY_VOID(client.ranges.hold(window, id));
  if (!client.peer || !client.peer->acquire()) attach_peer(client, window.endpoint);
  return Lease{.peer = client.peer, .engine = client.engine, .id = id};
}

/// A new endpoint, on the thread that has the fewest, leased once.
void Registry::attach_peer(Client& client, const base::Bytes& name) {
  const auto fewest =
      std::ranges::min_element(engines_, {}, [](const auto& engine) { return engine->peer_count(); });
  client.engine = fewest->get();
  client.peer = std::make_shared<Peer>(name);
  client.peer->acquire();
}

Result<void> Registry::make_room() {
  std::erase_if(clients_, [](const auto& entry) {
    return entry.second.ranges.empty() && (!entry.second.peer || entry.second.peer->is_dead());
  });
  if (clients_.size() < peers_max_) return {};
  auto oldest = clients_.end();
  for (auto it = clients_.begin(); it != clients_.end(); ++it) {
    if (!it->second.ranges.empty() || !it->second.peer->is_idle()) continue;
    if (oldest == clients_.end() || it->second.peer->last_used() < oldest->second.peer->last_used())
      oldest = it;
  }
  if (oldest == clients_.end()) {
    return base::fail(Code::busy, fmt::format("{} clients have windows in use", peers_max_), Scope::node,
                      base::Retry::later);
  }
  oldest->second.engine->kill_peer(oldest->second.peer);
  clients_.erase(oldest);
  return {};
}

void Registry::release(const base::Window& window, const Lease& lease) {
  const std::scoped_lock lock(mutex_);
  lease.peer->release(std::chrono::steady_clock::now());
  const auto client = clients_.find(window.endpoint);
  if (client == clients_.end()) return;
  client->second.ranges.let_go(lease.id);
}

void Registry::close() {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
}

class OfiTransfer final : public Transfer {
 public:
  OfiTransfer(OfiPlane& plane, base::Window window, Registry::Lease lease, base::SteadyPoint deadline)
      : plane_(plane), window_(std::move(window)), lease_(std::move(lease)), deadline_(deadline) {}
  ~OfiTransfer() override;

  /// A transfer of no bytes: the peer answers.
  async::Task<void> reach(base::SteadyPoint until);
  async::Task<void> push(std::uint64_t offset, base::ByteView bytes) override {
    // libfabric takes the local side of a write as non-const.
    return move(Operation::Kind::push, offset, {const_cast<std::byte*>(bytes.data()), bytes.size()});
  }
  async::Task<void> pull(std::uint64_t offset, base::MutableBytes into) override {
    return move(Operation::Kind::pull, offset, into);
  }
  async::Task<void> fence() override { return pending_->wait(); }

 private:
  async::Task<void> move(Operation::Kind kind, std::uint64_t offset, base::MutableBytes local);

  OfiPlane& plane_;
  const base::Window window_;
  const Registry::Lease lease_;
  const base::SteadyPoint deadline_;
  std::shared_ptr<Pending> pending_ = std::make_shared<Pending>();
};

class OfiPlane final : public Plane {
 public:
  OfiPlane(OfiOptions options, PeerRules rules, std::unique_ptr<Domain> domain,
           std::vector<MemoryRegion> regions, base::Log& log)
      : options_(std::move(options)),
        rules_(std::move(rules)),
        domain_(std::move(domain)),
        regions_(std::move(regions)) {
    for (std::size_t i = 0; i < std::max<std::size_t>(options_.threads, 1); ++i) {
      engines_.push_back(std::make_unique<Engine>(*domain_, options_.idle_limit, log));
    }
  }

  PlaneInfo info() const override {
    return {.form = "ofi1",
            .provider = options_.provider,
            .window_max = std::numeric_limits<std::uint64_t>::max()};
  }
  Result<base::Window> parse(std::string_view token) const override {
    return parse_window(token, options_.provider);
  }
  Result<void> admit(const base::Window& window, const base::HttpPeer& requester) const override {
    return rules_.check(window.endpoint, requester);
  }
  async::Task<std::unique_ptr<Transfer>> open(base::Window window, base::SteadyPoint deadline) override;
  async::Task<void> close() override;

  Registry& registry() { return registry_; }
  std::size_t message_max() const { return domain_->message_max(); }
  /// The registration that all of `bytes` lies in.
  Result<void*> find_descriptor(base::MutableBytes bytes) const;

 private:
  const OfiOptions options_;
  const PeerRules rules_;
  std::unique_ptr<Domain> domain_;
  std::vector<MemoryRegion> regions_;
  std::vector<std::unique_ptr<Engine>> engines_;  // stops before what it uses goes
  Registry registry_{engines_, options_.peers_max};
};

OfiTransfer::~OfiTransfer() {
  if (!pending_->empty()) {
    lease_.engine->kill_peer(lease_.peer);
    pending_->wait_blocking();
  }
  plane_.registry().release(window_, lease_);
}

async::Task<void> OfiTransfer::reach(base::SteadyPoint until) {
  auto probe = std::make_shared<Operation>();
  probe->remote_address = window_.address;
  probe->key = window_.key;
  probe->deadline = until;
  probe->pending = pending_;
  auto reached = co_await lease_.engine->perform(lease_.peer, probe);
  if (!reached && reached.error().code == Code::deadline_exceeded) {
    co_return base::fail(Code::unavailable, "the peer does not answer", Scope::peer, base::Retry::later);
  }
  co_return reached;
}

async::Task<void> OfiTransfer::move(Operation::Kind kind, std::uint64_t offset, base::MutableBytes local) {
  if (offset > window_.length || local.size() > window_.length - offset) {
    co_return base::fail(Code::out_of_range, "the transfer would leave the window");
  }
  CO_TRY(void* const descriptor, plane_.find_descriptor(local));
  while (!local.empty()) {
    const std::size_t step = std::min(local.size(), plane_.message_max());
    auto operation = std::make_shared<Operation>();
    operation->kind = kind;
    operation->remote_address = window_.address + offset;
    operation->key = window_.key;
    operation->local = local.first(step);
    operation->descriptor = descriptor;
    operation->deadline = deadline_;
    operation->pending = pending_;
    CO_TRY_VOID(co_await lease_.engine->perform(lease_.peer, operation));
    offset += step;
    local = local.subspan(step);
  }
  co_return base::Result<void>{};
}

async::Task<std::unique_ptr<Transfer>> OfiPlane::open(base::Window window, base::SteadyPoint deadline) {
  const base::SteadyPoint patience = std::chrono::steady_clock::now() + options_.connect_patience;
  while (true) {
    CO_TRY(Registry::Lease lease, registry_.acquire(window));
    auto transfer = std::make_unique<OfiTransfer>(*this, window, std::move(lease), deadline);
    const auto reached = co_await transfer->reach(std::min(deadline, patience));
    if (reached) co_return std::unique_ptr<Transfer>(std::move(transfer));
    // An endpoint that died while it was being leased is replaced; a closed plane says so when leasing.
    if (reached.error().code != Code::closed) co_return reached.error();
  }
}

async::Task<void> OfiPlane::close() {
  registry_.close();
  for (const auto& engine : engines_) engine->stop();
  co_return base::Result<void>{};
}

Result<void*> OfiPlane::find_descriptor(base::MutableBytes bytes) const {
  for (const auto& region : regions_) {
    const bool inside = bytes.data() >= region.bytes.data() &&
                        bytes.data() + bytes.size() <= region.bytes.data() + region.bytes.size();
    if (inside) return region.descriptor();
  }
  return base::fail(Code::invalid_argument, "the memory is not registered with the plane");
}

}  // namespace

Result<std::unique_ptr<Plane>> open_plane(const base::BufferPool& pool, OfiOptions options, base::Log& log) {
  if (options.provider == "shm") return open_shm_plane(pool, options);
  TRY(auto rules, PeerRules::create(options.peers));
  TRY(auto domain, Domain::open(options.provider, options.address, Role::initiator));
  std::vector<MemoryRegion> regions;
  for (const base::MutableBytes slab : pool.slabs()) {
    TRY(auto region, domain->register_memory(slab, FI_READ | FI_WRITE, regions.size() + 1));
    regions.push_back(std::move(region));
  }
  std::unique_ptr<Plane> plane = std::make_unique<OfiPlane>(std::move(options), std::move(rules),
                                                            std::move(domain), std::move(regions), log);
  return plane;
}

}  // namespace reelway::rdma::ofi
