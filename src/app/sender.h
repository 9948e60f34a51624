#pragma once
// How `reelway put` sends bytes: in HTTP bodies, or out of band from registered memory.

#include <memory>
#include <string>

#include "app/registered.h"
#include "s3client/client.h"

namespace reelway::app {

class Sender {
 public:
  virtual ~Sender() = default;
  virtual async::Task<void> send(std::string key, s3client::Content& content) = 0;
  /// "ofi1/shm", or "http".
  virtual std::string plane() const = 0;
};

/// options.rdma may be "off" too. `client` and `rng` outlive the sender.
async::Task<std::unique_ptr<Sender>> make_sender(s3client::Client& client, base::Rng& rng,
                                                 PlaneOptions options);

}  // namespace reelway::app
