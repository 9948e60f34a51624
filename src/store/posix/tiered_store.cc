#include "store/posix/tiered_store.h"

#include <algorithm>

#include "base/checksum.h"

namespace reelway::store::posix {

namespace {

using base::in_context;

class FileArchiveReader final : public object::ArchiveReader {
 public:
  FileArchiveReader(Space& space, Tier& tier, Tier::OpenedForArchive opened)
      : space_(space), tier_(tier), opened_(std::move(opened)) {}
  const object::ObjectInfo& info() const override { return opened_.found.info; }
  const object::Identity& identity() const override { return opened_.identity; }
  std::optional<std::uint64_t> length() const override { return info().size; }

  async::Task<std::size_t> read(base::MutableBytes into) override {
    const std::uint64_t left = info().size - position_;
    if (left == 0) co_return 0;
    if (into.size() > left) into = into.first(left);
    CO_TRY(const std::size_t count,
           co_await async::offload(*space_.options().pool, [&] { return read_leased(into); }));
    position_ += count;
    co_return count;
  }

  async::Task<object::Identity> confirm_unchanged() override {
    co_return co_await async::offload(*space_.options().pool,
                                      [&] { return tier_.confirm_unchanged(opened_); });
  }

 private:
  /// A writer that opens the file waits until the lease goes, so it is looked at before each read.
  base::Result<std::size_t> read_leased(base::MutableBytes into) {
    TRY_VOID(tier_.check_lease(opened_));
    TRY(const std::size_t count,
        in_context(space_.files().read(opened_.found.file.get(), into, position_), "read an object"));
    if (count == 0)
      return base::fail(base::Code::data_loss, "the file was cut short while it was read",
                        base::Scope::object);
    return count;
  }

  Space& space_;
  Tier& tier_;
  Tier::OpenedForArchive opened_;
  std::uint64_t position_ = 0;
};

class FileLanding final : public object::LandingFile {
 public:
  FileLanding(Space& space, std::shared_ptr<const Tier::Recall> recall)
      : space_(space), recall_(std::move(recall)) {}
  async::Task<std::size_t> read(std::uint64_t offset, base::MutableBytes into) override {
    co_return co_await async::offload(*space_.options().pool, [&]() -> base::Result<std::size_t> {
      return in_context(space_.files().read(recall_->file.get(), into, offset), "read a landing file");
    });
  }

 private:
  Space& space_;
  std::shared_ptr<const Tier::Recall> recall_;
};

class FileRecallWriter final : public object::RecallWriter {
 public:
  FileRecallWriter(Space& space, Tier& tier, Tier::Recall recall)
      : space_(space),
        tier_(tier),
        recall_(std::make_shared<Tier::Recall>(std::move(recall))),
        sha256_(base::make_hasher(base::ChecksumKind::sha256)) {}

  std::shared_ptr<object::LandingFile> file() override {
    return std::make_shared<FileLanding>(space_, recall_);
  }

  async::Task<void> write(base::ByteView bytes) override {
    co_return co_await async::offload(*space_.options().pool, [&]() -> base::Result<void> {
      TRY_VOID(
          in_context(space_.files().write(recall_->file.get(), bytes, position_), "write a recalled file"));
      position_ += bytes.size();
      sha256_->update(bytes);
      crc64_ = base::crc64nvme(crc64_, bytes);
      return {};
    });
  }

  async::Task<object::Identity> commit(const object::Checksum& expected) override {
    CO_TRY_VOID(check(expected));
    co_return co_await async::offload(*space_.options().pool, [&] { return tier_.commit_recall(*recall_); });
  }

 private:
  base::Result<void> check(const object::Checksum& expected) {
    base::Bytes actual;
    if (expected.kind == base::ChecksumKind::sha256) {
      actual = sha256_->digest();
    } else if (expected.kind == base::ChecksumKind::crc64nvme) {
      for (int shift = 56; shift >= 0; shift -= 8) actual.push_back(static_cast<std::byte>(crc64_ >> shift));
    } else {
      return base::fail(base::Code::invalid_argument, "a recall is checked by SHA-256 or CRC64NVME");
    }
    if (actual != expected.value)
      return base::fail(base::Code::checksum_mismatch, "the recalled bytes fail their checksum",
                        base::Scope::object);
    return {};
  }

  Space& space_;
  Tier& tier_;
  std::shared_ptr<Tier::Recall> recall_;  ///< its file is shared with readers
  std::uint64_t position_ = 0;
  std::unique_ptr<base::Hasher> sha256_;
  std::uint64_t crc64_ = 0;
};

}  // namespace

async::Task<std::vector<object::TierEntry>> TieredStore::scan(std::string bucket, std::string prefix,
                                                              std::string start_after,
                                                              std::size_t count_max) {
  co_return co_await async::offload(*space_.options().pool,
                                    [&] { return tier_.scan(bucket, prefix, start_after, count_max); });
}

async::Task<std::unique_ptr<object::ArchiveReader>> TieredStore::open_for_archive(object::ObjectName name) {
  CO_TRY(Tier::OpenedForArchive opened,
         co_await async::offload(*space_.options().pool, [&] { return tier_.open_for_archive(name); }));
  std::unique_ptr<object::ArchiveReader> reader =
      std::make_unique<FileArchiveReader>(space_, tier_, std::move(opened));
  co_return reader;
}

async::Task<object::Identity> TieredStore::evict(object::ObjectName name, object::Identity archived) {
  co_return co_await async::offload(*space_.options().pool, [&] { return tier_.evict(name, archived); });
}

async::Task<std::unique_ptr<object::RecallWriter>> TieredStore::begin_recall(object::ObjectName name,
                                                                             std::string generation) {
  CO_TRY(Tier::Recall recall, co_await async::offload(*space_.options().pool,
                                                      [&] { return tier_.begin_recall(name, generation); }));
  std::unique_ptr<object::RecallWriter> writer =
      std::make_unique<FileRecallWriter>(space_, tier_, std::move(recall));
  co_return writer;
}

async::Task<void> TieredStore::create_stub(object::ObjectInfo info) {
  co_return co_await async::offload(*space_.options().pool, [&] { return tier_.create_stub(info); });
}

async::Task<std::vector<object::Conflict>> TieredStore::recover() {
  co_return co_await async::offload(*space_.options().pool, [&] { return tier_.recover(); });
}

}  // namespace reelway::store::posix
