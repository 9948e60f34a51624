#pragma once
// How `reelway get` gets bytes: in HTTP bodies, or out of band into registered memory.

#include <memory>
#include <string>

#include "s3client/client.h"

namespace reelway::app {

class Fetcher {
 public:
  virtual ~Fetcher() = default;
  /// All of an object into the sink.
  virtual async::Task<void> fetch(std::string key, std::uint64_t size, s3client::Sink& sink) = 0;
  /// "ofi1/shm", or "http".
  virtual std::string plane() const = 0;
};

struct FetcherOptions {
  std::string bucket;
  std::string server_host;
  std::string rdma = "auto";  ///< off, auto, require
  std::size_t parallel = 1;   ///< most fetches at a time
};

/// unavailable: RDMA is required, and server and client share no plane. `client` and `rng` outlive the
/// fetcher.
async::Task<std::unique_ptr<Fetcher>> make_fetcher(s3client::Client& client, base::Rng& rng,
                                                   FetcherOptions options);

}  // namespace reelway::app
