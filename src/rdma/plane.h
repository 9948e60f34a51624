#pragma once
// A road for object bytes beside HTTP. Direction is named from the client's memory: a GET pushes into it, a
// PUT pulls from it. The HTTP answer is the only completion that a client trusts; after it, or after the
// client has gone, nothing of ours touches client memory again (fence). All calls are safe from several
// reactors.

#include <memory>
#include <string>
#include <string_view>

#include "async/task.h"
#include "base/buffer_pool.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/http_head.h"
#include "base/window.h"

namespace reelway::rdma {

/// Part of an open regular file.
struct FileRange {
  int file = -1;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// True when all of `bytes` lies in one of the pool's slabs, which planes register.
bool lies_in(const base::BufferPool& pool, base::ByteView bytes);

/// One transfer's lease on a window. Chunks given to push and pull must lie in the pool that the plane
/// registered.
class Transfer {
 public:
  /// Fences: when it returns nothing of this transfer is in flight; a transfer whose completions are unknown
  /// has its endpoint destroyed and drained.
  virtual ~Transfer() = default;
  /// Writes `bytes` at `offset` of the window; returns when the completion is in. out_of_range outside the
  /// window; unavailable (scope peer) when the peer cannot be reached; deadline_exceeded: the outcome is
  /// unknown and the transfer is dead.
  virtual async::Task<void> push(std::uint64_t offset, base::ByteView bytes) = 0;
  /// Writes a file's bytes straight from the page cache, for planes that say pushes_files(). unavailable too
  /// when the file is shorter than that.
  virtual async::Task<void> push_file(std::uint64_t offset, FileRange from);
  /// Reads the window from `offset` into `into`.
  virtual async::Task<void> pull(std::uint64_t offset, base::MutableBytes into) = 0;
  /// Waits until nothing is in flight; to be awaited before the HTTP answer is sent, on success and on
  /// failure.
  virtual async::Task<void> fence() = 0;
};

struct PlaneInfo {
  std::string form;      ///< "ofi1"
  std::string provider;  ///< "shm", "tcp", "verbs;ofi_rxm"
  std::uint64_t window_max = 0;
};

class Plane {
 public:
  virtual ~Plane() = default;
  virtual PlaneInfo info() const = 0;
  virtual bool pushes_files() const { return false; }
  /// Pure. invalid_argument: not a token of any form, or a broken one of this form; unsupported: a token of
  /// another form or provider.
  virtual base::Result<base::Window> parse(std::string_view token) const = 0;
  /// May whoever sent this HTTP request have `window` served? access_denied: no. Quick, never waits for the
  /// peer.
  virtual base::Result<void> admit(const base::Window& window, const base::HttpPeer& requester) const = 0;
  /// Leases a window until `deadline` and reaches its peer. busy: overlapping window, or no room for another
  /// peer. unavailable (scope peer): the peer does not answer.
  virtual async::Task<std::unique_ptr<Transfer>> open(base::Window window, base::SteadyPoint deadline) = 0;
  virtual async::Task<void> close() = 0;
};

}  // namespace reelway::rdma
