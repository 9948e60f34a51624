#pragma once
// An open that meets an evict's lease says busy; evicts hold their leases for milliseconds, so those who may
// block try again.

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/result.h"

namespace reelway::store::posix {

/// Tries a call again while it says busy, for at most about four seconds.
template <class Call>
auto with_patience(Call call) -> decltype(call()) {
  constexpr int kTriesMax = 200;
  for (int attempt = 1;; ++attempt) {
    auto result = call();
    if (result || result.error().code != base::Code::busy || attempt == kTriesMax) return result;
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(attempt, 20)));
  }
}

}  // namespace reelway::store::posix
