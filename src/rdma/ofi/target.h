#pragma once
// The other side of the plane: memory that a server may read and write. A Target is one registered range
// behind an endpoint of its own; its token names any part of it. While a request is out (an Expectation
// lives) a thread of the TargetDomain makes the progress that the provider needs from the target; otherwise
// it sleeps, and over tcp nothing can land.
//
// renew() closes the endpoint and makes a new one with a new key: what an earlier token allowed is over, so a
// late server cannot write. (libfabric's shm checks no key: there only the server's own fence protects.)

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "rdma/ofi/fabric.h"

namespace reelway::rdma::ofi {

class Target;

class TargetDomain {
 public:
  /// As Domain::open. The domain outlives its targets.
  static base::Result<std::unique_ptr<TargetDomain>> open(const std::string& provider,
                                                          const std::string& address, base::Rng& rng);
  ~TargetDomain();
  const std::string& provider() const { return domain_->provider(); }
  /// Makes `bytes` reachable, still without any token, and asks the kernel for huge pages under them. They
  /// must outlive the target.
  base::Result<std::unique_ptr<Target>> expose(base::MutableBytes bytes);

 private:
  friend class Target;
  TargetDomain(std::unique_ptr<Domain> domain, base::Rng& rng);
  void run();
  bool sleep(std::unique_lock<std::mutex>& lock, bool spinning);
  void wake();

  std::unique_ptr<Domain> domain_;
  base::Rng& rng_;
  int wake_descriptor_ = -1;
  std::mutex mutex_;  ///< guards all below, and every libfabric call on a target's endpoint
  std::condition_variable changed_;
  std::vector<Target*> expecting_;
  bool stopping_ = false;
  std::thread thread_;
};

class Target {
 public:
  ~Target();
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  base::MutableBytes bytes() const { return bytes_; }
  /// A token for [offset, offset + length); out_of_range, or invalid_argument for no bytes.
  base::Result<std::string> token(std::uint64_t offset, std::uint64_t length) const;
  base::Result<void> renew();

  class [[nodiscard]] Expectation {
   public:
    explicit Expectation(Target& target);
    ~Expectation();
    Expectation(const Expectation&) = delete;
    Expectation& operator=(const Expectation&) = delete;

   private:
    Target& target_;
  };

 private:
  friend class TargetDomain;
  Target(TargetDomain& domain, base::MutableBytes bytes) : domain_(domain), bytes_(bytes) {}
  base::Result<void> start();

  TargetDomain& domain_;
  const base::MutableBytes bytes_;
  Endpoint endpoint_;
  MemoryRegion region_;
  std::size_t expectation_count_ = 0;
};

}  // namespace reelway::rdma::ofi
