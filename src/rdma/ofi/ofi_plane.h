#pragma once
// The plane of libfabric: serves tokens of the form ofi1 whose provider is its own, with an endpoint per
// client address (bounded; idle ones are closed), because an endpoint can be fenced by closing it only when
// nobody else depends on it.
//
// shm trusts whoever names a process: it is offered only for windows in processes of the server's own user,
// to requests that come from a local socket of that user; a root server needs shm_trust_local besides, and
// then serves every local user their own processes. tcp and verbs check the memory key.

#include <memory>
#include <string>

#include "base/buffer_pool.h"
#include "base/log.h"
#include "rdma/plane.h"

namespace reelway::rdma::ofi {

struct OfiOptions {
  std::string provider;  ///< "shm", "tcp", "verbs;ofi_rxm"
  std::string address;   ///< local address to bind; empty: the provider's choice
  bool shm_trust_local = false;
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
