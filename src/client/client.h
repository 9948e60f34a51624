#pragma once
// Object bytes straight into and out of registered memory. Requests go to any S3 endpoint through an
// s3client::Client; where the server has a plane that this machine shares, the bytes go through it, otherwise
// (or when the server declines) through the HTTP body, into the same memory. `required` turns every such
// detour into an error.
//
// A call that returns leaves the memory to the caller. One exception: over shm, whose keys nobody checks, an
// answer that never came may leave a server that still writes; the error then has scope connection, and the
// memory must not be reused before the server's transfer deadline.

#include <memory>
#include <optional>
#include <string>

#include "rdma/ofi/target.h"
#include "s3client/client.h"

namespace reelway::client {

enum class RdmaMode : std::uint8_t { off, automatic, required };

struct Options {
  RdmaMode rdma = RdmaMode::automatic;
  std::string provider;     ///< "shm", "tcp", ...; empty: the best that server and machine share
  std::string server_host;  ///< the endpoint's host: tells whether it is this machine, and which local
                            ///< address reaches it
  bool checksum = true;     ///< GET: compare with the server's CRC64NVME; PUT: send one
};

/// Memory that a server may be pointed at. The bytes must outlive it. Calls on disjoint slices may run at
/// once.
class Memory {
 public:
  base::MutableBytes bytes() const { return bytes_; }

 private:
  friend class Client;
  base::MutableBytes bytes_;
  std::unique_ptr<rdma::ofi::Target> target_;  ///< null: no plane
};

/// A part of a Memory.
struct Slice {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

struct Moved {
  std::uint64_t bytes = 0;
  std::string plane;  ///< "ofi1/shm", or "http"
  std::string etag;
  base::HttpResponseHead head;
};

class Client {
 public:
  /// Asks the server for its planes. unavailable: RDMA is required, and they share none; the detail says why.
  static async::Task<std::unique_ptr<Client>> create(s3client::Client& control, Options options,
                                                     base::Rng& rng);

  /// "ofi1/shm", or "http" when there is no shared plane.
  std::string plane() const;
  /// Objects below this go in band unless RDMA is required.
  std::uint64_t small_object_bytes() const { return small_object_bytes_; }

  base::Result<std::unique_ptr<Memory>> register_memory(base::MutableBytes bytes);

  /// The object, or a range of it, to the start of the slice. too_large: the slice is too short.
  async::Task<Moved> get(std::string bucket, std::string key, Memory& memory, Slice slice,
                         std::optional<s3::Range> range);
  /// All of the slice as an object.
  async::Task<Moved> put(std::string bucket, std::string key, Memory& memory, Slice slice,
                         base::HttpFields headers);
  /// All of the slice as a part.
  async::Task<Moved> put_part(std::string bucket, std::string key, std::string upload_id,
                              std::uint32_t part_number, Memory& memory, Slice slice);

 private:
  Client(s3client::Client& control, Options options) : control_(control), options_(std::move(options)) {}
  async::Task<void> discover(base::Rng& rng);
  bool offers(const Memory& memory, const Slice& slice) const;
  async::Task<Moved> get_in_band(s3client::Call call, Memory& memory, Slice slice);
  async::Task<Moved> get_offered(s3client::Call call, Memory& memory, Slice slice);
  async::Task<Moved> put_in_band(s3client::Call call, Memory& memory, Slice slice);
  async::Task<Moved> put_offered(s3client::Call call, Memory& memory, Slice slice);
  async::Task<Moved> upload(s3client::Call call, Memory& memory, Slice slice);
  base::Result<void> withdraw(Memory& memory, const base::Error& error) const;

  s3client::Client& control_;
  const Options options_;
  std::unique_ptr<rdma::ofi::TargetDomain> domain_;
  std::uint64_t small_object_bytes_ = 0;
};

}  // namespace reelway::client
