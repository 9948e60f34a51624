#pragma once
// Registered memory for `reelway get` and `reelway put`: as many slots as transfers run at a time.

#include <memory>
#include <string>
#include <vector>

#include "client/client.h"

namespace reelway::app {

/// Larger objects move in pieces of this size.
inline constexpr std::uint64_t kSlotBytes = 16 * base::kMiB;

struct PlaneOptions {
  std::string bucket;
  std::string server_host;
  std::string rdma = "auto";  ///< auto, require
  std::size_t parallel = 1;   ///< most transfers at a time
};

class SlotPool {
 public:
  struct Slot {
    std::unique_ptr<std::byte[]> bytes = std::make_unique_for_overwrite<std::byte[]>(kSlotBytes);
    std::unique_ptr<client::Memory> memory;
    bool taken = false;
  };
  /// Gives the slot back when it goes.
  class Lease {
   public:
    explicit Lease(Slot* slot) : slot_(slot) { slot_->taken = true; }
    Lease(Lease&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
    ~Lease() {
      if (slot_ != nullptr) slot_->taken = false;
    }
    Slot& operator*() const { return *slot_; }
    Slot* operator->() const { return slot_; }

   private:
    Slot* slot_;
  };

  /// Asks the server for its planes and registers memory. unavailable: RDMA is required, and they share none.
  static async::Task<std::unique_ptr<SlotPool>> create(s3client::Client& control, base::Rng& rng,
                                                       PlaneOptions options);

  client::Client& client() { return *client_; }
  /// busy: more transfers than were announced.
  base::Result<Lease> take();

 private:
  std::unique_ptr<client::Client> client_;
  std::vector<Slot> slots_;  // after the client, which their memory needs
};

}  // namespace reelway::app
