#include "store/posix/posix_store.h"

#include <algorithm>
#include <numeric>

#include "async/timer.h"
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

/// Without lent chunks two of these are in memory per upload: one is filled while the other is written. An
/// object that is known to fit into one is written in one go.
constexpr std::size_t kUploadBufferBytes = 512 * base::kKiB;

/// How long a part, an abort or a repeated complete waits for the complete that runs.
constexpr base::Duration kUploadPatience = std::chrono::minutes{10};
constexpr base::Duration kUploadPollMin = std::chrono::milliseconds{5};
constexpr base::Duration kUploadPollMax = std::chrono::milliseconds{250};

/// A source that changes under the copy is copied again, so often.
constexpr int kCopiesMax = 3;

/// The memory of one upload: one half is filled while the other is written. Its own where the source lends
/// none. Shared with the write on the pool, so that it never goes before it.
struct UploadMemory {
  struct Half {
    std::vector<base::MutableBytes> parts;
    std::size_t filled = 0;
    std::size_t size() const {
      return std::accumulate(parts.begin(), parts.end(), std::size_t{0},
                             [](std::size_t sum, base::MutableBytes part) { return sum + part.size(); });
    }
  };

  explicit UploadMemory(const object::ByteSource& source) : lent(source.buffers()) {
    const std::uint64_t length = source.length().value_or(2 * kUploadBufferBytes);
    std::vector<base::MutableBytes> parts;
    if (lent) {
      for (const base::Chunk& chunk : *lent) parts.push_back(chunk.bytes());
    } else {
      own.resize(static_cast<std::size_t>(std::min<std::uint64_t>(length + 1, 2 * kUploadBufferBytes)));
      const auto middle = static_cast<std::ptrdiff_t>(std::min(own.size(), kUploadBufferBytes));
      parts.emplace_back(own.begin(), own.begin() + middle);
      if (own.begin() + middle != own.end()) parts.emplace_back(own.begin() + middle, own.end());
    }
    filling.parts = std::move(parts);
    const bool in_one_go = length < std::min(filling.size(), kUploadBufferBytes);
    if (in_one_go) return;
    const auto half = filling.parts.begin() + static_cast<std::ptrdiff_t>((filling.parts.size() + 1) / 2);
    writing.parts.assign(half, filling.parts.end());
    filling.parts.erase(half, filling.parts.end());
  }

  object::Buffers lent;
  base::Bytes own;
  Half filling;
  Half writing;
};

/// What a write on the pool needs.
struct Upload {
  Upload(Temporary temporary, std::unique_ptr<UploadMemory> bytes)
      : file(std::move(temporary)), memory(std::move(bytes)) {}
  Temporary file;
  std::unique_ptr<UploadMemory> memory;
  std::uint64_t offset = 0;
  base::Result<void> outcome;
};

/// Writes what a half holds.
base::Result<void> write_half(base::Files& files, int file, const UploadMemory::Half& half,
                              std::uint64_t offset) {
  std::size_t left = half.filled;
  for (base::ByteView part : half.parts) {
    part = part.first(std::min(left, part.size()));
    if (part.empty()) break;
    TRY_VOID(in_context(files.write(file, part, offset), "write an object"));
    offset += part.size();
    left -= part.size();
  }
  return {};
}

/// Fills a half as far as the source goes.
async::Task<void> fill_half(object::ByteSource& source, UploadMemory::Half& half) {
  half.filled = 0;
  for (const base::MutableBytes part : half.parts) {
    CO_TRY(const std::size_t count, co_await object::read_full(source, part));
    half.filled += count;
    if (count < part.size()) break;
  }
  co_return base::Result<void>{};
}

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
    auto memory = std::make_unique<UploadMemory>(source);
    CO_TRY_VOID(co_await fill_half(source, memory->filling));
    const bool is_all = memory->filling.filled < std::min(memory->filling.size(), kUploadBufferBytes);
    if (is_all) co_return co_await put_small(std::move(request), std::move(memory));
    CO_TRY_VOID(co_await on_pool([&] { return check_early(request.name, request.conditions); }));
    CO_TRY(const std::shared_ptr<Upload> upload, co_await receive(source, std::move(memory)));
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
    auto memory = std::make_unique<UploadMemory>(source);
    CO_TRY_VOID(co_await fill_half(source, memory->filling));
    CO_TRY(const std::shared_ptr<Upload> upload, co_await receive(source, std::move(memory)));
    CO_TRY(const object::Seal seal, request.seal());
    co_return co_await when_free<object::PartInfo>(
        [&] { return uploads_.publish_part(upload->file, request, seal); });
  }
  async::Task<object::PartPage> list_parts(object::ListPartsRequest request) override {
    co_return co_await on_pool([&] { return uploads_.list_parts(request); });
  }
  async::Task<object::UploadPage> list_uploads(object::ListUploadsRequest request) override {
    co_return co_await on_pool([&] { return uploads_.list_uploads(request); });
  }
  async::Task<ObjectInfo> complete_upload(object::CompleteRequest request) override {
    co_return co_await when_free<ObjectInfo>([&] { return uploads_.complete(request); });
  }
  async::Task<void> abort_upload(object::ObjectName name, std::string upload_id) override {
    CO_TRY_VOID(co_await when_free<Uploads::Aborted>([&] { return uploads_.abort(name, upload_id); }));
    co_return base::Result<void>{};
  }

 private:
  /// Calls on the pool until something comes of it; waits in between without a thread.
  template <class T, class F>
  async::Task<T> when_free(F function) {
    const base::SteadyPoint deadline = std::chrono::steady_clock::now() + kUploadPatience;
    for (base::Duration pause = kUploadPollMin;; pause = std::min(pause * 2, kUploadPollMax)) {
      CO_TRY(auto done, co_await on_pool(function));
      if (done) co_return std::move(*done);
      if (std::chrono::steady_clock::now() >= deadline)
        co_return base::fail(base::Code::busy, "the upload is being completed", base::Scope::object,
                             base::Retry::later);
      async::SystemTimer timer;
      CO_TRY_VOID(co_await timer.sleep_for(pause));
    }
  }

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

  base::Result<ObjectInfo> copy_object(const object::CopyRequest& request) {
    for (int attempt = 0; attempt < kCopiesMax; ++attempt) {
      TRY(const Found source, objects_.find_patiently(request.source));
      TRY_VOID(check_copy_source(request.source_conditions, source.info));
      if (!source.file)
        return base::fail(base::Code::not_resident, "the source is on tape only", base::Scope::object);
      TRY(const base::File bucket, open_bucket(*space_, request.target.bucket));
      TRY(Temporary file, space_->make_temporary());
      const auto copied =
          copy_bytes(*space_, source.file.get(), {.offset = 0, .length = source.info.size}, file.get(), 0);
      TRY(const bool is_same, is_unchanged(*space_, source));
      if (!is_same) continue;
      TRY_VOID(copied);
      return objects_.publish(file, copy_info(request, source.info), request.target_conditions);
    }
    return base::fail(base::Code::busy, "the source changes while it is copied", base::Scope::object,
                      base::Retry::later);
  }

  static ObjectInfo copy_info(const object::CopyRequest& request, ObjectInfo info) {
    info.name = request.target;
    if (request.replace_attributes) info.attributes = *request.replace_attributes;
    if (request.storage_class) info.attributes.storage_class = *request.storage_class;
    return info;
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
  async::Task<ObjectInfo> put_small(object::PutRequest request, std::unique_ptr<UploadMemory> memory) {
    CO_TRY(ObjectInfo info, sealed_info(request));
    co_return co_await on_pool([&]() -> base::Result<ObjectInfo> {
      TRY_VOID(check_early(request.name, request.conditions));
      TRY(Temporary file, space_->make_temporary());
      TRY_VOID(write_half(space_->files(), file.get(), memory->filling, 0));
      return objects_.publish(file, std::move(info), request.conditions);
    });
  }

  /// Takes a source to its end into a temporary file, behind what its memory holds already. One half is
  /// written while the other is filled.
  async::Task<std::shared_ptr<Upload>> receive(object::ByteSource& source,
                                               std::unique_ptr<UploadMemory> memory) {
    CO_TRY(Temporary file, co_await on_pool([&] { return space_->make_temporary(); }));
    const auto upload = std::make_shared<Upload>(std::move(file), std::move(memory));
    while (upload->memory->filling.filled > 0) {
      CO_TRY(const std::shared_ptr<async::Waiter> running, start_write(upload));
      const auto filled = co_await fill_half(source, upload->memory->filling);
      CO_TRY_VOID(co_await finish_write(*upload, *running));
      CO_TRY_VOID(filled);
    }
    co_return upload;
  }

  base::Result<std::shared_ptr<async::Waiter>> start_write(const std::shared_ptr<Upload>& upload) {
    std::swap(upload->memory->filling, upload->memory->writing);
    auto end = std::make_shared<async::Waiter>();
    const bool accepted = space_->options().pool->post([upload, end, files = &space_->files()] {
      upload->outcome = write_half(*files, upload->file.get(), upload->memory->writing, upload->offset);
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
    upload.offset += upload.memory->writing.filled;
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
