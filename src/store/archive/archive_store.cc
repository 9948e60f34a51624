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
  info.restore = archive_.restore_status(info.name, info.generation);
  co_return info;
}

async::Task<object::ListPage> ArchiveStore::list(object::ListRequest request) {
  CO_TRY(auto page, co_await below_.list(std::move(request)));
  for (object::ObjectInfo& info : page.objects)
    info.restore = archive_.restore_status(info.name, info.generation);
  co_return page;
}

namespace {

base::Error come_again() {
  return base::fail(Code::unavailable, "the object is being recalled from tape", base::Scope::object,
                    base::Retry::later);
}

/// An object on disk that is there for a time.
class RestoredReader final : public object::Reader {
 public:
  RestoredReader(std::unique_ptr<object::Reader> below, object::RestoreStatus restore)
      : below_(std::move(below)), info_(below_->info()) {
    info_.restore = restore;
  }
  const object::ObjectInfo& info() const override { return info_; }
  base::ByteRange range() const override { return below_->range(); }
  std::optional<object::FileSegment> file_segment() const override { return below_->file_segment(); }
  async::Task<std::size_t> read(base::MutableBytes into) override { return below_->read(into); }

 private:
  std::unique_ptr<object::Reader> below_;
  object::ObjectInfo info_;
};

}  // namespace

std::unique_ptr<object::Reader> ArchiveStore::shown(std::unique_ptr<object::Reader> reader) const {
  const object::ObjectInfo& info = reader->info();
  const auto restore = archive_.restore_status(info.name, info.generation);
  if (!restore) return reader;
  return std::make_unique<RestoredReader>(std::move(reader), *restore);
}

/// Of an evicted object: waits until its byte `offset` may be read, here or (no view) in the store.
async::Task<object::FollowedRecall> ArchiveStore::follow(object::ObjectInfo info, std::uint64_t offset) {
  CO_TRY(const bool owned, co_await archive_.owns(info.name, info.generation));
  if (!owned) {
    const auto now = co_await below_.head({.name = info.name, .conditions = {}});
    if (!now || now->generation != info.generation) co_return object::FollowedRecall{};  // replaced since
    co_return base::fail(Code::data_loss,
                         fmt::format("the stub at {}/{} stands for nothing that the catalog knows",
                                     info.name.bucket, info.name.key),
                         base::Scope::object);
  }
  if (!options_.recall_on_read)
    co_return base::fail(Code::not_resident, "the object is on tape", base::Scope::object);
  object::RecallRequest request{.name = info.name,
                                .generation = info.generation,
                                .days = 1,
                                .tier = object::RestoreTier::expedited,
                                .for_reader = true};
  auto followed = co_await archive_.follow(std::move(request), offset, options_.patience);
  if (!followed) {
    const Code code = followed.error().code;
    if (code == Code::deadline_exceeded || code == Code::closed) co_return come_again();
    co_return followed.error();
  }
  if (followed->status.state == object::RecallState::failed)
    co_return base::fail(Code::data_loss, followed->status.explanation, base::Scope::object);
  co_return followed;
}

/// Success: the object's bytes are (or were a moment ago) on disk.
async::Task<void> ArchiveStore::make_resident(object::ObjectName name) {
  CO_TRY(const auto info, co_await below_.head({.name = name, .conditions = {}}));
  if (info.residency == object::Residency::resident) co_return Result<void>{};
  // Nobody may read what lies behind the last byte before the recall has ended.
  CO_TRY(const auto followed, co_await follow(info, info.size));
  co_return Result<void>{};
}

/// Null: look at the store again.
async::Task<std::unique_ptr<object::Reader>> ArchiveStore::read_recall(object::GetRequest request) {
  CO_TRY(auto info, co_await below_.head({.name = request.name, .conditions = request.conditions}));
  if (info.residency == object::Residency::resident) co_return std::unique_ptr<object::Reader>{};
  CO_TRY(const base::ByteRange range, object::requested_range(request, info));
  const std::uint64_t last = range.length == 0 ? range.offset : range.end() - 1;
  CO_TRY(auto followed, co_await follow(info, request.without_tape_waits ? last : range.offset));
  if (!followed.view) co_return std::unique_ptr<object::Reader>{};
  info.restore = archive_.restore_status(info.name, info.generation);
  co_return object::make_feed_reader(std::move(followed.feed), std::move(*followed.view), std::move(info),
                                     range);
}

async::Task<std::unique_ptr<object::Reader>> ArchiveStore::get(object::GetRequest request) {
  auto reader = co_await below_.get(request);
  if (!reader && reader.error().code == Code::not_resident) {
    CO_TRY(auto following, co_await read_recall(request));
    if (following) co_return following;
    reader = co_await below_.get(std::move(request));
    // Evicted again in between: the client comes back.
    if (!reader && reader.error().code == Code::not_resident && options_.recall_on_read)
      co_return come_again();
  }
  if (!reader) co_return reader.error();
  co_return shown(std::move(*reader));
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
