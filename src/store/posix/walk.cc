#include "store/posix/walk.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace reelway::store::posix {

namespace {

using base::in_context;

constexpr std::size_t kCachedNamesMax = 2'000'000;
/// A folder that changed this shortly before it was read may have changed again without its times telling.
constexpr base::Duration kRest = std::chrono::milliseconds{100};

/// The plain keys of one bucket, from a bound on.
class Walk {
 public:
  struct Candidate {
    std::string key;
    int folder = -1;
    std::string leaf;
  };

  Walk(Space& space, FolderCache& cache) : space_(space), cache_(cache) {}

  base::Result<void> open(int bucket, const std::string& prefix) {
    const std::size_t slash = prefix.rfind('/');
    const std::string path = slash == std::string::npos ? "" : prefix.substr(0, slash);
    if (!path.empty() && !is_plain_key(path)) return {};
    return push(bucket, path.empty() ? "." : path, path.empty() ? "" : path + "/");
  }

  /// The first plain key that is not below `bound`. Bounds only grow.
  base::Result<std::optional<Candidate>> first_from(const std::string& bound) {
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      if (bound > frame.prefix && !bound.starts_with(frame.prefix)) {
        pop();
        continue;
      }
      advance(frame, bound);
      if (frame.index == frame.items->size()) {
        pop();
        continue;
      }
      const FolderItem& item = (*frame.items)[frame.index];
      std::string key = frame.prefix + item.name;
      if (!item.is_folder)
        return Candidate{.key = std::move(key), .folder = frame.folder.get(), .leaf = item.name};
      const std::size_t depth = frames_.size();
      TRY_VOID(push(frame.folder.get(), item.name.substr(0, item.name.size() - 1), std::move(key)));
      if (frames_.size() == depth) ++frames_.back().index;  // it is gone, or closed to us
    }
    return std::nullopt;
  }

 private:
  struct Frame {
    std::string prefix;
    base::File folder;
    FolderItems items;
    std::size_t index = 0;
  };

  base::Result<void> push(int parent, const std::string& path, std::string prefix) {
    auto folder = space_.files().open(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!folder) {
      const int error = folder.error();
      if (error == ENOENT || error == ENOTDIR || error == ELOOP || error == EACCES) return {};
      return base::from_errno(error, "open a folder");
    }
    TRY(FolderItems items, cache_.items(folder->get()));
    frames_.push_back(
        {.prefix = std::move(prefix), .folder = std::move(*folder), .items = std::move(items), .index = 0});
    return {};
  }

  void pop() {
    frames_.pop_back();
    if (!frames_.empty()) ++frames_.back().index;
  }

  static void advance(Frame& frame, const std::string& bound) {
    if (bound <= frame.prefix) return;
    const std::string_view rest = std::string_view(bound).substr(frame.prefix.size());
    const auto& items = *frame.items;
    const auto start = items.begin() + static_cast<std::ptrdiff_t>(frame.index);
    auto found =
        std::lower_bound(start, items.end(), rest,
                         [](const FolderItem& item, std::string_view value) { return item.name < value; });
    // The folder that the bound leads into sorts before it.
    if (found != start && std::prev(found)->is_folder && rest.starts_with(std::prev(found)->name)) --found;
    frame.index = static_cast<std::size_t>(found - items.begin());
  }

  Space& space_;
  FolderCache& cache_;
  std::vector<Frame> frames_;
};

/// Both trees together; of a key that lies in both, the path is the object.
class Keys {
 public:
  Keys(Space& space, FolderCache& cache, std::string bucket)
      : space_(space), walk_(space, cache), bucket_(std::move(bucket)) {}

  base::Result<void> open(FolderCache& cache, const std::string& prefix) {
    TRY(bucket_folder_, open_bucket(space_, bucket_));
    TRY_VOID(walk_.open(bucket_folder_.get(), prefix));
    TRY(odd_, cache.odd_keys(bucket_));
    auto folder = space_.files().open(space_.odd(), bucket_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!folder && folder.error() != ENOENT) return base::from_errno(folder.error(), "open the odd keys");
    if (folder) odd_folder_ = std::move(*folder);
    return {};
  }

  struct Next {
    std::string key;
    std::optional<Found> object;  ///< nothing: not an object, look further
  };
  base::Result<std::optional<Next>> first_from(const std::string& bound) {
    TRY(const std::optional<Walk::Candidate> plain, walk_.first_from(bound));
    const auto odd = std::ranges::lower_bound(*odd_, bound, {}, &OddKey::key);
    const bool has_odd = odd != odd_->end() && odd_folder_;
    if (!plain && !has_odd) return std::nullopt;
    if (plain && (!has_odd || plain->key <= odd->key))
      return look_patiently(plain->folder, plain->leaf, plain->key, false);
    return look_patiently(odd_folder_.get(), odd->file, odd->key, true);
  }

 private:
  base::Result<std::optional<Next>> look_patiently(int folder, const std::string& leaf,
                                                   const std::string& key, bool is_odd) {
    const object::ObjectName name{.bucket = bucket_, .key = key};
    auto found = with_patience([&] { return look(space_, folder, leaf, name); });
    if (!found && found.error().code != base::Code::access_denied) return found.error();
    Next next{.key = key, .object = std::nullopt};
    if (found) next.object = std::move(*found);
    if (next.object) next.object->odd = is_odd;
    return next;
  }

  Space& space_;
  Walk walk_;
  std::string bucket_;
  base::File bucket_folder_, odd_folder_;
  OddKeys odd_;
};

/// The common prefix that a key falls under, if it does.
std::optional<std::string> common_prefix_of(const std::string& key, const Enumeration& what) {
  if (what.delimiter.empty() || !key.starts_with(what.prefix)) return std::nullopt;
  const std::size_t at = key.find(what.delimiter, what.prefix.size());
  if (at == std::string::npos) return std::nullopt;
  return key.substr(0, at + what.delimiter.size());
}

/// Nothing when no key can come after, as behind a common prefix of bytes ff.
std::optional<std::string> first_bound(const Enumeration& what) {
  if (what.start_after.empty()) return what.prefix;
  const auto common = common_prefix_of(what.start_after, what);
  std::string after = common ? after_prefix(*common) : what.start_after + '\0';
  if (after.empty()) return std::nullopt;
  return std::max(what.prefix, after);
}

}  // namespace

std::string after_prefix(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

base::Result<void> enumerate(Space& space, FolderCache& cache, const Enumeration& what,
                             const std::function<bool(Visit)>& visitor) {
  Keys keys(space, cache, what.bucket);
  TRY_VOID(keys.open(cache, what.prefix));
  const auto first = first_bound(what);
  if (!first) return {};
  std::string bound = *first;
  for (;;) {
    TRY(std::optional<Keys::Next> next, keys.first_from(bound));
    if (!next || !next->key.starts_with(what.prefix)) return {};
    const auto common = common_prefix_of(next->key, what);
    if (!next->object || !common) {
      bound = next->key + '\0';
      if (next->object && !visitor({.object = std::move(next->object), .common_prefix = {}})) return {};
      continue;
    }
    if (!visitor({.object = std::nullopt, .common_prefix = *common})) return {};
    bound = after_prefix(*common);
    if (bound.empty()) return {};
  }
}

base::Result<object::ListPage> list_page(Space& space, FolderCache& cache,
                                         const object::ListRequest& request) {
  object::ListPage page;
  std::string last;
  const auto take = [&](Visit visit) {
    if (page.objects.size() + page.common_prefixes.size() == request.count_max) {
      page.truncated = request.count_max > 0;
      return false;
    }
    if (visit.object) {
      last = visit.object->info.name.key;
      page.objects.push_back(std::move(visit.object->info));
    } else {
      last = visit.common_prefix;
      page.common_prefixes.push_back(std::move(visit.common_prefix));
    }
    return true;
  };
  TRY_VOID(enumerate(space, cache,
                     {.bucket = request.bucket,
                      .prefix = request.prefix,
                      .delimiter = request.delimiter,
                      .start_after = request.start_after},
                     take));
  if (page.truncated) page.next_start_after = std::move(last);
  return page;
}

std::optional<FolderCache::Entry> FolderCache::recall(const base::FileStatus& status) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find({status.device, status.inode});
  if (found == entries_.end() || found->second.status.modified != status.modified ||
      found->second.status.changed != status.changed)
    return std::nullopt;
  return found->second;
}

void FolderCache::keep(Entry entry) {
  if (entry.status.changed + kRest > space_.clock().now() || entry.cost > kCachedNamesMax) return;
  const std::lock_guard lock(mutex_);
  const Key key{entry.status.device, entry.status.inode};
  if (const auto old = entries_.find(key); old != entries_.end()) {
    cost_ -= old->second.cost;
    entries_.erase(old);
    order_.remove(key);
  }
  cost_ += entry.cost;
  entries_.emplace(key, std::move(entry));
  order_.push_back(key);
  while (cost_ > kCachedNamesMax) {
    const auto oldest = entries_.find(order_.front());
    cost_ -= oldest->second.cost;
    entries_.erase(oldest);
    order_.pop_front();
  }
}

base::Result<FolderItems> FolderCache::items(int folder) {
  TRY(const base::FileStatus status, in_context(space_.files().status(folder), "stat a folder"));
  if (auto kept = recall(status); kept && kept->items) return kept->items;
  TRY(std::vector<base::FolderEntry> entries, in_context(space_.files().entries(folder), "read a folder"));
  std::vector<FolderItem> items;
  items.reserve(entries.size());
  for (base::FolderEntry& entry : entries) {
    if (entry.kind == base::EntryKind::other) continue;
    const bool is_folder = entry.kind == base::EntryKind::folder;
    if (is_folder) entry.name += '/';
    items.push_back({.name = std::move(entry.name), .is_folder = is_folder});
  }
  std::ranges::sort(items, {}, &FolderItem::name);
  const std::size_t cost = items.size() + 16;
  auto shared = std::make_shared<const std::vector<FolderItem>>(std::move(items));
  keep({.status = status, .items = shared, .odd_keys = nullptr, .cost = cost});
  return shared;
}

base::Result<OddKeys> FolderCache::read_odd_keys(int folder, const std::string& bucket) {
  TRY(const std::vector<base::FolderEntry> entries,
      in_context(space_.files().entries(folder), "read the odd keys"));
  std::vector<OddKey> keys;
  for (const base::FolderEntry& entry : entries) {
    TRY(const auto name, read_recorded_name(space_, folder, entry.name, bucket));
    if (name && name->bucket == bucket && odd_name_of(name->key) == entry.name)
      keys.push_back({name->key, entry.name});
  }
  std::ranges::sort(keys, {}, &OddKey::key);
  return std::make_shared<const std::vector<OddKey>>(std::move(keys));
}

base::Result<OddKeys> FolderCache::odd_keys(const std::string& bucket) {
  const auto folder = space_.files().open(space_.odd(), bucket, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder && folder.error() == ENOENT) return std::make_shared<const std::vector<OddKey>>();
  if (!folder) return base::from_errno(folder.error(), "open the odd keys");
  TRY(const base::FileStatus status, in_context(space_.files().status(folder->get()), "stat the odd keys"));
  if (auto kept = recall(status); kept && kept->odd_keys) return kept->odd_keys;
  TRY(OddKeys keys, read_odd_keys(folder->get(), bucket));
  keep({.status = status, .items = nullptr, .odd_keys = keys, .cost = keys->size() + 16});
  return keys;
}

}  // namespace reelway::store::posix
