#pragma once
// The blocking core of the POSIX store on the file system that forgets, for tests that stop it between any
// two of its file calls.

#include <fcntl.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "store/posix/buckets.h"
#include "store/posix/tier.h"
#include "store/posix/uploads.h"
#include "testing/forgetful_files.h"

namespace reelway::store::posix {

inline const std::string kBytes(9000, 'b');
inline const std::string kOldBytes(5000, 'o');

/// One machine. A reboot loses the processes and whatever was not synced.
class Machine {
 public:
  explicit Machine(Durability durability = Durability::full) : durability_(durability) {
    boot();
    EXPECT_TRUE(buckets_->create({.name = "bucket", .created = {}, .owner = "owner", .region = "r"}));
  }

  void boot() {
    objects_.reset();
    Options options{.root = "/",
                    .durability = durability_,
                    .lock_patience = lock_patience_,
                    .settle = {},
                    .files = &files_,
                    .clock = &clock_,
                    .rng = &rng_,
                    .log = &base::null_log()};
    auto space = Space::create(options);
    ASSERT_TRUE(space) << to_string(space.error());
    space_ = std::move(*space);
    locks_ = std::make_unique<KeyLocks>(*space_);
    objects_ = std::make_unique<Objects>(*space_, *locks_);
    cache_ = std::make_unique<FolderCache>(*space_);
    buckets_ = std::make_unique<Buckets>(*space_, *locks_);
    uploads_ = std::make_unique<Uploads>(*space_, *locks_, *objects_);
    tier_ = std::make_unique<Tier>(*space_, *objects_, *cache_);
  }
  /// From here on nobody waits for a lock: a test that acts between two calls would wait for itself.
  void impatient() {
    lock_patience_ = {};
    boot();
  }
  void crash(std::uint64_t seed) {
    files_.crash(seed);
    files_.reset_plan();
    boot();
    auto conflicts = tier_->recover();
    ASSERT_TRUE(conflicts) << to_string(conflicts.error());
    EXPECT_TRUE(conflicts->empty());
  }
  void rest() {
    clock_.advance(std::chrono::seconds{5});
    ASSERT_TRUE(files_.sync_file_system(space_->root()));
    files_.reset_plan();
  }

  base::Result<object::ObjectInfo> put(const std::string& key, const std::string& bytes,
                                       const std::string& etag, std::size_t user_bytes = 0) {
    TRY(Temporary file, space_->make_temporary());
    TRY_VOID(base::in_context(files_.write(file.get(), base::as_bytes(bytes), 0), "write"));
    object::ObjectInfo info;
    info.name = {"bucket", key};
    info.etag = etag;
    if (user_bytes > 0) info.attributes.user["big"] = std::string(user_bytes, 'u');
    return objects_->publish(file, std::move(info), {});
  }
  /// "" for no object; "evicted"; else the content, checked to be what its ETag says.
  std::string state(const std::string& key) {
    auto found = objects_->find({"bucket", key});
    if (!found) {
      EXPECT_TRUE(object::is_object_not_found(found.error())) << to_string(found.error());
      return "";
    }
    if (!found->file) return "evicted " + found->info.etag + (found->inode ? "" : " without its inode");
    std::string bytes(found->info.size + 1, '\0');
    const auto count = files_.read(found->file.get(), std::as_writable_bytes(std::span(bytes)), 0);
    EXPECT_TRUE(count);
    bytes.resize(count.value_or(0));
    return found->info.etag + " " + bytes;
  }
  base::Result<object::Identity> archive(const std::string& key) {
    TRY(const Tier::OpenedForArchive opened, tier_->open_for_archive({"bucket", key}));
    return tier_->confirm_unchanged(opened);
  }
  base::Result<object::Identity> recall(const std::string& key, const std::string& bytes) {
    TRY(const Found found, objects_->find({"bucket", key}));
    TRY(Tier::Recall recall, tier_->begin_recall({"bucket", key}, found.info.generation));
    TRY_VOID(base::in_context(files_.write(recall.file.get(), base::as_bytes(bytes), 0), "write"));
    return tier_->commit_recall(recall);
  }
  /// Of the only upload there is; empty for none.
  std::string upload_id() {
    const auto page = uploads_->list_uploads(
        {.bucket = "bucket", .prefix = {}, .delimiter = {}, .key_marker = {}, .upload_id_marker = {}});
    return page && !page->uploads.empty() ? page->uploads[0].upload_id : "";
  }
  std::size_t count_entries(int folder) {
    return files_.entries(folder).value_or(std::vector<base::FolderEntry>(99)).size();
  }
  /// Another process, which knows nothing of us.
  base::Io<void> posix_write(const std::string& path, const std::string& bytes) {
    auto file = files_.open(space_->root(), path, O_WRONLY | O_CREAT, 0644);
    if (!file) return std::unexpected(file.error());
    return files_.write(file->get(), base::as_bytes(bytes), 0);
  }

  base::ManualClock clock_;
  base::SeededRng rng_{1};
  testing::ForgetfulFiles files_{clock_};
  Durability durability_;
  base::Duration lock_patience_ = std::chrono::seconds{30};
  std::unique_ptr<Space> space_;
  std::unique_ptr<KeyLocks> locks_;
  std::unique_ptr<FolderCache> cache_;
  std::unique_ptr<Objects> objects_;
  std::unique_ptr<Buckets> buckets_;
  std::unique_ptr<Uploads> uploads_;
  std::unique_ptr<Tier> tier_;
};

}  // namespace reelway::store::posix
