#include "store/posix/posix_store.h"

#include <algorithm>

#include "async/waiter.h"
#include "store/posix/buckets.h"
#include "store/posix/reader.h"
#include "store/posix/tiered_store.h"
#include "store/posix/uploads.h"
#include "store/posix/walk.h"

namespace reelway::store::posix {

namespace {

using base::in_context;
using object::ObjectInfo;

/// Two of these are in memory per upload: one is filled while the other is written.
constexpr std::size_t kUploadBufferBytes = 512 * base::kKiB;

/// What a write on the pool needs, shared with it, so that it never outlives its memory.
struct Upload {
  explicit Upload(Temporary temporary) : file(std::move(temporary)) {}
  Temporary file;
  base::Bytes filling;
  base::Bytes writing;
  std::size_t writing_bytes = 0;
  std::uint64_t offset = 0;
  base::Result<void> outcome;
};

/// AWS: a copy whose source conditions fail is refused, never "not modified".
base::Result<void> check_copy_source(const object::Conditions& conditions, const ObjectInfo& info) {
  auto checked = object::check_read_conditions(conditions, info);
  if (!checked && checked.error().code == base::Code::not_modified)
    checked.error().code = base::Code::precondition_failed;
  return checked;
}

class FileStore final : public PosixStore, public object::Multipart {
  template <class F>
  auto on_pool(F function) {
    return async::offload(*space_->options().pool, std::move(function));
  }

 public:
  explicit FileStore(std::unique_ptr<Space> space)
      : space_(std::move(space)),
        locks_(*space_),
        objects_(*space_, locks_),
        buckets_(*space_, locks_),
        uploads_(*space_, locks_, objects_),
        cache_(*space_),
        tiered_(*space_, objects_, cache_) {}

  bool leases_are_believed() const override { return space_->leases_are_believed(); }
  object::Multipart* multipart() override { return this; }
  object::Tiered* tiered() override { return &tiered_; }

  async::Task<void> create_bucket(object::BucketInfo bucket) override {
    co_return co_await on_pool([&] { return buckets_.create(bucket); });
  }
  async::Task<object::BucketInfo> head_bucket(std::string bucket) override {
    co_return buckets_.head(bucket);
  }
  async::Task<void> delete_bucket(std::string bucket) override {
    co_return co_await on_pool([&] { return buckets_.remove(bucket); });
  }
  async::Task<std::vector<object::BucketInfo>> list_buckets() override {
    co_return co_await on_pool([&] { return buckets_.list(); });
  }

  async::Task<ObjectInfo> head(object::HeadRequest request) override {
    CO_TRY(const Found found, co_await find(request.name));
    CO_TRY_VOID(object::check_read_conditions(request.conditions, found.info));
    co_return found.info;
  }

  async::Task<std::unique_ptr<object::Reader>> get(object::GetRequest request) override {
    CO_TRY(Found found, co_await find(request.name));
    CO_TRY_VOID(object::check_read_conditions(request.conditions, found.info));
    CO_TRY(const base::ByteRange range, object::requested_range(request, found.info));
    if (!found.file)
      co_return base::fail(base::Code::not_resident, "the object is on tape only", base::Scope::object);
    std::unique_ptr<object::Reader> reader = std::make_unique<FileReader>(*space_, std::move(found), range);
    co_return reader;
  }

  async::Task<ObjectInfo> put(object::PutRequest request, object::ByteSource& source) override {
    CO_TRY(base::Bytes first, co_await read_first(source));
    const bool is_all =
        first.size() < kUploadBufferBytes && first.size() <= source.length().value_or(kUploadBufferBytes);
    if (is_all) co_return co_await put_small(std::move(request), std::move(first));
    CO_TRY_VOID(co_await on_pool([&] { return check_early(request.name, request.conditions); }));
    CO_TRY(const std::shared_ptr<Upload> upload, co_await receive(source, std::move(first)));
    CO_TRY(ObjectInfo info, sealed_info(request));
    co_return co_await on_pool(
        [&] { return objects_.publish(upload->file, std::move(info), request.conditions); });
  }

  async::Task<ObjectInfo> copy(object::CopyRequest request) override {
    co_return co_await on_pool([&] { return copy_object(request); });
  }
  async::Task<bool> remove(object::RemoveRequest request) override {
    co_return co_await on_pool([&] { return objects_.remove(request.name, request.conditions); });
  }
  async::Task<object::ListPage> list(object::ListRequest request) override {
    co_return co_await on_pool([&] { return list_page(*space_, cache_, request); });
  }

  async::Task<object::UploadInfo> create_upload(object::CreateUploadRequest request) override {
    co_return co_await on_pool([&] { return uploads_.create(request); });
  }
  async::Task<object::PartInfo> put_part(object::PutPartRequest request,
                                         object::ByteSource& source) override {
    CO_TRY(const object::UploadInfo declared,
           co_await on_pool([&] { return uploads_.find(request.name, request.upload_id); }));
    CO_TRY(base::Bytes first, co_await read_first(source));
    CO_TRY(const std::shared_ptr<Upload> upload, co_await receive(source, std::move(first)));
    CO_TRY(object::Seal seal, request.seal());
    co_return co_await on_pool([&] { return uploads_.publish_part(upload->file, request, std::move(seal)); });
  }
  async::Task<object::PartPage> list_parts(object::ListPartsRequest request) override {
    co_return co_await on_pool([&] { return uploads_.list_parts(request); });
  }
  async::Task<object::UploadPage> list_uploads(object::ListUploadsRequest request) override {
    co_return co_await on_pool([&] { return uploads_.list_uploads(request); });
  }
  async::Task<ObjectInfo> complete_upload(object::CompleteRequest request) override {
    co_return co_await on_pool([&] { return uploads_.complete(request); });
  }
  async::Task<void> abort_upload(object::ObjectName name, std::string upload_id) override {
    co_return co_await on_pool([&] { return uploads_.abort(name, upload_id); });
  }

 private:
  /// On the caller's thread, as opening is quick; a lease in the way is waited for on the pool.
  async::Task<Found> find(const object::ObjectName& name) {
    auto found = objects_.find(name);
    if (found || found.error().code != base::Code::busy) co_return found;
    co_return co_await on_pool([&] { return objects_.find_patiently(name); });
  }

  /// Refuses what can be refused before the bytes come. The conditions are checked again under the lock.
  base::Result<void> check_early(const object::ObjectName& name, const object::Conditions& conditions) {
    TRY(const base::File bucket, open_bucket(*space_, name.bucket));
    if (conditions.empty()) return {};
    const auto current = objects_.find_patiently(name);
    if (!current && !object::is_object_not_found(current.error())) return current.error();
    return object::check_write_conditions(conditions, current ? &current->info : nullptr);
  }

  base::Result<ObjectInfo> copy_object(object::CopyRequest& request) {
    TRY(const Found source, objects_.find_patiently(request.source));
    TRY_VOID(check_copy_source(request.source_conditions, source.info));
    if (!source.file)
      return base::fail(base::Code::not_resident, "the source is on tape only", base::Scope::object);
    TRY(const base::File bucket, open_bucket(*space_, request.target.bucket));
    TRY(Temporary file, space_->make_temporary());
    TRY_VOID(
        copy_bytes(*space_, source.file.get(), {.offset = 0, .length = source.info.size}, file.get(), 0));
    ObjectInfo info = source.info;
    info.name = request.target;
    if (request.replace_attributes) info.attributes = std::move(*request.replace_attributes);
    if (request.storage_class) info.attributes.storage_class = *request.storage_class;
    return objects_.publish(file, std::move(info), request.target_conditions);
  }

  /// The first buffer of a source, with room for one byte more than the source promises.
  static async::Task<base::Bytes> read_first(object::ByteSource& source) {
    base::Bytes first(static_cast<std::size_t>(
        std::clamp<std::uint64_t>(source.length().value_or(kUploadBufferBytes) + 1, 1, kUploadBufferBytes)));
    CO_TRY(const std::size_t count, co_await object::read_full(source, first));
    first.resize(count);
    co_return first;
  }

  static base::Result<ObjectInfo> sealed_info(object::PutRequest& request) {
    TRY(object::Seal seal, request.seal());
    ObjectInfo info;
    info.name = request.name;
    info.attributes = std::move(request.attributes);
    info.etag = std::move(seal.etag);
    info.checksums = std::move(seal.checksums);
    return info;
  }

  /// All of a small object's file calls in one go.
  async::Task<ObjectInfo> put_small(object::PutRequest request, base::Bytes bytes) {
    CO_TRY(ObjectInfo info, sealed_info(request));
    co_return co_await on_pool([&]() -> base::Result<ObjectInfo> {
      TRY_VOID(check_early(request.name, request.conditions));
      TRY(Temporary file, space_->make_temporary());
      TRY_VOID(in_context(space_->files().write(file.get(), bytes, 0), "write an object"));
      return objects_.publish(file, std::move(info), request.conditions);
    });
  }

  /// Takes a source to its end into a temporary file. One buffer is written while the next is filled.
  async::Task<std::shared_ptr<Upload>> receive(object::ByteSource& source, base::Bytes first) {
    CO_TRY(Temporary file, co_await on_pool([&] { return space_->make_temporary(); }));
    const auto upload = std::make_shared<Upload>(std::move(file));
    std::size_t filled = first.size();
    upload->filling = std::move(first);
    while (filled > 0) {
      CO_TRY(const std::shared_ptr<async::Waiter> running, start_write(upload, filled));
      upload->filling.resize(kUploadBufferBytes);
      const auto next = co_await object::read_full(source, upload->filling);
      CO_TRY_VOID(co_await finish_write(*upload, *running));
      if (!next) co_return next.error();
      filled = *next;
    }
    co_return upload;
  }

  base::Result<std::shared_ptr<async::Waiter>> start_write(const std::shared_ptr<Upload>& upload,
                                                           std::size_t bytes) {
    std::swap(upload->filling, upload->writing);
    upload->writing_bytes = bytes;
    auto end = std::make_shared<async::Waiter>();
    const bool accepted = space_->options().pool->post([upload, end, files = &space_->files()] {
      const base::ByteView view = base::ByteView(upload->writing).first(upload->writing_bytes);
      upload->outcome = in_context(files->write(upload->file.get(), view, upload->offset), "write an object");
      end->wake();
    });
    if (!accepted)
      return base::fail(base::Code::busy, "too many file calls are waiting", base::Scope::node,
                        base::Retry::later);
    return end;
  }

  static async::Task<void> finish_write(Upload& upload, async::Waiter& end) {
    CO_TRY_VOID(co_await end.wait_to_the_end());
    CO_TRY_VOID(upload.outcome);
    upload.offset += upload.writing_bytes;
    co_return base::Result<void>{};
  }

  std::unique_ptr<Space> space_;
  KeyLocks locks_;
  Objects objects_;
  Buckets buckets_;
  Uploads uploads_;
  FolderCache cache_;
  TieredStore tiered_;
};

}  // namespace

base::Result<std::unique_ptr<PosixStore>> PosixStore::create(Options options) {
  static base::SystemClock system_clock;
  static base::SystemRng system_rng;
  if (options.pool == nullptr) return base::fail(base::Code::invalid_argument, "a blocking pool is required");
  if (options.files == nullptr) options.files = &base::system_files();
  if (options.clock == nullptr) options.clock = &system_clock;
  if (options.rng == nullptr) options.rng = &system_rng;
  if (options.log == nullptr) options.log = &base::null_log();
  TRY(std::unique_ptr<Space> space, Space::create(options));
  std::unique_ptr<PosixStore> store = std::make_unique<FileStore>(std::move(space));
  return store;
}

}  // namespace reelway::store::posix
