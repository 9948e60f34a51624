#include <algorithm>
#include <cstring>
#include <utility>

#include "transfer/plane.h"
#include "transfer/plane_choice.h"

namespace reelway::transfer {
namespace {

using base::Result;

/// Pulls straight into the reader's memory where that lies in the pool; otherwise through a chunk of its own.
class WindowSource final : public PlaneSource {
 public:
  WindowSource(rdma::Choice choice, Lease lease, const base::BufferPool& pool)
      : plane_(choice.window.plane), length_(choice.window.length), lease_(std::move(lease)), pool_(pool) {}

  std::optional<std::uint64_t> length() const override { return length_; }
  async::Task<std::size_t> read(base::MutableBytes into) override;
  object::Buffers buffers() const override { return lease_.chunks; }
  async::Task<void> finish() override { return lease_.transfer->fence(); }
  bool failed() const override { return failed_; }
  const std::string& plane() const override { return plane_; }

 private:
  async::Task<void> pull(base::MutableBytes into);

  const std::string plane_;
  const std::uint64_t length_;
  Lease lease_;
  const base::BufferPool& pool_;
  std::uint64_t pulled_ = 0;
  base::ByteView staged_;  ///< in the chunk, not given yet
  bool failed_ = false;
};

async::Task<std::size_t> WindowSource::read(base::MutableBytes into) {
  const bool direct = rdma::lies_in(pool_, into);
  if (staged_.empty() && pulled_ < length_) {
    const auto into_or_chunk = direct ? into : lease_.chunks->front().bytes();
    const auto part = into_or_chunk.first(std::min<std::uint64_t>(into_or_chunk.size(), length_ - pulled_));
    CO_TRY_VOID(co_await pull(part));
    if (direct) co_return part.size();
    staged_ = part;
  }
  const std::size_t size = std::min(into.size(), staged_.size());
  if (size > 0) std::memcpy(into.data(), staged_.data(), size);
  staged_ = staged_.subspan(size);
  co_return size;
}

async::Task<void> WindowSource::pull(base::MutableBytes into) {
  auto pulled = co_await lease_.transfer->pull(pulled_, into);
  if (!pulled) {
    failed_ = true;
    co_return pulled;
  }
  pulled_ += into.size();
  co_return pulled;
}

PlanePut refused(const Refusal& refusal) {
  return {.source = nullptr,
          .refusal = refusal.reason ? rdma::put_declined(*refusal.reason) : rdma::malformed_token(),
          .detail = refusal.detail};
}

}  // namespace

async::Task<PlanePut> open_put(rdma::Planes& planes, base::BufferPool& pool, const base::Clock& clock,
                               std::string_view token, const base::HttpPeer& peer, PlaneOptions options) {
  auto chosen = choose_plane(planes, token, peer);
  if (const auto* refusal = std::get_if<Refusal>(&chosen)) co_return refused(*refusal);
  auto& choice = std::get<rdma::Choice>(chosen);
  const std::uint64_t length = choice.window.length;
  const std::size_t chunk_count = length < pool.chunk_bytes(base::PoolShare::planes) ? 1 : 2;
  CO_TRY(Lease lease, co_await lease_window(choice, pool, clock, length, chunk_count, options));
  if (lease.refusal) co_return refused(*lease.refusal);
  PlanePut put;
  put.source = std::make_unique<WindowSource>(std::move(choice), std::move(lease), pool);
  co_return put;
}

}  // namespace reelway::transfer
