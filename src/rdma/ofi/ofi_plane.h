#pragma once
// The plane of libfabric: serves tokens of the form ofi1 whose provider is its own, with an endpoint per
// client address (bounded; idle ones are closed), because an endpoint can be fenced by closing it only when
// nobody else depends on it. tcp and verbs check the memory key; the server connects only where peer_rules.h
// allows. Tokens of the provider shm are served without libfabric (shm_plane.h).

#include <memory>
#include <string>
#include <vector>

#include "base/buffer_pool.h"
#include "base/log.h"
#include "rdma/plane.h"

namespace reelway::rdma::ofi {

struct OfiOptions {
  std::string provider;  ///< "shm", "tcp", "verbs;ofi_rxm"
  std::string address;   ///< local address to bind; empty: the provider's choice
  bool shm_trust_local = false;
  std::vector<std::string> peers;  ///< networks to connect to, besides the requester's own address
  std::size_t threads = 2;  ///< a thread copies (shm) or drives sockets (tcp) for the clients it was given
  std::size_t peers_max = 128;  ///< client addresses at a time
  base::Duration connect_patience = std::chrono::seconds{2};
  base::Duration idle_limit = std::chrono::seconds{30};
};

/// Registers the pool's slabs. unsupported: the provider cannot be used here; the detail says why and what
/// would help.
base::Result<std::unique_ptr<Plane>> open_plane(const base::BufferPool& pool, OfiOptions options,
                                                base::Log& log);

}  // namespace reelway::rdma::ofi
