#pragma once
// What HEAD, GET and lists say of a restore, for any thread at once: a copy of what the archive's executor
// knows, so that no request waits for it.

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "object/types.h"

namespace reelway::archive {

class RestoreBoard {
 public:
  void set(const object::ObjectName& name, std::string generation, object::RestoreStatus status) {
    const std::lock_guard lock(mutex_);
    entries_[name] = {std::move(generation), status};
  }
  void clear(const object::ObjectName& name) {
    const std::lock_guard lock(mutex_);
    entries_.erase(name);
  }
  std::optional<object::RestoreStatus> find(const object::ObjectName& name,
                                            const std::string& generation) const {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(name);
    if (at == entries_.end() || at->second.generation != generation) return std::nullopt;
    return at->second.status;
  }

 private:
  struct Entry {
    std::string generation;
    object::RestoreStatus status;
  };
  mutable std::mutex mutex_;
  std::map<object::ObjectName, Entry> entries_;
};

}  // namespace reelway::archive
