#include "store/memory/memory_store.h"

#include <algorithm>

#include "store/memory/state.h"

namespace reelway::store::memory {

namespace {

using object::ObjectInfo;

class MemoryReader final : public object::Reader {
 public:
  MemoryReader(SharedVersion version, base::ByteRange range) : version_(std::move(version)), range_(range) {}
  const ObjectInfo& info() const override { return version_->info; }
  base::ByteRange range() const override { return range_; }
  async::Task<std::size_t> read(base::MutableBytes into) override {
    const std::size_t count = std::min<std::size_t>(into.size(), range_.length - done_);
    std::ranges::copy(base::ByteView(*version_->bytes).subspan(range_.offset + done_, count), into.begin());
    done_ += count;
    co_return count;
  }

 private:
  SharedVersion version_;
  base::ByteRange range_;
  std::uint64_t done_ = 0;
};

class MemoryStore final : public object::Store {
 public:
  explicit MemoryStore(const Options& options)
      : state_(options), multipart_(make_multipart(state_)), tiered_(make_tiered(state_)) {}
  object::Multipart* multipart() override { return multipart_.get(); }
  object::Tiered* tiered() override { return tiered_.get(); }

  async::Task<void> create_bucket(object::BucketInfo bucket) override {
    const std::lock_guard lock(state_.mutex);
    const std::string name = bucket.name;
    if (!state_.buckets.try_emplace(name, Bucket{std::move(bucket), {}}).second)
      co_return base::fail(base::Code::already_exists, "bucket " + name + " exists");
    co_return base::Result<void>{};
  }

  async::Task<object::BucketInfo> head_bucket(std::string bucket) override {
    const std::lock_guard lock(state_.mutex);
    CO_TRY(const Bucket* found, state_.bucket(bucket));
    co_return found->info;
  }

  async::Task<void> delete_bucket(std::string bucket) override {
    const std::lock_guard lock(state_.mutex);
    CO_TRY(const Bucket* found, state_.bucket(bucket));
    if (!found->objects.empty())
      co_return base::fail(base::Code::not_empty, "bucket " + bucket + " holds objects");
    std::erase_if(state_.uploads,
                  [&](const auto& upload) { return upload.second.info.name.bucket == bucket; });
    state_.buckets.erase(bucket);
    co_return base::Result<void>{};
  }

  async::Task<std::vector<object::BucketInfo>> list_buckets() override {
    const std::lock_guard lock(state_.mutex);
    std::vector<object::BucketInfo> all;
    for (const auto& [name, bucket] : state_.buckets) all.push_back(bucket.info);
    co_return all;
  }

  async::Task<ObjectInfo> head(object::HeadRequest request) override {
    const std::lock_guard lock(state_.mutex);
    CO_TRY(const SharedVersion found, state_.find(request.name));
    CO_TRY_VOID(object::check_read_conditions(request.conditions, found->info));
    co_return found->info;
  }

  async::Task<std::unique_ptr<object::Reader>> get(object::GetRequest request) override {
    const std::lock_guard lock(state_.mutex);
    CO_TRY(SharedVersion found, state_.find(request.name));
    CO_TRY_VOID(object::check_read_conditions(request.conditions, found->info));
    CO_TRY(const base::ByteRange range, object::requested_range(request, found->info));
    if (!found->bytes)
      co_return base::fail(base::Code::not_resident, "the object is on tape only", base::Scope::object);
    std::unique_ptr<object::Reader> reader = std::make_unique<MemoryReader>(std::move(found), range);
    co_return reader;
  }

  async::Task<ObjectInfo> put(object::PutRequest request, object::ByteSource& source) override {
    CO_TRY_VOID(check_bucket(request.name.bucket));
    CO_TRY(base::Bytes bytes, co_await read_everything(source));
    CO_TRY(object::Seal seal, request.seal());
    ObjectInfo info;
    info.name = std::move(request.name);
    info.attributes = std::move(request.attributes);
    info.etag = std::move(seal.etag);
    info.checksums = std::move(seal.checksums);
    const std::lock_guard lock(state_.mutex);
    co_return state_.publish(std::move(info), std::move(bytes), request.conditions);
  }

  async::Task<ObjectInfo> copy(object::CopyRequest request) override {
    const std::lock_guard lock(state_.mutex);
    CO_TRY(const SharedVersion source, state_.find(request.source));
    auto checked = object::check_read_conditions(request.source_conditions, source->info);
    if (!checked && checked.error().code == base::Code::not_modified)
      checked.error().code = base::Code::precondition_failed;
    CO_TRY_VOID(checked);
    if (!source->bytes)
      co_return base::fail(base::Code::not_resident, "the source is on tape only", base::Scope::object);
    ObjectInfo info = source->info;
    info.name = std::move(request.target);
    if (request.replace_attributes) info.attributes = std::move(*request.replace_attributes);
    if (request.storage_class) info.attributes.storage_class = *request.storage_class;
    co_return state_.publish(std::move(info), *source->bytes, request.target_conditions);
  }

  async::Task<bool> remove(object::RemoveRequest request) override {
    const std::lock_guard lock(state_.mutex);
    CO_TRY(Bucket * bucket, state_.bucket(request.name.bucket));
    const auto found = bucket->objects.find(request.name.key);
    const bool exists = found != bucket->objects.end();
    CO_TRY_VOID(object::check_write_conditions(request.conditions, exists ? &found->second->info : nullptr));
    if (exists) bucket->objects.erase(found);
    co_return exists;
  }

  async::Task<object::ListPage> list(object::ListRequest request) override {
    const std::lock_guard lock(state_.mutex);
    CO_TRY(const Bucket* bucket, state_.bucket(request.bucket));
    object::ListPage page;
    std::string last;
    for (auto it = bucket->objects.lower_bound(request.prefix);
         it != bucket->objects.end() && it->first.starts_with(request.prefix); ++it) {
      const std::size_t at = request.delimiter.empty()
                                 ? std::string::npos
                                 : it->first.find(request.delimiter, request.prefix.size());
      const bool is_common = at != std::string::npos;
      const std::string shown = is_common ? it->first.substr(0, at + request.delimiter.size()) : it->first;
      if (!request.start_after.empty() && shown <= request.start_after) continue;
      if (is_common && shown == last) continue;
      if (page.objects.size() + page.common_prefixes.size() == request.count_max) {
        page.truncated = request.count_max > 0;
        break;
      }
      last = shown;
      if (is_common) {
        page.common_prefixes.push_back(shown);
      } else {
        page.objects.push_back(it->second->info);
      }
    }
    if (page.truncated) page.next_start_after = last;
    co_return page;
  }

 private:
  base::Result<void> check_bucket(const std::string& name) {
    const std::lock_guard lock(state_.mutex);
    TRY_VOID(state_.bucket(name));
    return {};
  }

  State state_;
  std::unique_ptr<object::Multipart> multipart_;
  std::unique_ptr<object::Tiered> tiered_;
};

}  // namespace

base::Result<Bucket*> State::bucket(const std::string& name) {
  const auto found = buckets.find(name);
  if (found == buckets.end()) return object::bucket_not_found(name);
  return &found->second;
}

base::Result<SharedVersion> State::find(const object::ObjectName& name) {
  TRY(Bucket * holder, bucket(name.bucket));
  const auto found = holder->objects.find(name.key);
  if (found == holder->objects.end()) return object::object_not_found(name);
  return found->second;
}

base::Result<PendingUpload*> State::upload(const object::ObjectName& name, const std::string& id) {
  TRY_VOID(bucket(name.bucket));
  const auto found = uploads.find(id);
  if (found == uploads.end() || found->second.info.name != name) return object::upload_not_found(id);
  return &found->second;
}

void State::replace(const object::ObjectName& name, object::ObjectInfo info, SharedBytes bytes) {
  Version version{.info = std::move(info), .bytes = std::move(bytes), .identity = {}};
  version.info.residency = version.bytes ? object::Residency::resident : object::Residency::evicted;
  version.identity = {.generation = version.info.generation,
                      .inode = next_inode++,
                      .size = version.info.size,
                      .mtime = version.info.last_modified,
                      .ctime = options.clock->now()};
  buckets.at(name.bucket).objects[name.key] = std::make_shared<const Version>(std::move(version));
}

base::Result<object::ObjectInfo> State::publish(object::ObjectInfo info, base::Bytes bytes,
                                                const object::Conditions& conditions) {
  TRY(Bucket * holder, bucket(info.name.bucket));
  const auto current = holder->objects.find(info.name.key);
  TRY_VOID(object::check_write_conditions(
      conditions, current == holder->objects.end() ? nullptr : &current->second->info));
  info.size = bytes.size();
  info.last_modified = options.clock->now();
  info.generation = base::make_ulid(*options.clock, *options.rng);
  info.residency = object::Residency::resident;
  replace(info.name, info, std::make_shared<const base::Bytes>(std::move(bytes)));
  return info;
}

async::Task<base::Bytes> read_everything(object::ByteSource& source) {
  constexpr std::size_t kStepBytes = 64 * base::kKiB;
  base::Bytes bytes;
  for (;;) {
    const std::size_t start = bytes.size();
    bytes.resize(start + kStepBytes);
    CO_TRY(const std::size_t count,
           co_await object::read_full(source, base::MutableBytes(bytes).subspan(start)));
    bytes.resize(start + count);
    if (count < kStepBytes) co_return bytes;
  }
}

std::unique_ptr<object::Store> make_memory_store(const Options& options) {
  return std::make_unique<MemoryStore>(options);
}

}  // namespace reelway::store::memory
