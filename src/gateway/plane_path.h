#pragma once
// The plane's half of a handler: its answers as faults, and its meters. The road itself is transfer/plane.h,
// the rules of the answers rdma/reply.h.

#include "gateway/call.h"
#include "transfer/plane.h"

namespace reelway::gateway {

/// The fault of an answer that is an error, with its header fields.
s3::Fault plane_fault(const rdma::Answer& answer);
/// Counts an offer as moved, declined or failed; `method` is get or put.
void count_plane(const Call& call, std::string_view method, std::string_view outcome, std::uint64_t bytes);

}  // namespace reelway::gateway
