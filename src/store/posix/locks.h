#pragma once
// One lock per key, between threads by a table and between processes by an open-file-description lock on byte
// hash(key) mod 2^20 of .reelway/locks/<name>. Two keys may share a byte: nobody may take a second key's lock
// while holding one of the same name. Blocks up to a deadline.

#include <condition_variable>
#include <set>

#include "store/posix/space.h"

namespace reelway::store::posix {

class KeyLocks {
 public:
  explicit KeyLocks(Space& space) : space_(space) {}

  class [[nodiscard]] Held {
   public:
    Held(KeyLocks& locks, std::string name, std::uint64_t byte)
        : locks_(&locks), name_(std::move(name)), byte_(byte) {}
    Held(Held&& other) noexcept
        : locks_(std::exchange(other.locks_, nullptr)),
          name_(std::move(other.name_)),
          byte_(other.byte_),
          file_(std::move(other.file_)) {}
    Held& operator=(Held&&) = delete;
    ~Held();

   private:
    friend class KeyLocks;
    KeyLocks* locks_;
    std::string name_;
    std::uint64_t byte_;
    base::File file_;
  };

  /// busy when somebody held it all through Options::lock_patience.
  base::Result<Held> take(const std::string& name, std::string_view key);

 private:
  Space& space_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::set<std::pair<std::string, std::uint64_t>> taken_;
};

std::uint64_t lock_byte_of(std::string_view key);

}  // namespace reelway::store::posix
