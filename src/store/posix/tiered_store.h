#pragma once
// object::Tiered over Tier, on the blocking pool.

#include "store/posix/tier.h"

namespace reelway::store::posix {

class TieredStore final : public object::Tiered {
 public:
  TieredStore(Space& space, Objects& objects, FolderCache& cache)
      : space_(space), tier_(space, objects, cache) {}
  async::Task<std::vector<object::TierEntry>> scan(std::string bucket, std::string prefix,
                                                   std::string start_after, std::size_t count_max) override;
  async::Task<std::unique_ptr<object::ArchiveReader>> open_for_archive(object::ObjectName name) override;
  async::Task<object::Identity> evict(object::ObjectName name, object::Identity archived) override;
  async::Task<std::unique_ptr<object::RecallWriter>> begin_recall(object::ObjectName name,
                                                                  std::string generation) override;
  async::Task<void> create_stub(object::ObjectInfo info) override;
  async::Task<std::vector<object::Conflict>> recover() override;

 private:
  Space& space_;
  Tier tier_;
};

}  // namespace reelway::store::posix
