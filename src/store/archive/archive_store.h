#pragma once
// A store with an archive behind it: everything goes to the store below; what is evicted is recalled, shown
// with its restore status by HEAD, GET and lists alike, and reported to the archiver when stored or removed.
// A stub that the catalog does not own is never taken for an object (rule 4 of docs/architecture.md): get and
// copy answer data_loss (scope object). A get of an evicted object is not_resident; with recall_on_read it
// joins the object's recall or starts one, and gives a reader as soon as the first byte may be read: of the
// object on disk, or one that follows the recall (object/recall_feed.h). Past the patience it is unavailable
// with Retry::later (the gateway answers 503 SlowDown with Retry-After), the recall goes on and the retry
// joins it (rule 9).

#include <memory>

#include "archive/client.h"
#include "object/recall_feed.h"
#include "object/store.h"

namespace reelway::store {

struct ArchiveStoreOptions {
  bool recall_on_read = false;
  base::Duration patience = std::chrono::seconds{45};
};

class ArchiveStore final : public object::Store {
 public:
  /// Both outlive it.
  ArchiveStore(object::Store& below, archive::Client& archive, ArchiveStoreOptions options);
  ~ArchiveStore() override;

  async::Task<void> create_bucket(object::BucketInfo bucket) override;
  async::Task<object::BucketInfo> head_bucket(std::string bucket) override;
  async::Task<void> delete_bucket(std::string bucket) override;
  async::Task<std::vector<object::BucketInfo>> list_buckets() override;
  async::Task<object::ObjectInfo> head(object::HeadRequest request) override;
  async::Task<std::unique_ptr<object::Reader>> get(object::GetRequest request) override;
  async::Task<object::ObjectInfo> put(object::PutRequest request, object::ByteSource& source) override;
  async::Task<object::ObjectInfo> copy(object::CopyRequest request) override;
  async::Task<bool> remove(object::RemoveRequest request) override;
  async::Task<object::ListPage> list(object::ListRequest request) override;
  object::Multipart* multipart() override;
  object::Tiered* tiered() override { return below_.tiered(); }

 private:
  class Uploads;
  async::Task<object::FollowedRecall> follow(object::ObjectInfo info, std::uint64_t offset);
  async::Task<std::unique_ptr<object::Reader>> read_recall(object::GetRequest request);
  async::Task<void> make_resident(object::ObjectName name);
  std::unique_ptr<object::Reader> shown(std::unique_ptr<object::Reader> reader) const;
  object::Store& below_;
  archive::Client& archive_;
  ArchiveStoreOptions options_;
  std::unique_ptr<Uploads> uploads_;
};

}  // namespace reelway::store
