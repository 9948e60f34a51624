#pragma once
// Object bytes over a plane instead of an HTTP body. A GET pushes a reader's bytes into the client's window,
// a PUT pulls them as a ByteSource, both in pool chunks with one chunk on the wire while the next is read.
// Whatever can be refused is refused before a byte moves: then the answer is the decline of rdma/reply.h.
// Both leave the window fenced: nothing touches client memory after get_by_plane or PlaneSource::finish has
// returned. An Error comes only of cancellation.
//
// GET: open the reader, get_by_plane, set the answer's fields, send the body when body_in_band says so.
// PUT: open_put; without a source its refusal is the answer; else store.put(request, *source), then
//      source->finish(), then failed() ? transfer_failed() : put_stored(...).

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/buffer_pool.h"
#include "base/clock.h"
#include "object/store.h"
#include "rdma/planes.h"
#include "rdma/reply.h"

namespace reelway::transfer {

struct PlaneOptions {
  base::Duration chunk_patience =
      std::chrono::milliseconds{200};  ///< wait for pool chunks before declining as busy
  base::Duration deadline = std::chrono::seconds{
      8};  ///< for a transfer, beside its bytes at rate_min (minio clients give up at 10 s)
  std::uint64_t rate_min = 50'000'000;  ///< bytes per second
  bool checksum =
      true;  ///< CRC64NVME in the answer: the recorded one of a whole object, else of the bytes read
};

/// What became of a GET's token.
struct PlaneGet {
  rdma::Answer answer;
  bool moved = false;  ///< the bytes are in the client's memory
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> crc64nvme;
  std::string plane;   ///< "ofi1/shm"; empty when no plane was chosen
  std::string detail;  ///< for the log
};

/// `partial`: answer 206. `required`: decline as an error. When answer.body_in_band is true, nothing was read
/// yet.
async::Task<PlaneGet> get_by_plane(rdma::Planes& planes, base::BufferPool& pool, const base::Clock& clock,
                                   std::string_view token, const base::HttpPeer& peer, object::Reader& reader,
                                   bool partial, bool required, PlaneOptions options);

/// The bytes of a client's window, all of it: for a PUT or an UploadPart the window's length is the
/// content's.
class PlaneSource : public object::ByteSource {
 public:
  /// Waits until nothing is in flight; to be awaited before the HTTP answer, whether the put succeeded or
  /// not.
  virtual async::Task<void> finish() = 0;
  /// A pull failed: the answer is transfer_failed(), whatever the store made of the error.
  virtual bool failed() const = 0;
  virtual const std::string& plane() const = 0;
};

struct PlanePut {
  std::unique_ptr<PlaneSource> source;  ///< null: `refusal` is the answer
  rdma::Answer refusal;
  std::string detail;
};

async::Task<PlanePut> open_put(rdma::Planes& planes, base::BufferPool& pool, const base::Clock& clock,
                               std::string_view token, const base::HttpPeer& peer, PlaneOptions options);

}  // namespace reelway::transfer
