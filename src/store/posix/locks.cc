#include "store/posix/locks.h"

#include <fcntl.h>

#include <chrono>
#include <thread>

namespace reelway::store::posix {

namespace {

constexpr const char* kBucketLocks = ":buckets";  // no bucket's name has a colon
constexpr std::uint64_t kLockBytes = 1 << 20;
constexpr std::chrono::milliseconds kPollMin{1};
constexpr std::chrono::milliseconds kPollMax{20};

base::Error is_held() {
  return base::fail(base::Code::busy, "the key's lock is held by somebody else", base::Scope::object,
                    base::Retry::later);
}

}  // namespace

/// FNV-1a, because every process that shares the root must compute the same.
std::uint64_t lock_byte_of(std::string_view key) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash % kLockBytes;
}

KeyLocks::Held::~Held() {
  if (locks_ == nullptr) return;
  file_ = {};
  locks_->release(*this);
}

bool KeyLocks::is_free(const Byte& byte, base::LockMode mode) const {
  const auto found = taken_.find(byte);
  return found == taken_.end() || (mode == base::LockMode::shared && !found->second.exclusive);
}

KeyLocks::Held KeyLocks::hold(const Byte& byte, base::LockMode mode) {
  Holders& holders = taken_[byte];
  if (mode == base::LockMode::shared) {
    ++holders.shared;
  } else {
    holders.exclusive = true;
  }
  return {*this, byte.first, byte.second, mode};
}

void KeyLocks::release(const Held& held) {
  const std::lock_guard lock(mutex_);
  const auto found = taken_.find({held.name_, held.byte_});
  const bool is_last = held.mode_ == base::LockMode::exclusive || --found->second.shared == 0;
  if (is_last) taken_.erase(found);
  freed_.notify_all();
}

base::Result<KeyLocks::Held> KeyLocks::take_until(const std::string& name, std::string_view key,
                                                  base::LockMode mode, base::SteadyPoint deadline) {
  const Byte byte{name, lock_byte_of(key)};
  std::unique_lock lock(mutex_);
  if (!freed_.wait_until(lock, deadline, [&] { return is_free(byte, mode); })) return is_held();
  Held held = hold(byte, mode);
  lock.unlock();
  TRY(held.file_,
      base::in_context(space_.files().open(space_.locks(), name, O_CREAT | O_RDWR | O_NOFOLLOW, 0600),
                       "open a lock file"));
  // There is no call that waits for such a lock with a deadline, and other processes hold it for
  // milliseconds.
  for (auto pause = kPollMin;; pause = std::min(pause * 2, kPollMax)) {
    TRY(const base::LockOutcome outcome,
        base::in_context(space_.files().try_lock_byte(held.file_.get(), byte.second, mode), "lock"));
    if (outcome == base::LockOutcome::taken) return held;
    if (std::chrono::steady_clock::now() >= deadline) return is_held();
    std::this_thread::sleep_for(pause);
  }
}

base::Result<KeyLocks::Held> KeyLocks::take(const std::string& name, std::string_view key,
                                            base::LockMode mode) {
  return take_until(name, key, mode, std::chrono::steady_clock::now() + space_.options().lock_patience);
}

base::Result<std::optional<KeyLocks::Held>> KeyLocks::try_take(const std::string& name, std::string_view key,
                                                               base::LockMode mode) {
  auto held = take_until(name, key, mode, std::chrono::steady_clock::now());
  if (held) return std::move(*held);
  if (held.error().code == base::Code::busy) return std::nullopt;
  return held.error();
}

base::Result<KeyLocks::Held> KeyLocks::take_bucket(const std::string& bucket, base::LockMode mode) {
  return take(kBucketLocks, bucket, mode);
}

}  // namespace reelway::store::posix
