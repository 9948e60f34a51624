#pragma once
// How `reelway get` gets bytes: in HTTP bodies, or out of band into registered memory.

#include <memory>
#include <string>

#include "app/registered.h"
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

/// options.rdma may be "off" too. `client` and `rng` outlive the fetcher.
async::Task<std::unique_ptr<Fetcher>> make_fetcher(s3client::Client& client, base::Rng& rng,
                                                   PlaneOptions options);

}  // namespace reelway::app
