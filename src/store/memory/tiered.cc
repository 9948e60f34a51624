#include <algorithm>

#include "store/memory/state.h"

namespace reelway::store::memory {

namespace {

base::Error changed(const char* what) {
  return base::fail(base::Code::precondition_failed, what, base::Scope::object);
}

class MemoryArchiveReader final : public object::ArchiveReader {
 public:
  MemoryArchiveReader(State& state, SharedVersion version) : state_(state), version_(std::move(version)) {}
  const object::ObjectInfo& info() const override { return version_->info; }
  const object::Identity& identity() const override { return version_->identity; }
  std::optional<std::uint64_t> length() const override { return info().size; }
  async::Task<std::size_t> read(base::MutableBytes into) override {
    const std::size_t count = std::min<std::size_t>(into.size(), info().size - done_);
    std::ranges::copy(base::ByteView(*version_->bytes).subspan(done_, count), into.begin());
    done_ += count;
    co_return count;
  }
  async::Task<object::Identity> confirm_unchanged() override {
    const std::lock_guard lock(state_.mutex);
    const auto now = state_.find(info().name);
    if (!now || *now != version_) co_return changed("the object was replaced while it was archived");
    co_return version_->identity;
  }

 private:
  State& state_;
  SharedVersion version_;
  std::size_t done_ = 0;
};

class MemoryLanding final : public object::LandingFile {
 public:
  async::Task<std::size_t> read(std::uint64_t offset, base::MutableBytes into) override {
    const std::lock_guard lock(mutex_);
    const std::size_t count =
        std::min<std::size_t>(into.size(), bytes_.size() - std::min(offset, bytes_.size()));
    std::ranges::copy(base::ByteView(bytes_).subspan(offset, count), into.begin());
    co_return count;
  }
  void append(base::ByteView bytes) {
    const std::lock_guard lock(mutex_);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  /// For the writer, which alone changes them.
  const base::Bytes& bytes() const { return bytes_; }

 private:
  std::mutex mutex_;
  base::Bytes bytes_;
};

class MemoryRecallWriter final : public object::RecallWriter {
 public:
  MemoryRecallWriter(State& state, SharedVersion stub) : state_(state), stub_(std::move(stub)) {}
  std::shared_ptr<object::LandingFile> file() override { return landing_; }
  async::Task<void> write(base::ByteView bytes) override {
    landing_->append(bytes);
    co_return base::Result<void>{};
  }
  async::Task<object::Identity> commit(const object::Checksum& expected) override {
    if (expected.kind != base::ChecksumKind::sha256 && expected.kind != base::ChecksumKind::crc64nvme)
      co_return base::fail(base::Code::invalid_argument, "a recall is checked by SHA-256 or CRC64NVME");
    const base::Bytes& bytes = landing_->bytes();
    if (bytes.size() != stub_->info.size || base::digest_of(expected.kind, bytes) != expected.value)
      co_return base::fail(base::Code::checksum_mismatch, "the recalled bytes fail their checksum",
                           base::Scope::object);
    const std::lock_guard lock(state_.mutex);
    const auto now = state_.find(stub_->info.name);
    if (!now || *now != stub_) co_return changed("the key is not the recorded stub any more");
    state_.replace(stub_->info.name, stub_->info, std::make_shared<const base::Bytes>(bytes));
    co_return (*state_.find(stub_->info.name))->identity;
  }

 private:
  State& state_;
  SharedVersion stub_;
  std::shared_ptr<MemoryLanding> landing_ = std::make_shared<MemoryLanding>();
};

class MemoryTiered final : public object::Tiered {
 public:
  explicit MemoryTiered(State& state) : state_(state) {}

  async::Task<std::vector<object::TierEntry>> scan(std::string bucket, std::string prefix,
                                                   std::string start_after, std::size_t count_max) override {
    const std::lock_guard lock(state_.mutex);
    CO_TRY(const Bucket* found, state_.bucket(bucket));
    std::vector<object::TierEntry> entries;
    auto it = start_after.empty() ? found->objects.begin() : found->objects.upper_bound(start_after);
    for (; it != found->objects.end() && entries.size() < count_max; ++it) {
      if (it->first.starts_with(prefix))
        entries.push_back({.info = it->second->info, .identity = it->second->identity});
    }
    co_return entries;
  }

  async::Task<std::unique_ptr<object::ArchiveReader>> open_for_archive(object::ObjectName name) override {
    const std::lock_guard lock(state_.mutex);
    CO_TRY(SharedVersion version, state_.find(name));
    if (!version->bytes)
      co_return base::fail(base::Code::not_resident, "the object is evicted", base::Scope::object);
    if (state_.options.clock->now() < version->identity.ctime + state_.options.settle)
      co_return base::fail(base::Code::busy, "the object changed a moment ago", base::Scope::object,
                           base::Retry::later);
    std::unique_ptr<object::ArchiveReader> reader =
        std::make_unique<MemoryArchiveReader>(state_, std::move(version));
    co_return reader;
  }

  async::Task<object::Identity> evict(object::ObjectName name, object::Identity archived) override {
    const std::lock_guard lock(state_.mutex);
    CO_TRY(const SharedVersion version, state_.find(name));
    if (!version->bytes || version->identity != archived)
      co_return changed("the object is not the one that was archived");
    state_.replace(name, version->info, nullptr);
    co_return (*state_.find(name))->identity;
  }

  async::Task<std::unique_ptr<object::RecallWriter>> begin_recall(object::ObjectName name,
                                                                  std::string generation) override {
    const std::lock_guard lock(state_.mutex);
    CO_TRY(SharedVersion version, state_.find(name));
    if (version->bytes || version->info.generation != generation)
      co_return changed("the key is not the stub of that generation");
    std::unique_ptr<object::RecallWriter> writer =
        std::make_unique<MemoryRecallWriter>(state_, std::move(version));
    co_return writer;
  }

  async::Task<void> create_stub(object::ObjectInfo info) override {
    const std::lock_guard lock(state_.mutex);
    CO_TRY(const Bucket* bucket, state_.bucket(info.name.bucket));
    if (bucket->objects.contains(info.name.key))
      co_return base::fail(base::Code::already_exists, "the key is taken", base::Scope::object);
    const object::ObjectName name = info.name;
    state_.replace(name, std::move(info), nullptr);
    co_return base::Result<void>{};
  }

  async::Task<std::vector<object::Conflict>> recover() override { co_return std::vector<object::Conflict>{}; }

 private:
  State& state_;
};

}  // namespace

std::unique_ptr<object::Tiered> make_tiered(State& state) { return std::make_unique<MemoryTiered>(state); }

}  // namespace reelway::store::memory
