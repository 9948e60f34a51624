#include "transfer/hashing.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include "async/waiter.h"

namespace reelway::transfer {

bool is_slow(base::ChecksumKind kind) { return !base::is_crc(kind); }

/// The slow hashers with their queues. A lane's job drains its queue and ends; the next piece starts it
/// again. Jobs hold the pipeline, and it the chunks, so a source may be destroyed while one runs.
class HashingSource::Pipeline : public std::enable_shared_from_this<Pipeline> {
 public:
  Pipeline(const std::vector<base::ChecksumKind>& kinds, object::Buffers buffers, async::BlockingPool& pool)
      : pool_(pool), buffers_(std::move(buffers)) {
    for (const auto kind : kinds)
      lanes_.push_back({.kind = kind, .hasher = base::make_hasher(kind), .queue = {}});
  }

  /// Waits until nothing that is still to be hashed lies in `memory`; then for half of everything, so that
  /// reader and hashers do not wake one another for every piece.
  async::Task<void> wait_for(base::ByteView memory) {
    if (overlaps(growing_, memory) && !follows(memory)) submit_growing();
    const std::size_t half = buffers_->size() / 2;
    if (is_hashing(memory)) CO_TRY_VOID(co_await wait_for_at_most(half));
    if (is_hashing(memory)) CO_TRY_VOID(co_await wait_for_at_most(0));
    co_return base::Result<void>{};
  }

  /// Queues the bytes of a lent chunk on every lane, once the chunk is full; hashes others at once.
  async::Task<void> feed(base::ByteView bytes) {
    if (!follows(bytes)) submit_growing();
    const base::ByteView chunk = chunk_around(bytes);
    if (chunk.empty()) {
      CO_TRY_VOID(co_await wait_for_at_most(0));
      for (auto& lane : lanes_) lane.hasher->update(bytes);
      co_return base::Result<void>{};
    }
    growing_ = follows(bytes) ? base::ByteView(growing_.data(), growing_.size() + bytes.size()) : bytes;
    if (growing_.data() + growing_.size() == chunk.data() + chunk.size()) submit_growing();
    co_return base::Result<void>{};
  }

  /// All lanes have hashed everything.
  async::Task<void> drain() {
    submit_growing();
    co_return co_await wait_for_at_most(0);
  }

  std::optional<base::Bytes> digest(base::ChecksumKind kind) const {
    const auto lane = std::ranges::find(lanes_, kind, &Lane::kind);
    if (lane == lanes_.end()) return std::nullopt;
    return lane->hasher->digest();
  }

 private:
  struct Piece {
    base::ByteView bytes;
    std::size_t lanes_left;
  };
  using PiecePtr = std::shared_ptr<Piece>;
  struct Lane {
    base::ChecksumKind kind;
    std::unique_ptr<base::Hasher> hasher;
    std::deque<PiecePtr> queue;  // bounded by the chunks: each is filled again only when it was hashed
    bool running = false;
  };

  static bool overlaps(base::ByteView a, base::ByteView b) {
    return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
  }

  bool follows(base::ByteView bytes) const {
    return !growing_.empty() && growing_.data() + growing_.size() == bytes.data() &&
           !chunk_around({growing_.data(), growing_.size() + bytes.size()}).empty();
  }

  base::ByteView chunk_around(base::ByteView bytes) const {
    for (const base::Chunk& chunk : *buffers_) {
      const base::ByteView whole = chunk.bytes();
      if (bytes.data() >= whole.data() && bytes.data() + bytes.size() <= whole.data() + whole.size())
        return whole;
    }
    return {};
  }

  bool is_hashing(base::ByteView memory) {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(hashing_,
                               [&](const PiecePtr& piece) { return overlaps(piece->bytes, memory); });
  }

  async::Task<void> wait_for_at_most(std::size_t count) {
    const auto waiter = std::make_shared<async::Waiter>();
    {
      const std::lock_guard lock(mutex_);
      if (hashing_.size() <= count) co_return base::Result<void>{};
      waiter_ = waiter;
      wanted_ = count;
    }
    co_return co_await waiter->wait();
  }

  void submit_growing() {
    if (growing_.empty()) return;
    const auto piece = std::make_shared<Piece>(std::exchange(growing_, {}), lanes_.size());
    {
      const std::lock_guard lock(mutex_);
      hashing_.push_back(piece);
    }
    for (auto& lane : lanes_) {
      {
        const std::lock_guard lock(mutex_);
        lane.queue.push_back(piece);
        if (lane.running) continue;
        lane.running = true;
      }
      auto job = [self = shared_from_this(), &lane] { self->run(lane); };
      if (!pool_.post(job)) job();  // a full pool slows this reactor down rather than failing the put
    }
  }

  void run(Lane& lane) {
    std::unique_lock lock(mutex_);
    while (!lane.queue.empty()) {
      const auto piece = std::move(lane.queue.front());
      lane.queue.pop_front();
      lock.unlock();
      lane.hasher->update(piece->bytes);
      lock.lock();
      if (--piece->lanes_left == 0) {
        std::erase(hashing_, piece);
        if (waiter_ && hashing_.size() <= wanted_) std::exchange(waiter_, nullptr)->wake();
      }
    }
    lane.running = false;
  }

  async::BlockingPool& pool_;
  const object::Buffers buffers_;
  base::ByteView growing_;  // read, not queued yet; the reader's alone
  std::mutex mutex_;  // guards what follows but the lanes' hashers, each of which belongs to its lane's job
  std::shared_ptr<async::Waiter> waiter_;
  std::size_t wanted_ = 0;
  std::vector<PiecePtr> hashing_;
  std::vector<Lane> lanes_;
};

HashingSource::HashingSource(object::ByteSource& inner, const std::vector<base::ChecksumKind>& kinds,
                             object::Buffers buffers, async::BlockingPool& pool)
    : inner_(inner), buffers_(std::move(buffers)) {
  const bool is_short = inner.length() && *inner.length() <= kHashInPlaceMax;
  std::vector<base::ChecksumKind> slow;
  for (const auto kind : kinds) {
    if (is_slow(kind) && buffers_ && !is_short) {
      if (std::ranges::find(slow, kind) == slow.end()) slow.push_back(kind);
    } else if (!in_place_.contains(kind)) {
      in_place_.emplace(kind, base::make_hasher(kind));
    }
  }
  if (!slow.empty()) pipeline_ = std::make_shared<Pipeline>(slow, buffers_, pool);
}

HashingSource::~HashingSource() = default;

async::Task<std::size_t> HashingSource::read(base::MutableBytes into) {
  if (pipeline_) CO_TRY_VOID(co_await pipeline_->wait_for(into));
  CO_TRY(const std::size_t count, co_await inner_.read(into));
  if (count > 0) {
    byte_count_ += count;
    for (auto& [kind, hasher] : in_place_) hasher->update(into.first(count));
    if (pipeline_) CO_TRY_VOID(co_await pipeline_->feed(into.first(count)));
    co_return count;
  }
  if (pipeline_) CO_TRY_VOID(co_await pipeline_->drain());
  at_end_ = true;
  co_return std::size_t{0};
}

std::optional<base::Bytes> HashingSource::digest(base::ChecksumKind kind) const {
  if (!at_end_) return std::nullopt;
  if (const auto found = in_place_.find(kind); found != in_place_.end()) return found->second->digest();
  return pipeline_ ? pipeline_->digest(kind) : std::nullopt;
}

}  // namespace reelway::transfer
