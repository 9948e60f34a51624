#pragma once
// Buckets are folders of the root. What mkdir cannot say of them (owner, region, time of creation) lies in
// .reelway/buckets/<bucket>, in the form of an object's metadata; a folder without such a record is a bucket
// too.

#include "store/posix/objects.h"

namespace reelway::store::posix {

class Buckets {
 public:
  Buckets(Space& space, KeyLocks& locks) : space_(space), locks_(locks) {}
  base::Result<void> create(const object::BucketInfo& bucket);
  base::Result<object::BucketInfo> head(const std::string& bucket);
  base::Result<void> remove(const std::string& bucket);
  base::Result<std::vector<object::BucketInfo>> list();

 private:
  base::Result<void> make_folder(const std::string& bucket);
  base::Result<void> check_empty(const std::string& bucket);
  /// Leaves nothing in the bucket's folder; not_empty where it holds an object, or anything else.
  base::Result<void> clear(const std::string& bucket);
  Space& space_;
  KeyLocks& locks_;
};

}  // namespace reelway::store::posix
