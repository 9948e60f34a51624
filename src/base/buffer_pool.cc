#include "base/buffer_pool.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>

namespace reelway::base {

namespace {

constexpr std::size_t kHugePage = 2 * kMiB;
constexpr std::size_t kShareCount = 3;

std::size_t round_up(std::size_t size, std::size_t unit) { return (size + unit - 1) / unit * unit; }

/// Memory of whole huge pages, aligned to them, filled by the kernel at first touch. Empty when there is
/// none.
MutableBytes map_slab(std::size_t size) {
  const std::size_t mapped = size + kHugePage;
  void* address =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return {};
  auto* begin = static_cast<std::byte*>(address);
  const std::size_t before =
      round_up(reinterpret_cast<std::uintptr_t>(begin), kHugePage) - reinterpret_cast<std::uintptr_t>(begin);
  if (before > 0) ::munmap(begin, before);
  if (before < kHugePage) ::munmap(begin + before + size, kHugePage - before);
  // Only a wish: without transparent huge pages the slab consists of small ones.
  ::madvise(begin + before, size, MADV_HUGEPAGE);
  return {begin + before, size};
}

}  // namespace

struct BufferPool::State {
  struct Waiting {
    Ticket ticket;
    std::size_t count;
    std::move_only_function<void(std::vector<Chunk>)> grant;
  };
  struct Share {
    mutable std::mutex mutex;
    std::size_t chunk_bytes = 0;
    std::size_t total = 0;
    std::vector<MutableBytes> free;  // the last one given back is taken first: its memory is warm
    std::deque<Waiting> waiting;
    Ticket next_ticket = 1;
  };
  std::array<Share, kShareCount> shares;
  std::vector<MutableBytes> slabs;

  Share& share(PoolShare which) { return shares[static_cast<std::size_t>(which)]; }
};

Chunk& Chunk::operator=(Chunk&& other) noexcept {
  if (this != &other) {
    if (pool_ != nullptr) pool_->give_back(share_, bytes_);
    pool_ = std::exchange(other.pool_, nullptr);
    share_ = other.share_;
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

Chunk::~Chunk() {
  if (pool_ != nullptr) pool_->give_back(share_, bytes_);
}

BufferPool::BufferPool() : state_(std::make_unique<State>()) {}

BufferPool::~BufferPool() {
  for (const auto& share : state_->shares) {
    if (share.free.size() == share.total) continue;
    std::fprintf(stderr, "BufferPool destroyed while %zu chunks are out\n", share.total - share.free.size());
    std::abort();
  }
  for (const MutableBytes slab : state_->slabs) ::munmap(slab.data(), slab.size());
}

Result<std::unique_ptr<BufferPool>> BufferPool::create(const BufferPoolOptions& options) {
  std::unique_ptr<BufferPool> pool(new BufferPool);
  struct Plan {
    PoolShare share;
    std::size_t bytes;
    std::size_t chunk_bytes;
  };
  for (const auto& [share_name, bytes, chunk_bytes] :
       {Plan{PoolShare::drives, options.drives_bytes, options.chunk_bytes},
        Plan{PoolShare::planes, options.planes_bytes, options.chunk_bytes},
        Plan{PoolShare::http, options.http_bytes, options.http_chunk_bytes}}) {
    if (chunk_bytes == 0 || chunk_bytes % 4096 != 0)
      return fail(Code::invalid_argument, "chunk sizes must be multiples of 4096");
    State::Share& share = pool->state_->share(share_name);
    share.chunk_bytes = chunk_bytes;
    share.total = bytes / chunk_bytes;
    if (share.total == 0) continue;
    const MutableBytes slab = map_slab(round_up(share.total * chunk_bytes, kHugePage));
    if (slab.empty()) {
      return fail(
          Code::no_space,
          fmt::format("cannot map {} bytes of buffers; lower the pool's size or raise the memory limit",
                      bytes),
          Scope::node);
    }
    pool->state_->slabs.push_back(slab);
    for (std::size_t i = share.total; i-- > 0;)
      share.free.push_back(slab.subspan(i * chunk_bytes, chunk_bytes));
  }
  return pool;
}

std::size_t BufferPool::chunk_bytes(PoolShare share) const { return state_->share(share).chunk_bytes; }

Result<std::vector<Chunk>> BufferPool::try_take(PoolShare share_name, std::size_t count) {
  State::Share& share = state_->share(share_name);
  if (count > share.total) return fail(Code::invalid_argument, "more chunks asked for than the pool has");
  const std::lock_guard lock(share.mutex);
  if (!share.waiting.empty() || share.free.size() < count) {
    return fail(Code::busy, "all buffers are in use", Scope::node, Retry::later);
  }
  std::vector<Chunk> chunks;
  chunks.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    chunks.push_back(Chunk(this, share_name, share.free.back()));
    share.free.pop_back();
  }
  return chunks;
}

Result<BufferPool::Ticket> BufferPool::request(PoolShare share_name, std::size_t count,
                                               std::move_only_function<void(std::vector<Chunk>)> grant) {
  State::Share& share = state_->share(share_name);
  if (count > share.total) return fail(Code::invalid_argument, "more chunks asked for than the pool has");
  Ticket ticket = 0;
  {
    const std::lock_guard lock(share.mutex);
    ticket = share.next_ticket++;
    share.waiting.push_back({ticket, count, std::move(grant)});
  }
  serve_waiting(share_name);
  return ticket;
}

bool BufferPool::withdraw(PoolShare share_name, Ticket ticket) {
  State::Share& share = state_->share(share_name);
  bool withdrawn = false;
  {
    const std::lock_guard lock(share.mutex);
    withdrawn = std::erase_if(share.waiting, [&](const State::Waiting& w) { return w.ticket == ticket; }) > 0;
  }
  // Whoever waited behind it for less may go now.
  if (withdrawn) serve_waiting(share_name);
  return withdrawn;
}

void BufferPool::give_back(PoolShare share_name, MutableBytes bytes) {
  State::Share& share = state_->share(share_name);
  {
    const std::lock_guard lock(share.mutex);
    share.free.push_back(bytes);
    if (share.waiting.empty()) return;
  }
  serve_waiting(share_name);
}

void BufferPool::serve_waiting(PoolShare share_name) {
  State::Share& share = state_->share(share_name);
  for (;;) {
    std::vector<Chunk> chunks;
    std::move_only_function<void(std::vector<Chunk>)> grant;
    {
      const std::lock_guard lock(share.mutex);
      if (share.waiting.empty() || share.free.size() < share.waiting.front().count) return;
      State::Waiting& first = share.waiting.front();
      chunks.reserve(first.count);
      for (std::size_t i = 0; i < first.count; ++i) {
        chunks.push_back(Chunk(this, share_name, share.free.back()));
        share.free.pop_back();
      }
      grant = std::move(first.grant);
      share.waiting.pop_front();
    }
    grant(std::move(chunks));
  }
}

std::span<const MutableBytes> BufferPool::slabs() const { return state_->slabs; }

std::size_t BufferPool::free_count(PoolShare share_name) const {
  const State::Share& share = state_->share(share_name);
  const std::lock_guard lock(share.mutex);
  return share.free.size();
}

std::size_t BufferPool::total_count(PoolShare share) const { return state_->share(share).total; }

}  // namespace reelway::base
