#include "store/archive/archive_store.h"

#include <fmt/format.h>

namespace reelway::store {

using base::Code;
using base::Result;

/// Multipart uploads go to the store below; what they complete is told to the archiver.
class ArchiveStore::Uploads final : public object::Multipart {
 public:
  Uploads(object::Multipart& below, archive::Client& archive) : below_(below), archive_(archive) {}
  async::Task<object::UploadInfo> create_upload(object::CreateUploadRequest request) override {
    return below_.create_upload(std::move(request));
  }
  async::Task<object::PartInfo> put_part(object::PutPartRequest request,
                                         object::ByteSource& source) override {
    return below_.put_part(std::move(request), source);
  }
  async::Task<object::PartPage> list_parts(object::ListPartsRequest request) override {
    return below_.list_parts(std::move(request));
  }
  async::Task<object::UploadPage> list_uploads(object::ListUploadsRequest request) override {
    return below_.list_uploads(std::move(request));
  }
  async::Task<object::ObjectInfo> complete_upload(object::CompleteRequest request) override {
    CO_TRY(auto info, co_await below_.complete_upload(std::move(request)));
    archive_.notify_stored(info);
    co_return info;
  }
  async::Task<void> abort_upload(object::ObjectName name, std::string upload_id) override {
    return below_.abort_upload(std::move(name), std::move(upload_id));
  }

 private:
  object::Multipart& below_;
  archive::Client& archive_;
};

ArchiveStore::ArchiveStore(object::Store& below, archive::Client& archive, ArchiveStoreOptions options)
    : below_(below), archive_(archive), options_(options) {
  if (below.multipart() != nullptr) uploads_ = std::make_unique<Uploads>(*below.multipart(), archive);
}
ArchiveStore::~ArchiveStore() = default;

object::Multipart* ArchiveStore::multipart() { return uploads_.get(); }

async::Task<void> ArchiveStore::create_bucket(object::BucketInfo bucket) {
  return below_.create_bucket(std::move(bucket));
}
async::Task<object::BucketInfo> ArchiveStore::head_bucket(std::string bucket) {
  return below_.head_bucket(std::move(bucket));
}
async::Task<void> ArchiveStore::delete_bucket(std::string bucket) {
  return below_.delete_bucket(std::move(bucket));
}
async::Task<std::vector<object::BucketInfo>> ArchiveStore::list_buckets() { return below_.list_buckets(); }

async::Task<object::ObjectInfo> ArchiveStore::head(object::HeadRequest request) {
  CO_TRY(auto info, co_await below_.head(std::move(request)));
  CO_TRY(info.restore, co_await archive_.restore_status(info.name, info.generation));
  co_return info;
}

async::Task<object::ListPage> ArchiveStore::list(object::ListRequest request) {
  CO_TRY(auto page, co_await below_.list(std::move(request)));
  for (object::ObjectInfo& info : page.objects) {
    if (info.residency == object::Residency::resident && info.attributes.storage_class == "STANDARD")
      continue;
    CO_TRY(info.restore, co_await archive_.restore_status(info.name, info.generation));
  }
  co_return page;
}

/// Success: the object's bytes are (or were a moment ago) on disk.
async::Task<void> ArchiveStore::make_resident(object::ObjectName name) {
  CO_TRY(const auto info, co_await below_.head({.name = name, .conditions = {}}));
  if (info.residency == object::Residency::resident) co_return Result<void>{};
  CO_TRY(const bool owned, co_await archive_.owns(name, info.generation));
  if (!owned) {
    co_return base::fail(
        Code::data_loss,
        fmt::format("the stub at {}/{} stands for nothing that the catalog knows", name.bucket, name.key),
        base::Scope::object);
  }
  if (!options_.recall_on_read)
    co_return base::fail(Code::not_resident, "the object is on tape", base::Scope::object);
  object::RecallRequest request{.name = name,
                                .generation = info.generation,
                                .days = 1,
                                .tier = object::RestoreTier::expedited,
                                .for_reader = true};
  CO_TRY(auto status, co_await archive_.submit(std::move(request)));
  if (status.state != object::RecallState::done) {
    auto waited = co_await archive_.wait(name, info.generation, options_.patience);
    if (!waited.has_value()) {
      const base::Code code = waited.error().code;
      const bool goes_on = code == Code::deadline_exceeded || code == Code::closed;
      if (!goes_on) co_return waited.error();
      co_return base::fail(Code::unavailable, "the object is being recalled from tape", base::Scope::object,
                           base::Retry::later);
    }
    status = std::move(*waited);
  }
  if (status.state == object::RecallState::failed)
    co_return base::fail(Code::data_loss, status.explanation, base::Scope::object);
  co_return Result<void>{};
}

async::Task<std::unique_ptr<object::Reader>> ArchiveStore::get(object::GetRequest request) {
  const object::ObjectName name = request.name;
  const object::GetRequest again = request;
  auto reader = co_await below_.get(std::move(request));
  if (reader.has_value() || reader.error().code != Code::not_resident) co_return reader;
  CO_TRY_VOID(co_await make_resident(name));
  auto landed = co_await below_.get(again);
  // Evicted again in between: the client comes back.
  if (!landed.has_value() && landed.error().code == Code::not_resident && options_.recall_on_read) {
    co_return base::fail(Code::unavailable, "the object is being recalled from tape", base::Scope::object,
                         base::Retry::later);
  }
  co_return landed;
}

async::Task<object::ObjectInfo> ArchiveStore::put(object::PutRequest request, object::ByteSource& source) {
  CO_TRY(auto info, co_await below_.put(std::move(request), source));
  archive_.notify_stored(info);
  co_return info;
}

async::Task<object::ObjectInfo> ArchiveStore::copy(object::CopyRequest request) {
  const object::ObjectName source = request.source;
  const object::CopyRequest again = request;
  auto info = co_await below_.copy(std::move(request));
  if (!info.has_value() && info.error().code == Code::not_resident) {
    CO_TRY_VOID(co_await make_resident(source));
    info = co_await below_.copy(again);
  }
  if (info.has_value()) archive_.notify_stored(*info);
  co_return info;
}

async::Task<bool> ArchiveStore::remove(object::RemoveRequest request) {
  const object::ObjectName name = request.name;
  // Which generation goes: a later one at the same key must not be buried with it.
  const auto before = co_await below_.head({.name = name, .conditions = {}});
  CO_TRY(const bool removed, co_await below_.remove(std::move(request)));
  if (removed && before.has_value()) archive_.notify_removed(name, before->generation);
  co_return removed;
}

}  // namespace reelway::store
