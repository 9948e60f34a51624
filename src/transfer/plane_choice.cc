#include "transfer/plane_choice.h"

#include <fmt/format.h>

#include "async/pool_wait.h"

namespace reelway::transfer {
namespace {

using base::Code;
using rdma::DeclineReason;

DeclineReason reason_of(const base::Error& error) {
  switch (error.code) {
    case Code::busy:
      return DeclineReason::busy;
    case Code::access_denied:
      return DeclineReason::policy;
    case Code::closed:
      return DeclineReason::disabled;
    default:
      return DeclineReason::fabric;
  }
}

Refusal refuse(DeclineReason reason, const rdma::Choice& choice, std::string_view why) {
  return {.reason = reason,
          .detail = fmt::format("{} declined ({}) window {}: {}", choice.window.plane, to_string(reason),
                                choice.window.token_hash, why)};
}

}  // namespace

std::variant<rdma::Choice, Refusal> choose_plane(const rdma::Planes& planes, std::string_view token,
                                                 const base::HttpPeer& peer) {
  auto chosen = planes.choose(token);
  if (std::holds_alternative<rdma::MalformedToken>(chosen))
    return Refusal{.reason = {}, .detail = "malformed token"};
  if (const auto* reason = std::get_if<DeclineReason>(&chosen)) {
    return Refusal{.reason = *reason, .detail = fmt::format("declined ({})", to_string(*reason))};
  }
  auto& choice = std::get<rdma::Choice>(chosen);
  const auto admitted = choice.plane->admit(choice.window, peer);
  if (!admitted) return refuse(reason_of(admitted.error()), choice, to_string(admitted.error()));
  return std::move(choice);
}

async::Task<Lease> lease_window(const rdma::Choice& choice, base::BufferPool& pool, const base::Clock& clock,
                                std::uint64_t length, std::size_t chunk_count, PlaneOptions options) {
  Lease lease;
  if (chunk_count > 0) {
    auto chunks =
        co_await async::take_chunks(pool, base::PoolShare::planes, chunk_count, options.chunk_patience);
    if (!chunks) {
      if (chunks.error().code == Code::cancelled) co_return chunks.error();
      lease.refusal = refuse(DeclineReason::busy, choice, "no chunks came free");
      co_return lease;
    }
    lease.chunks = std::make_shared<const std::vector<base::Chunk>>(std::move(*chunks));
  }
  const auto wire_time =
      std::chrono::nanoseconds{length * 1000 / std::max<std::uint64_t>(options.rate_min / 1'000'000, 1)};
  const base::SteadyPoint deadline = clock.steady_now() + options.deadline + wire_time;
  auto transfer = co_await choice.plane->open(choice.window, deadline);
  if (!transfer) {
    if (transfer.error().code == Code::cancelled) co_return transfer.error();
    lease.refusal = refuse(reason_of(transfer.error()), choice, to_string(transfer.error()));
    co_return lease;
  }
  lease.transfer = std::move(*transfer);
  co_return lease;
}

}  // namespace reelway::transfer
