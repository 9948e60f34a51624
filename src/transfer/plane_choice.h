#pragma once
// The common first steps of a GET and a PUT by plane: which plane, may the requester have it, are there
// chunks, does the peer answer.

#include <optional>
#include <string>
#include <vector>

#include "transfer/plane.h"

namespace reelway::transfer {

/// Why a token is not served: no reason means that it is malformed.
struct Refusal {
  std::optional<rdma::DeclineReason> reason;
  std::string detail;
};

/// A window leased for one transfer, and the chunks it goes through. The transfer goes (and fences) before
/// its chunks do.
struct Lease {
  object::Buffers chunks;
  std::unique_ptr<rdma::Transfer> transfer;
  std::optional<Refusal> refusal;
};

std::variant<rdma::Choice, Refusal> choose_plane(const rdma::Planes& planes, std::string_view token,
                                                 const base::HttpPeer& peer);

/// `length`: the bytes that will move. Without chunks (0) lease.chunks is null.
async::Task<Lease> lease_window(const rdma::Choice& choice, base::BufferPool& pool, const base::Clock& clock,
                                std::uint64_t length, std::size_t chunk_count, PlaneOptions options);

}  // namespace reelway::transfer
