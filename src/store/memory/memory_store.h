#pragma once
// Objects in memory: the plainest store that keeps every promise of object/store.h and object/tiered.h but
// durability. The reference for the contract suites, and what the simulator and other rooms' tests run on.
// One mutex; every call ends without waiting.

#include <memory>

#include "base/clock.h"
#include "base/rng.h"
#include "object/tiered.h"

namespace reelway::store::memory {

struct Options {
  base::Clock* clock = nullptr;                     ///< required; outlives the store, as does rng
  base::Rng* rng = nullptr;                         ///< required
  base::Duration settle = std::chrono::seconds{2};  ///< what changed more recently is not archived yet
};

/// Has Multipart and Tiered.
std::unique_ptr<object::Store> make_memory_store(const Options& options);

}  // namespace reelway::store::memory
