#include "base/rng.h"

#include <sys/random.h>

#include <array>
#include <cstdlib>
#include <cstring>

namespace reelway::base {

std::uint64_t Rng::next_u64() {
  std::uint64_t value = 0;
  fill(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

std::uint64_t Rng::below(std::uint64_t bound) {
  const std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  for (;;) {
    if (const std::uint64_t value = next_u64(); value < limit) return value % bound;
  }
}

void SystemRng::fill(MutableBytes out) {
  while (!out.empty()) {
    const ssize_t count = ::getrandom(out.data(), out.size(), 0);
    if (count < 0 && errno != EINTR) std::abort();
    if (count > 0) out = out.subspan(static_cast<std::size_t>(count));
  }
}

SeededRng::SeededRng(std::uint64_t seed) {
  for (auto& word : state_) {
    seed += 0x9e3779b97f4a7c15;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    word = z ^ (z >> 31);
  }
}

std::uint64_t SeededRng::step() {
  const auto rotate = [](std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); };
  const std::uint64_t result = rotate(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = rotate(state_[3], 45);
  return result;
}

void SeededRng::fill(MutableBytes out) {
  const std::lock_guard lock(mutex_);
  while (!out.empty()) {
    const std::uint64_t word = step();
    const std::size_t count = std::min(out.size(), sizeof word);
    std::memcpy(out.data(), &word, count);
    out = out.subspan(count);
  }
}

std::string make_ulid(const Clock& clock, Rng& rng) {
  static constexpr char kDigits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  std::array<std::byte, 10> random;
  rng.fill(random);
  auto milliseconds = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(clock.now().time_since_epoch()).count());
  std::string text(26, '0');
  for (std::size_t i = 10; i-- > 0; milliseconds >>= 5) text[i] = kDigits[milliseconds & 31];
  for (std::size_t i = 0; i < 16; ++i) {
    const std::size_t bit = i * 5;
    const unsigned high = std::to_integer<unsigned>(random[bit / 8]);
    const unsigned low = bit / 8 + 1 < random.size() ? std::to_integer<unsigned>(random[bit / 8 + 1]) : 0;
    text[10 + i] = kDigits[((high << 8 | low) >> (11 - bit % 8)) & 31];
  }
  return text;
}

}  // namespace reelway::base
