#pragma once
// A file system in memory that is as unkind as the contract of base::Files lets it be. What was not synced
// may be lost, torn or reordered at crash(seed): file bytes by 4 KiB pieces, attributes and times one by one,
// names by whole directory operations. Syncing a file does not save its name; syncing a folder saves its
// entries, not what they name. Faults: the n-th call fails, or the power goes off after it (every later call
// then fails with EIO and changes nothing). `before_call` lets a test be the other process that acts in
// between.

#include <fcntl.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/rng.h"

namespace reelway::testing {

class ForgetfulFiles final : public base::Files {
 public:
  explicit ForgetfulFiles(base::Clock& clock);

  std::uint64_t call_count() const;
  /// Calls are counted from 0 again, and all plans are dropped.
  void reset_plan();
  void fail_call(std::uint64_t index, int error);
  void power_off_after(std::uint64_t count);
  void before_call(std::uint64_t index, std::function<void()> act);
  /// The n-th sync from now says that it was done, and does nothing: a rule that needs it must break.
  void ignore_sync(std::uint64_t index);
  std::uint64_t sync_count() const;
  /// Every open descriptor, lock and lease is gone; what was not synced may be gone. Power is on again.
  void crash(std::uint64_t seed);
  /// Writes fail with ENOSPC once the files hold more than this.
  void limit_bytes(std::uint64_t bytes);
  void set_magic(std::uint64_t magic) { magic_ = magic; }
  /// Any attribute call on names with this prefix is refused with EPERM ("trusted.").
  void refuse_attributes(std::string prefix) { refused_prefix_ = std::move(prefix); }
  /// Calls by name, for tests of cost.
  std::map<std::string, std::uint64_t> calls_by_name() const;
  std::size_t open_count() const;

  base::Io<base::File> open_root(const std::string& path) override;
  base::Io<base::File> open(int folder, const std::string& path, int flags, std::uint32_t mode) override;
  base::Io<base::File> open_unnamed(int folder, std::uint32_t mode) override;
  base::Io<void> link_unnamed(int file, int folder, const std::string& name) override;
  void close(int descriptor) override;
  base::Io<std::size_t> read(int file, base::MutableBytes into, std::uint64_t offset) override;
  base::Io<std::size_t> read_cached(int file, base::MutableBytes into, std::uint64_t offset) override;
  base::Io<void> write(int file, base::ByteView bytes, std::uint64_t offset) override;
  base::Io<void> truncate(int file, std::uint64_t size) override;
  base::Io<void> clone_range(int from, std::uint64_t from_offset, int to, std::uint64_t to_offset,
                             std::uint64_t length) override;
  base::Io<std::uint64_t> copy_range(int from, std::uint64_t from_offset, int to, std::uint64_t to_offset,
                                     std::uint64_t length) override;
  base::Io<void> sync(int descriptor) override;
  base::Io<void> sync_file_system(int descriptor) override;
  base::Io<base::FileStatus> status(int descriptor) override;
  base::Io<base::FileStatus> status_at(int folder, const std::string& name) override;
  base::Io<void> set_owner(int file, std::uint32_t user, std::uint32_t group) override;
  base::Io<void> set_mode(int file, std::uint32_t mode) override;
  base::Io<void> set_times(int file, base::TimePoint accessed, base::TimePoint modified) override;
  base::Io<base::Bytes> attribute(int file, const std::string& name) override;
  base::Io<void> set_attribute(int file, const std::string& name, base::ByteView value) override;
  base::Io<void> remove_attribute(int file, const std::string& name) override;
  base::Io<std::vector<std::string>> attribute_names(int file) override;
  base::Io<void> make_folder(int folder, const std::string& name, std::uint32_t mode) override;
  base::Io<void> link(int from_folder, const std::string& from, int to_folder,
                      const std::string& to) override;
  base::Io<void> rename(int from_folder, const std::string& from, int to_folder, const std::string& to,
                        base::RenameMode mode) override;
  base::Io<void> unlink(int folder, const std::string& name) override;
  base::Io<void> remove_folder(int folder, const std::string& name) override;
  base::Io<void> make_link(const std::string& text, int folder, const std::string& name) override;
  base::Io<std::string> read_link(int folder, const std::string& name) override;
  base::Io<std::vector<base::FolderEntry>> entries(int folder) override;
  base::Io<base::LockOutcome> try_lock_byte(int file, std::uint64_t offset, base::LockMode mode) override;
  base::Io<void> set_lease(int file, base::Lease lease) override;
  base::Io<base::Lease> lease(int file) override;
  base::Io<std::uint64_t> file_system_magic(int descriptor) override;

 private:
  using Id = std::uint64_t;

  /// What a sync of the inode itself makes durable.
  struct State {
    base::Bytes data;
    std::map<std::string, base::Bytes> attributes;
    std::uint32_t mode = 0;
    std::uint32_t user = 0;
    std::uint32_t group = 0;
    base::TimePoint accessed{};
    base::TimePoint modified{};
  };
  struct Piece {  ///< a write, or a truncation to `offset` when it has no bytes
    std::uint64_t offset = 0;
    base::Bytes bytes;
  };
  struct Inode {
    State now;
    State durable;
    std::vector<Piece> pending;
    base::TimePoint changed{};
    bool freed_early =
        false;  ///< its last name went while its last move was not synced: its blocks may be used again
    std::string link_text;
    std::map<std::string, Id> entries;
    std::map<std::string, Id> durable_entries;
  };
  struct Change {
    Id folder = 0;
    std::string name;
    std::optional<Id> before;
    std::optional<Id> after;
  };
  using Operation = std::vector<Change>;
  struct Open {
    Id inode = 0;
    int flags = 0;
    base::Lease lease = base::Lease::none;
    bool lease_broken = false;
  };

  std::optional<int> enter(const char* name);
  Inode* inode_of(int descriptor);
  Inode* folder_of(int descriptor);
  std::optional<Id> find(Id folder, const std::string& name);
  base::Io<Id> walk(Id from, const std::string& path, std::string& last);
  base::Io<base::File> open_inode(Id id, int flags);
  Id add_inode(std::uint32_t mode);
  base::Io<void> apply(Operation operation);
  static void apply_durably(std::map<Id, Inode>& inodes, const Operation& operation);
  void commit_folder(Id folder);
  void commit_inode(Inode& inode);
  std::uint32_t link_count(Id id) const;
  std::uint64_t used_bytes() const;
  base::FileStatus status_of(Id id);
  base::Io<void> write_locked(Inode& inode, base::ByteView bytes, std::uint64_t offset);
  void forget(Inode& inode, base::Rng& rng, int kindness);
  void drop_unreachable();

  mutable std::mutex mutex_;
  base::Clock& clock_;
  std::map<Id, Inode> inodes_;
  std::map<int, Open> open_;
  std::vector<Operation> pending_;
  struct Lock {
    Id inode = 0;
    std::uint64_t offset = 0;
    int descriptor = -1;
    base::LockMode mode{};
  };
  std::vector<Lock> locks_;
  std::map<std::string, std::uint64_t> by_name_;
  Id next_inode_ = 2;
  int next_descriptor_ = 1'000'000;
  std::uint64_t calls_ = 0;
  std::map<std::uint64_t, int> failures_;
  std::map<std::uint64_t, std::function<void()>> acts_;
  std::uint64_t syncs_ = 0;
  std::optional<std::uint64_t> ignored_sync_;
  std::optional<std::uint64_t> power_off_;
  std::optional<std::uint64_t> byte_limit_;
  std::uint64_t magic_ = 0xef53;
  std::string refused_prefix_;
};

}  // namespace reelway::testing
