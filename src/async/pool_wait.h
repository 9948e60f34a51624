#pragma once
// Waiting for buffers: first come first served per share, with a bound on patience.

#include <vector>

#include "async/task.h"
#include "base/buffer_pool.h"
#include "base/clock.h"

namespace reelway::async {

/// `count` chunks at once; busy when they did not come free within `patience`; invalid_argument for more than
/// the share has; cancelled.
Task<std::vector<base::Chunk>> take_chunks(base::BufferPool& pool, base::PoolShare share, std::size_t count,
                                           base::Duration patience);

}  // namespace reelway::async
