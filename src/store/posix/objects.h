#pragma once
// Finding, publishing and removing objects: the blocking core of the store.

#include "object/tiered.h"
#include "store/posix/locks.h"
#include "store/posix/patience.h"
#include "store/posix/place.h"
#include "store/posix/record.h"

namespace reelway::store::posix {

/// An object as it lies on disk.
struct Found {
  object::ObjectInfo info;
  base::FileStatus status;  ///< of the file, or of the stub itself
  base::File file;          ///< open for reading; empty for a stub
  bool has_sidecar = false;
  bool odd = false;
  std::optional<InodeRecord> inode;  ///< of a stub
  object::ObjectName recorded_name;  ///< of a stub: the name its sidecar has; another one after mv
};

/// Looks at one directory entry (or path) as the object `name`; nothing when it is no object: a folder, a
/// device, a foreign link, a stub that stands for another key. An entry that is exchanged meanwhile is looked
/// at again, so that bytes and metadata are of one version. busy while an evict holds its lease.
base::Result<std::optional<Found>> look(Space& space, int folder, const std::string& path,
                                        const object::ObjectName& name);

/// Whether an open file still has the size and the time of change that it was found with.
base::Result<bool> is_unchanged(Space& space, const Found& found);

class Objects {
 public:
  Objects(Space& space, KeyLocks& locks) : space_(space), locks_(locks) {}

  /// bucket_not_found, object_not_found, busy.
  base::Result<Found> find(const object::ObjectName& name);
  /// As find, but waits for leases.
  base::Result<Found> find_patiently(const object::ObjectName& name);
  /// Publishes a whole file under `info.name`; size, time and generation are filled in. On an error nothing
  /// of it is left.
  base::Result<object::ObjectInfo> publish(Temporary& file, object::ObjectInfo info,
                                           const object::Conditions& conditions);
  base::Result<bool> remove(const object::ObjectName& name, const object::Conditions& conditions);
  base::Result<KeyLocks::Held> lock_bucket(const std::string& bucket) {
    return locks_.take_bucket(bucket, base::LockMode::shared);
  }
  base::Result<KeyLocks::Held> lock(const object::ObjectName& name) {
    return locks_.take(name.bucket, name.key);
  }
  Space& space() { return space_; }

 private:
  base::Result<std::optional<Found>> find_current(const object::ObjectName& name);
  base::Result<void> put_in_place(Temporary& file, const object::ObjectName& name, bool prefer_odd);
  base::Result<void> unlink_object(const object::ObjectName& name, const Found& current);
  Space& space_;
  KeyLocks& locks_;
};

}  // namespace reelway::store::posix
