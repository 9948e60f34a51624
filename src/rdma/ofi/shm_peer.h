#pragma once
// Who is behind an endpoint name of libfabric's shm, and who sent a request over a local socket. shm checks
// no memory key: whoever can name a process and an address gets it written. So a window is served only when
// the process it lies in belongs to the very user whose local socket asked for it, and that user is the
// server's own. Names look like "fi_shm://<pid>:<uid>:<n>" with the segment /dev/shm/<pid>:<uid>:<n>
// (libfabric 1.17).

#include <sys/types.h>

#include "base/bytes.h"
#include "base/http_head.h"
#include "base/result.h"

namespace reelway::rdma::ofi {

/// Watches a process so that its id cannot be taken over unnoticed. Movable owner of a pidfd.
class ProcessWatch {
 public:
  static base::Result<ProcessWatch> open(pid_t process);
  ProcessWatch() = default;
  ProcessWatch(ProcessWatch&& other) noexcept;
  ProcessWatch& operator=(ProcessWatch&& other) noexcept;
  ~ProcessWatch();
  bool is_running() const;

 private:
  int descriptor_ = -1;
};

struct ShmPeer {
  pid_t process = 0;
  uid_t user = 0;
};

/// invalid_argument: not such a name. unavailable: there is no such process or segment. access_denied:
/// process and segment have different owners.
base::Result<ShmPeer> find_shm_peer(base::ByteView endpoint_name);

/// unsupported: a container's filter or the kernel forbids to copy between processes.
base::Result<void> check_cross_memory_attach();

/// The user whose process owns the other end of a TCP connection that comes from this very machine.
/// not_found: it does not.
base::Result<uid_t> find_local_requester(const base::HttpPeer& requester);

}  // namespace reelway::rdma::ofi
