#include "transfer/hashing.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>

#include "async/waiter.h"

namespace reelway::transfer {

bool is_slow(base::ChecksumKind kind) { return !base::is_crc(kind); }

/// The slow hashers with their queues. A lane's job drains its queue and ends; the next piece starts it
/// again. Jobs hold the pipeline, so a source may be destroyed while one runs.
class HashingSource::Pipeline : public std::enable_shared_from_this<Pipeline> {
 public:
  Pipeline(const std::vector<base::ChecksumKind>& kinds, std::vector<base::Chunk> chunks,
           async::BlockingPool& pool)
      : pool_(pool), chunk_count_(chunks.size()), free_(std::move(chunks)) {
    for (const auto kind : kinds)
      lanes_.push_back({.kind = kind, .hasher = base::make_hasher(kind), .queue = {}});
  }

  /// Copies bytes into chunks and queues each full one on every lane. When none is free it waits for half of
  /// them, so that reader and hashers do not wake one another for every piece.
  async::Task<void> feed(base::ByteView bytes) {
    while (!bytes.empty()) {
      if (!filling_) {
        if (!has_free()) CO_TRY_VOID(co_await wait_for_free((chunk_count_ + 1) / 2));
        filling_ = take_free();
        filled_ = 0;
      }
      const std::size_t count = std::min(bytes.size(), filling_.bytes().size() - filled_);
      std::memcpy(filling_.bytes().data() + filled_, bytes.data(), count);
      filled_ += count;
      bytes = bytes.subspan(count);
      if (filled_ == filling_.bytes().size()) submit_filling();
    }
    co_return base::Result<void>{};
  }

  /// All lanes have hashed everything when all chunks are back.
  async::Task<void> drain() {
    if (filling_) submit_filling();
    co_return co_await wait_for_free(chunk_count_);
  }

  std::optional<base::Bytes> digest(base::ChecksumKind kind) const {
    const auto lane = std::ranges::find(lanes_, kind, &Lane::kind);
    if (lane == lanes_.end()) return std::nullopt;
    return lane->hasher->digest();
  }

 private:
  struct Piece {
    Piece(base::Chunk chunk_in, std::size_t size_in, std::size_t lanes)
        : chunk(std::move(chunk_in)), size(size_in), lanes_left(lanes) {}
    base::Chunk chunk;
    std::size_t size;
    std::size_t lanes_left;
  };
  struct Lane {
    base::ChecksumKind kind;
    std::unique_ptr<base::Hasher> hasher;
    std::deque<std::shared_ptr<Piece>> queue;  // bounded by the number of chunks
    bool running = false;
  };

  base::Chunk take_free() {
    const std::lock_guard lock(mutex_);
    base::Chunk chunk = std::move(free_.back());
    free_.pop_back();
    return chunk;
  }

  bool has_free() {
    const std::lock_guard lock(mutex_);
    return !free_.empty();
  }

  async::Task<void> wait_for_free(std::size_t count) {
    const auto waiter = std::make_shared<async::Waiter>();
    {
      const std::lock_guard lock(mutex_);
      if (free_.size() >= count) co_return base::Result<void>{};
      waiter_ = waiter;
      wanted_ = count;
    }
    co_return co_await waiter->wait();
  }

  void submit_filling() {
    const auto piece = std::make_shared<Piece>(std::move(filling_), filled_, lanes_.size());
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
      lane.hasher->update(piece->chunk.bytes().first(piece->size));
      lock.lock();
      if (--piece->lanes_left == 0) {
        free_.push_back(std::move(piece->chunk));
        if (waiter_ && free_.size() >= wanted_) std::exchange(waiter_, nullptr)->wake();
      }
    }
    lane.running = false;
  }

  async::BlockingPool& pool_;
  const std::size_t chunk_count_;
  base::Chunk filling_;  // the reader's alone
  std::size_t filled_ = 0;
  std::mutex mutex_;  // guards what follows but the lanes' hashers, each of which belongs to its lane's job
  std::shared_ptr<async::Waiter> waiter_;
  std::size_t wanted_ = 0;
  std::vector<base::Chunk> free_;
  std::vector<Lane> lanes_;
};

HashingSource::HashingSource(object::ByteSource& inner, const std::vector<base::ChecksumKind>& kinds,
                             std::vector<base::Chunk> chunks, async::BlockingPool& pool)
    : inner_(inner) {
  std::vector<base::ChecksumKind> slow;
  for (const auto kind : kinds) {
    if (is_slow(kind) && !chunks.empty()) {
      if (std::ranges::find(slow, kind) == slow.end()) slow.push_back(kind);
    } else if (!in_place_.contains(kind)) {
      in_place_.emplace(kind, base::make_hasher(kind));
    }
  }
  if (!slow.empty()) pipeline_ = std::make_shared<Pipeline>(slow, std::move(chunks), pool);
}

HashingSource::~HashingSource() = default;

async::Task<std::size_t> HashingSource::read(base::MutableBytes into) {
  CO_TRY(const std::size_t count, co_await inner_.read(into));
  if (count > 0) {
    byte_count_ += count;
    CO_TRY_VOID(co_await feed(into.first(count)));
    co_return count;
  }
  if (pipeline_) CO_TRY_VOID(co_await pipeline_->drain());
  at_end_ = true;
  co_return std::size_t{0};
}

async::Task<void> HashingSource::feed(base::ByteView bytes) {
  for (auto& [kind, hasher] : in_place_) hasher->update(bytes);
  if (pipeline_) CO_TRY_VOID(co_await pipeline_->feed(bytes));
  co_return base::Result<void>{};
}

std::optional<base::Bytes> HashingSource::digest(base::ChecksumKind kind) const {
  if (!at_end_) return std::nullopt;
  if (const auto found = in_place_.find(kind); found != in_place_.end()) return found->second->digest();
  return pipeline_ ? pipeline_->digest(kind) : std::nullopt;
}

}  // namespace reelway::transfer
