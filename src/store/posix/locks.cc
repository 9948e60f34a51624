#include "store/posix/locks.h"

#include <fcntl.h>

#include <chrono>
#include <thread>

namespace reelway::store::posix {

namespace {

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
  const std::lock_guard lock(locks_->mutex_);
  locks_->taken_.erase({name_, byte_});
  locks_->freed_.notify_all();
}

base::Result<KeyLocks::Held> KeyLocks::take(const std::string& name, std::string_view key) {
  const std::uint64_t byte = lock_byte_of(key);
  const auto deadline = std::chrono::steady_clock::now() + space_.options().lock_patience;
  {
    std::unique_lock lock(mutex_);
    if (!freed_.wait_until(lock, deadline, [&] { return !taken_.contains({name, byte}); })) return is_held();
    taken_.insert({name, byte});
  }
  Held held(*this, name, byte);
  TRY(held.file_,
      base::in_context(space_.files().open(space_.locks(), name, O_CREAT | O_RDWR | O_NOFOLLOW, 0600),
                       "open a lock file"));
  // There is no call that waits for such a lock with a deadline, and other processes hold it for
  // milliseconds.
  for (auto pause = kPollMin;; pause = std::min(pause * 2, kPollMax)) {
    TRY(const base::LockOutcome outcome,
        base::in_context(space_.files().try_lock_byte(held.file_.get(), byte), "lock"));
    if (outcome == base::LockOutcome::taken) return held;
    if (std::chrono::steady_clock::now() >= deadline) return is_held();
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace reelway::store::posix
