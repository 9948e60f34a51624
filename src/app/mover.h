#pragma once
// How `reelway get` and `reelway put` move an object's bytes: in HTTP bodies, or out of band through
// registered memory.

#include <memory>
#include <string>

#include "app/registered.h"
#include "s3client/client.h"

namespace reelway::app {

class Mover {
 public:
  virtual ~Mover() = default;
  /// All of an object into the sink.
  virtual async::Task<void> fetch(std::string key, std::uint64_t size, s3client::Sink& sink) = 0;
  virtual async::Task<void> send(std::string key, s3client::Content& content) = 0;
  /// "ofi1/shm", or "http".
  virtual std::string plane() const = 0;
};

/// options.rdma may be "off" too. `client` and `rng` outlive the mover.
async::Task<std::unique_ptr<Mover>> make_mover(s3client::Client& client, base::Rng& rng,
                                               PlaneOptions options);

}  // namespace reelway::app
