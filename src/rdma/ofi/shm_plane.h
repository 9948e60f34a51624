#pragma once
// The plane to processes of this very machine: bytes are copied once, from our memory or a file's pages into
// the client's, by cross-memory attach (process_vm_writev(2)). The tokens are those of libfabric's shm, whose
// clients need nothing to do: the address is a virtual one of the process that the endpoint's name gives.
//
// Nothing checks a memory key, so it is offered only for windows in processes of the server's own user, to
// requests that come from a local socket of that user; a root server needs shm_trust_local besides.

#include <memory>

#include "base/buffer_pool.h"
#include "rdma/ofi/ofi_plane.h"
#include "rdma/plane.h"

namespace reelway::rdma::ofi {

/// unsupported: cross-memory attach is not permitted here, or root lacks shm_trust_local.
base::Result<std::unique_ptr<Plane>> open_shm_plane(const base::BufferPool& pool, const OfiOptions& options);

}  // namespace reelway::rdma::ofi
