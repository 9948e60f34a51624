#pragma once
// Randomness that is handed in: the system's for keys and identifiers, a seeded one for tests and
// simulations.

#include <cstdint>
#include <mutex>
#include <string>

#include "base/bytes.h"
#include "base/clock.h"

namespace reelway::base {

class Rng {
 public:
  virtual ~Rng() = default;
  virtual void fill(MutableBytes out) = 0;
  std::uint64_t next_u64();
  /// Uniform in [0, bound), bound > 0.
  std::uint64_t below(std::uint64_t bound);
};

/// getrandom(2); aborts when the kernel has none. Safe for several threads.
class SystemRng final : public Rng {
 public:
  void fill(MutableBytes out) override;
};

/// xoshiro256**, seeded by splitmix64. Safe for several threads.
class SeededRng final : public Rng {
 public:
  explicit SeededRng(std::uint64_t seed);
  void fill(MutableBytes out) override;

 private:
  std::uint64_t step();
  std::mutex mutex_;
  std::uint64_t state_[4];
};

/// 26 characters of Crockford base 32: 48 bits of milliseconds, 80 random bits (the ULID specification).
/// Sorts by time.
std::string make_ulid(const Clock& clock, Rng& rng);

}  // namespace reelway::base
