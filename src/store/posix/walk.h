#pragma once
// The keys of a bucket in byte order of the whole key: a folder `a` sorts as "a/", so its keys come after
// "a-b" and before "a0". A walk reads only the folders that hold keys from its bound on. What was read of a
// folder is kept, sorted, for the next page, as long as the folder's times say that it has not changed.

#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "store/posix/objects.h"

namespace reelway::store::posix {

struct FolderItem {
  std::string name;  ///< a folder's ends with '/'
  bool is_folder = false;
};
using FolderItems = std::shared_ptr<const std::vector<FolderItem>>;

/// A key of the odd tree, and the file it lies in.
struct OddKey {
  std::string key;
  std::string file;
};
using OddKeys = std::shared_ptr<const std::vector<OddKey>>;

/// Sorted contents of folders that rest. Bounded by the number of names.
class FolderCache {
 public:
  explicit FolderCache(Space& space) : space_(space) {}
  base::Result<FolderItems> items(int folder);
  base::Result<OddKeys> odd_keys(const std::string& bucket);

 private:
  struct Entry {
    base::FileStatus status;
    FolderItems items;
    OddKeys odd_keys;
    std::size_t cost = 0;
  };
  using Key = std::pair<std::uint64_t, std::uint64_t>;  ///< device, inode
  std::optional<Entry> recall(const base::FileStatus& status);
  void keep(Entry entry);
  base::Result<OddKeys> read_odd_keys(int folder, const std::string& bucket);

  Space& space_;
  std::mutex mutex_;
  std::map<Key, Entry> entries_;
  std::list<Key> order_;  ///< oldest first
  std::size_t cost_ = 0;
};

/// Visits objects and common prefixes in order; the visitor returns false to stop. `start_after` as in
/// object::ListRequest.
struct Enumeration {
  std::string bucket;
  std::string prefix;
  std::string delimiter;
  std::string start_after;
};
struct Visit {
  std::optional<Found> object;
  std::string common_prefix;  ///< when there is no object
};
base::Result<void> enumerate(Space& space, FolderCache& cache, const Enumeration& what,
                             const std::function<bool(Visit)>& visitor);

base::Result<object::ListPage> list_page(Space& space, FolderCache& cache,
                                         const object::ListRequest& request);

/// The smallest string above every string that begins with `prefix`; empty when there is none.
std::string after_prefix(std::string prefix);

}  // namespace reelway::store::posix
