#pragma once
// One lock per key, between threads by a table and between processes by an open-file-description lock on byte
// hash(key) mod 2^20 of .reelway/locks/<name>. Two keys may share a byte: nobody may take a second key's lock
// while holding one of the same name. Blocks up to a deadline. In this order: an upload's, its bucket's, the
// key's.

#include <condition_variable>
#include <map>

#include "store/posix/space.h"

namespace reelway::store::posix {

class KeyLocks {
 public:
  explicit KeyLocks(Space& space) : space_(space) {}

  class [[nodiscard]] Held {
   public:
    Held(KeyLocks& locks, std::string name, std::uint64_t byte, base::LockMode mode)
        : locks_(&locks), name_(std::move(name)), byte_(byte), mode_(mode) {}
    Held(Held&& other) noexcept
        : locks_(std::exchange(other.locks_, nullptr)),
          name_(std::move(other.name_)),
          byte_(other.byte_),
          mode_(other.mode_),
          file_(std::move(other.file_)) {}
    Held& operator=(Held&&) = delete;
    ~Held();

   private:
    friend class KeyLocks;
    KeyLocks* locks_;
    std::string name_;
    std::uint64_t byte_;
    base::LockMode mode_;
    base::File file_;
  };

  /// busy when somebody held it all through Options::lock_patience.
  base::Result<Held> take(const std::string& name, std::string_view key,
                          base::LockMode mode = base::LockMode::exclusive);
  /// Nothing when somebody holds it now.
  base::Result<std::optional<Held>> try_take(const std::string& name, std::string_view key,
                                             base::LockMode mode);
  /// Held shared by whatever puts something into the bucket or beside it, exclusively by what makes and
  /// removes it.
  base::Result<Held> take_bucket(const std::string& bucket, base::LockMode mode);

 private:
  using Byte = std::pair<std::string, std::uint64_t>;
  struct Holders {
    std::size_t shared = 0;
    bool exclusive = false;
  };
  bool is_free(const Byte& byte, base::LockMode mode) const;
  Held hold(const Byte& byte, base::LockMode mode);
  base::Result<Held> take_until(const std::string& name, std::string_view key, base::LockMode mode,
                                base::SteadyPoint deadline);
  void release(const Held& held);
  Space& space_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::map<Byte, Holders> taken_;
};

std::uint64_t lock_byte_of(std::string_view key);

}  // namespace reelway::store::posix
