#pragma once
// The life of an object between disk and tape: rules 3 to 6 of docs/architecture.md, part 4. Everything here
// blocks and is kept as small steps, because the tests stop it after each of them.

#include "store/posix/objects.h"
#include "store/posix/walk.h"

namespace reelway::store::posix {

object::Identity identity_of(const object::ObjectInfo& info, const base::FileStatus& status);

struct Spot;  ///< an object's folder and its name there (tier_spot.h)

class Tier {
 public:
  Tier(Space& space, Objects& objects, FolderCache& cache)
      : space_(space), objects_(objects), cache_(cache) {}

  base::Result<std::vector<object::TierEntry>> scan(const std::string& bucket, const std::string& prefix,
                                                    const std::string& start_after, std::size_t count_max);

  struct OpenedForArchive {
    Found found;
    object::Identity identity;
    bool leased = false;
  };
  base::Result<OpenedForArchive> open_for_archive(const object::ObjectName& name);
  /// busy when the read lease is gone: somebody wants to write.
  base::Result<void> check_lease(const OpenedForArchive& opened);
  base::Result<object::Identity> confirm_unchanged(const OpenedForArchive& opened);

  base::Result<object::Identity> evict(const object::ObjectName& name, const object::Identity& archived);

  struct Recall {
    Temporary file;
    Sidecar sidecar;
    object::ObjectName name;
    std::uint64_t stub_inode = 0;
  };
  base::Result<Recall> begin_recall(const object::ObjectName& name, const std::string& generation);
  base::Result<object::Identity> commit_recall(Recall& recall);

  base::Result<void> create_stub(const object::ObjectInfo& info);
  base::Result<std::vector<object::Conflict>> recover();

 private:
  base::Result<void> give_generation(Found& found);
  base::Result<void> check_archived(const Found& found, const object::Identity& archived);
  base::Result<std::uint64_t> make_stub(const std::string& entry, const StubText& stub);
  base::Result<object::Identity> swap_for_stub(const Found& found, const Spot& spot,
                                               std::uint64_t stub_inode);
  void bring_back(const Found& found, const Spot& spot, std::uint64_t stub_inode);
  base::Result<void> check_displaced(const Found& found);
  base::Result<void> sweep_temporaries();
  base::Result<void> settle_evicted(const std::string& entry, std::vector<object::Conflict>& conflicts);
  base::Result<void> settle_recalled(const std::string& entry, std::vector<object::Conflict>& conflicts);
  Space& space_;
  Objects& objects_;
  FolderCache& cache_;
};

}  // namespace reelway::store::posix
