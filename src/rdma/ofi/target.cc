#include "rdma/ofi/target.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "rdma/token.h"

namespace reelway::rdma::ofi {
namespace {

using base::Code;
using base::Result;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr auto kSpin = microseconds{50};
/// shm needs its queue emptied every 512 chunks at least; a chunk takes a good part of a millisecond.
constexpr int kBlindSleepMs = 2;
constexpr int kSleepMaxMs = 1;  ///< connections make progress only by polling

/// Copying into another process goes page by page: into huge pages it costs half. A hint for what is not
/// touched yet.
void prefer_huge_pages(base::MutableBytes bytes) {
  constexpr std::uintptr_t kHuge = 2 * base::kMiB;
  const auto start = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t first = (start + kHuge - 1) / kHuge * kHuge;
  const std::uintptr_t last = (start + bytes.size()) / kHuge * kHuge;
  if (first < last) (void)::madvise(bytes.data() + (first - start), last - first, MADV_HUGEPAGE);
}

}  // namespace

Result<std::unique_ptr<TargetDomain>> TargetDomain::open(const std::string& provider,
                                                         const std::string& address, base::Rng& rng) {
  TRY(auto domain, Domain::open(provider, address, Role::target));
  return std::unique_ptr<TargetDomain>(new TargetDomain(std::move(domain), rng));
}

TargetDomain::TargetDomain(std::unique_ptr<Domain> domain, base::Rng& rng)
    : domain_(std::move(domain)),
      rng_(rng),
      wake_descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

TargetDomain::~TargetDomain() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
  ::close(wake_descriptor_);
}

void TargetDomain::wake() {
  changed_.notify_all();
  ::eventfd_write(wake_descriptor_, 1);
}

Result<std::unique_ptr<Target>> TargetDomain::expose(base::MutableBytes bytes) {
  if (bytes.empty()) return base::fail(Code::invalid_argument, "memory of no bytes cannot be registered");
  prefer_huge_pages(bytes);
  std::unique_ptr<Target> target(new Target(*this, bytes));
  const std::scoped_lock lock(mutex_);
  TRY_VOID(target->start());
  return target;
}

void TargetDomain::run() {
  std::unique_lock lock(mutex_);
  auto last_event = std::chrono::steady_clock::now();
  while (!stopping_) {
    if (expecting_.empty()) {
      changed_.wait(lock);
      last_event = std::chrono::steady_clock::now();
      continue;
    }
    for (Target* target : expecting_) {
      // Targets get no completions of their own: reading makes the provider's progress. An error here is a
      // broken connection; its server sees it too.
      std::array<fi_cq_entry, 4> entries;
      fid_cq* queue = target->endpoint_.completions.get();
      if (queue == nullptr) continue;  // a renewal failed
      if (fi_cq_read(queue, entries.data(), entries.size()) != -FI_EAVAIL) continue;
      fi_cq_err_entry error{};
      (void)fi_cq_readerr(queue, &error, 0);
    }
    const bool spinning = std::chrono::steady_clock::now() - last_event < kSpin;
    if (sleep(lock, spinning)) last_event = std::chrono::steady_clock::now();
  }
}

/// True when a descriptor had something, so that it is worth spinning again.
bool TargetDomain::sleep(std::unique_lock<std::mutex>& lock, bool spinning) {
  std::vector<pollfd> descriptors{{.fd = wake_descriptor_, .events = POLLIN, .revents = 0}};
  int limit_ms = kSleepMaxMs;
  for (const Target* target : expecting_) {
    if (!target->endpoint_.completions) continue;
    if (target->endpoint_.wait_descriptor < 0) {
      limit_ms = kBlindSleepMs;
    } else if (domain_->may_wait(target->endpoint_)) {
      descriptors.push_back({.fd = target->endpoint_.wait_descriptor, .events = POLLIN, .revents = 0});
    } else {
      return true;
    }
  }
  lock.unlock();
  const bool can_spin = descriptors.size() > 1;
  const int ready = ::poll(descriptors.data(), descriptors.size(), can_spin && spinning ? 0 : limit_ms);
  eventfd_t ignored = 0;
  ::eventfd_read(wake_descriptor_, &ignored);
  lock.lock();
  return ready > 0;
}

Result<void> Target::start() {
  TRY(endpoint_, domain_.domain_->open_endpoint());
  TRY(region_,
      domain_.domain_->register_memory(bytes_, FI_REMOTE_READ | FI_REMOTE_WRITE, domain_.rng_.next_u64()));
  return {};
}

Target::~Target() {
  const std::scoped_lock lock(domain_.mutex_);
  std::erase(domain_.expecting_, this);
  endpoint_ = {};
  region_ = {};
}

Result<std::string> Target::token(std::uint64_t offset, std::uint64_t length) const {
  if (length == 0) return base::fail(Code::invalid_argument, "a window of no bytes");
  if (offset > bytes_.size() || length > bytes_.size() - offset) {
    return base::fail(Code::out_of_range, "the window leaves the registered memory");
  }
  const std::scoped_lock lock(domain_.mutex_);
  const std::uint64_t base =
      domain_.domain_->has_virtual_addresses() ? reinterpret_cast<std::uint64_t>(bytes_.data()) : 0;
  return format_token({.address = base + offset,
                       .length = length,
                       .provider = domain_.provider(),
                       .endpoint = endpoint_.name,
                       .key = region_.key()});
}

Result<void> Target::renew() {
  const std::scoped_lock lock(domain_.mutex_);
  endpoint_ = {};
  region_ = {};
  return start();
}

Target::Expectation::Expectation(Target& target) : target_(target) {
  {
    const std::scoped_lock lock(target_.domain_.mutex_);
    if (target_.expectation_count_++ == 0) target_.domain_.expecting_.push_back(&target_);
  }
  target_.domain_.wake();
}

Target::Expectation::~Expectation() {
  const std::scoped_lock lock(target_.domain_.mutex_);
  if (--target_.expectation_count_ == 0) std::erase(target_.domain_.expecting_, &target_);
}

}  // namespace reelway::rdma::ofi
