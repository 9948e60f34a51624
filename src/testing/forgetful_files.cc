#include "testing/forgetful_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace reelway::testing {

namespace {

constexpr std::uint64_t kRoot = 1;
constexpr std::size_t kPieceBytes = 4096;
constexpr std::size_t kAttributeBytesMax = 4000;  // ext4 keeps all attributes of a file in one block

bool is_writable(int flags) { return (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_RDONLY; }

}  // namespace

// Gives the error, or an empty optional-like success: used at the top of each call, with the mutex held.
#define ENTER(name)                                              \
  std::unique_lock lock(mutex_);                                 \
  if (const auto act = acts_.find(calls_); act != acts_.end()) { \
    const auto run = std::move(act->second);                     \
    acts_.erase(act);                                            \
    lock.unlock();                                               \
    run();                                                       \
    lock.lock();                                                 \
  }                                                              \
  if (const auto error = enter(name)) return std::unexpected(*error)

ForgetfulFiles::ForgetfulFiles(base::Clock& clock) : clock_(clock) {
  Inode root;
  root.now.mode = root.durable.mode = S_IFDIR | 0755;
  inodes_.emplace(kRoot, std::move(root));
}

std::optional<int> ForgetfulFiles::enter(const char* name) {
  const std::uint64_t index = calls_++;
  ++by_name_[name];
  if (power_off_ && index >= *power_off_) return EIO;
  if (const auto failure = failures_.find(index); failure != failures_.end()) return failure->second;
  return std::nullopt;
}

std::uint64_t ForgetfulFiles::call_count() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}
void ForgetfulFiles::reset_plan() {
  const std::lock_guard lock(mutex_);
  calls_ = 0;
  by_name_.clear();
  failures_.clear();
  acts_.clear();
  power_off_.reset();
  byte_limit_.reset();
  syncs_ = 0;
  ignored_sync_.reset();
}
void ForgetfulFiles::ignore_sync(std::uint64_t index) {
  const std::lock_guard lock(mutex_);
  ignored_sync_ = syncs_ + index;
}
std::uint64_t ForgetfulFiles::sync_count() const {
  const std::lock_guard lock(mutex_);
  return syncs_;
}
void ForgetfulFiles::fail_call(std::uint64_t index, int error) {
  const std::lock_guard lock(mutex_);
  failures_[index] = error;
}
void ForgetfulFiles::power_off_after(std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  power_off_ = count;
}
void ForgetfulFiles::before_call(std::uint64_t index, std::function<void()> act) {
  const std::lock_guard lock(mutex_);
  acts_[index] = std::move(act);
}
void ForgetfulFiles::limit_bytes(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  byte_limit_ = bytes;
}
std::map<std::string, std::uint64_t> ForgetfulFiles::calls_by_name() const {
  const std::lock_guard lock(mutex_);
  return by_name_;
}
std::size_t ForgetfulFiles::open_count() const {
  const std::lock_guard lock(mutex_);
  return open_.size();
}

void ForgetfulFiles::crash(std::uint64_t seed) {
  const std::lock_guard lock(mutex_);
  base::SeededRng rng(seed);
  // 0: only what was synced survives; 1: everything does; 2: names as a journal keeps them, a prefix; 3: any
  // of them.
  const int kindness = static_cast<int>(seed % 4);
  std::size_t keep = kindness == 0 ? 0 : pending_.size();
  if (kindness == 2) keep = rng.below(pending_.size() + 1);
  for (std::size_t i = 0; i < keep; ++i) {
    if (kindness == 3 && rng.below(2) == 0) continue;
    apply_durably(inodes_, pending_[i]);
  }
  pending_.clear();
  for (auto& [id, inode] : inodes_) forget(inode, rng, kindness);
  open_.clear();
  locks_.clear();
  failures_.clear();
  acts_.clear();
  power_off_.reset();
  byte_limit_.reset();
  drop_unreachable();
}

void ForgetfulFiles::forget(Inode& inode, base::Rng& rng, int kindness) {
  if (kindness == 3 && std::exchange(inode.freed_early, false)) inode.durable.data.clear();
  const auto survives = [&] { return kindness == 1 || (kindness != 0 && rng.below(2) == 0); };
  base::Bytes& data = inode.durable.data;
  for (const Piece& piece : inode.pending) {
    if (piece.bytes.empty()) {
      if (survives()) data.resize(piece.offset);
      continue;
    }
    for (std::size_t start = 0; start < piece.bytes.size(); start += kPieceBytes) {
      if (!survives()) continue;
      const std::size_t count = std::min(kPieceBytes, piece.bytes.size() - start);
      const std::size_t at = piece.offset + start;
      if (data.size() < at + count) data.resize(at + count);
      std::copy_n(piece.bytes.begin() + static_cast<std::ptrdiff_t>(start), count,
                  data.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  inode.pending.clear();
  for (const auto& [name, value] : inode.now.attributes) {
    if (survives()) inode.durable.attributes[name] = value;
  }
  if (survives()) inode.durable.modified = inode.now.modified;
  if (survives()) inode.durable.mode = inode.now.mode;
  inode.now = inode.durable;
  inode.entries = inode.durable_entries;
}

void ForgetfulFiles::drop_unreachable() {
  std::set<Id> reached{kRoot};
  std::vector<Id> queue{kRoot};
  while (!queue.empty()) {
    const Id id = queue.back();
    queue.pop_back();
    for (const auto& [name, child] : inodes_.at(id).entries) {
      if (reached.insert(child).second) queue.push_back(child);
    }
  }
  std::erase_if(inodes_, [&](const auto& entry) { return !reached.contains(entry.first); });
}

void ForgetfulFiles::apply_durably(std::map<Id, Inode>& inodes, const Operation& operation) {
  for (const Change& change : operation) {
    const auto folder = inodes.find(change.folder);
    if (folder == inodes.end()) return;
    const auto entry = folder->second.durable_entries.find(change.name);
    const auto state =
        entry == folder->second.durable_entries.end() ? std::nullopt : std::optional(entry->second);
    if (state != change.before) return;
  }
  for (const Change& change : operation) {
    auto& entries = inodes.at(change.folder).durable_entries;
    if (change.after) {
      entries[change.name] = *change.after;
    } else {
      entries.erase(change.name);
    }
  }
}

void ForgetfulFiles::commit_folder(Id folder) {
  // What touches the folder, and whatever earlier touched the same names elsewhere.
  std::vector<bool> chosen(pending_.size());
  std::set<std::pair<Id, std::string>> names;
  for (std::size_t i = pending_.size(); i-- > 0;) {
    const bool touches = std::ranges::any_of(pending_[i], [&](const Change& change) {
      return change.folder == folder || names.contains({change.folder, change.name});
    });
    if (!touches) continue;
    chosen[i] = true;
    for (const Change& change : pending_[i]) names.insert({change.folder, change.name});
  }
  std::vector<Operation> rest;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (chosen[i]) {
      apply_durably(inodes_, pending_[i]);
    } else {
      rest.push_back(std::move(pending_[i]));
    }
  }
  pending_ = std::move(rest);
}

void ForgetfulFiles::commit_inode(Inode& inode) {
  inode.durable = inode.now;
  inode.pending.clear();
}

ForgetfulFiles::Inode* ForgetfulFiles::inode_of(int descriptor) {
  const auto found = open_.find(descriptor);
  return found == open_.end() ? nullptr : &inodes_.at(found->second.inode);
}

ForgetfulFiles::Inode* ForgetfulFiles::folder_of(int descriptor) {
  Inode* inode = inode_of(descriptor);
  return inode != nullptr && S_ISDIR(inode->now.mode) ? inode : nullptr;
}

std::optional<ForgetfulFiles::Id> ForgetfulFiles::find(Id folder, const std::string& name) {
  const auto& entries = inodes_.at(folder).entries;
  const auto found = entries.find(name);
  return found == entries.end() ? std::nullopt : std::optional(found->second);
}

std::uint32_t ForgetfulFiles::link_count(Id id) const {
  std::uint32_t count = 0;
  for (const auto& [folder, inode] : inodes_) {
    for (const auto& [name, child] : inode.entries) count += child == id;
  }
  return count;
}

std::uint64_t ForgetfulFiles::used_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [id, inode] : inodes_) bytes += inode.now.data.size();
  return bytes;
}

base::FileStatus ForgetfulFiles::status_of(Id id) {
  const Inode& inode = inodes_.at(id);
  return {.mode = inode.now.mode,
          .user = inode.now.user,
          .group = inode.now.group,
          .link_count = link_count(id),
          .device = 1,
          .inode = id,
          .size = S_ISLNK(inode.now.mode) ? inode.link_text.size() : inode.now.data.size(),
          .accessed = inode.now.accessed,
          .modified = inode.now.modified,
          .changed = inode.changed};
}

ForgetfulFiles::Id ForgetfulFiles::add_inode(std::uint32_t mode) {
  Inode inode;
  inode.now.mode = inode.durable.mode = mode;
  inode.now.modified = inode.now.accessed = inode.durable.modified = inode.changed = clock_.now();
  inodes_.emplace(next_inode_, std::move(inode));
  return next_inode_++;
}

base::Io<void> ForgetfulFiles::apply(Operation operation) {
  for (const Change& change : operation) {
    const bool is_removed = change.folder != kRoot && link_count(change.folder) == 0;
    if (is_removed) return std::unexpected(ENOENT);
  }
  for (const Change& change : operation) {
    auto& folder = inodes_.at(change.folder);
    if (change.after) {
      folder.entries[change.name] = *change.after;
      inodes_.at(*change.after).changed = clock_.now();
    } else {
      folder.entries.erase(change.name);
    }
    if (change.before && inodes_.contains(*change.before)) inodes_.at(*change.before).changed = clock_.now();
    folder.now.modified = folder.changed = clock_.now();
  }
  pending_.push_back(std::move(operation));
  return {};
}

/// The folder that holds the last name of the path, and that name (empty for the starting folder itself).
base::Io<ForgetfulFiles::Id> ForgetfulFiles::walk(Id from, const std::string& path, std::string& last) {
  Id folder = from;
  std::vector<Id> trail;
  last.clear();
  std::size_t start = 0;
  while (start <= path.size()) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    std::string name = path.substr(start, end - start);
    start = end + 1;
    if (name.empty() || name == ".") continue;
    if (name.size() > 255) return std::unexpected(ENAMETOOLONG);
    if (!last.empty()) {
      const auto next = find(folder, last);
      if (!next) return std::unexpected(ENOENT);
      if (S_ISLNK(inodes_.at(*next).now.mode)) return std::unexpected(ELOOP);
      if (!S_ISDIR(inodes_.at(*next).now.mode)) return std::unexpected(ENOTDIR);
      trail.push_back(folder);
      folder = *next;
      last.clear();
    }
    if (name == "..") {
      if (trail.empty()) return std::unexpected(EXDEV);
      folder = trail.back();
      trail.pop_back();
      continue;
    }
    last = std::move(name);
  }
  return folder;
}

base::Io<base::File> ForgetfulFiles::open_inode(Id id, int flags) {
  const Inode& inode = inodes_.at(id);
  if (S_ISLNK(inode.now.mode)) return std::unexpected(ELOOP);
  if (S_ISDIR(inode.now.mode) && is_writable(flags)) return std::unexpected(EISDIR);
  if (!S_ISDIR(inode.now.mode) && (flags & O_DIRECTORY) != 0) return std::unexpected(ENOTDIR);
  if ((flags & O_PATH) == 0) {
    for (auto& [descriptor, open] : open_) {
      if (open.inode != id || open.lease == base::Lease::none) continue;
      if (open.lease == base::Lease::read && !is_writable(flags)) continue;
      open.lease_broken = true;  // the kernel would let the opener wait for the holder
      return std::unexpected(EAGAIN);
    }
  }
  const int descriptor = next_descriptor_++;
  open_[descriptor] = {.inode = id, .flags = flags, .lease = base::Lease::none, .lease_broken = false};
  return base::File(*this, descriptor);
}

base::Io<base::File> ForgetfulFiles::open_root(const std::string& path) {
  ENTER("open_root");
  std::string last;
  const auto folder = walk(1, path, last);
  if (!folder) return std::unexpected(folder.error());
  if (last.empty()) return open_inode(*folder, O_RDONLY | O_DIRECTORY);
  const auto found = find(*folder, last);
  if (!found) return std::unexpected(ENOENT);
  return open_inode(*found, O_RDONLY | O_DIRECTORY);
}

base::Io<base::File> ForgetfulFiles::open(int folder, const std::string& path, int flags,
                                          std::uint32_t mode) {
  ENTER("open");
  if (folder_of(folder) == nullptr) return std::unexpected(ENOTDIR);
  std::string last;
  const auto parent = walk(open_.at(folder).inode, path, last);
  if (!parent) return std::unexpected(parent.error());
  if (last.empty()) return open_inode(*parent, flags);
  const auto found = find(*parent, last);
  if (found) {
    if ((flags & O_EXCL) != 0) return std::unexpected(EEXIST);
    auto file = open_inode(*found, flags);
    if (file && (flags & O_TRUNC) != 0) inodes_.at(*found).now.data.clear();
    return file;
  }
  if ((flags & O_CREAT) == 0) return std::unexpected(ENOENT);
  const Id id = add_inode(S_IFREG | mode);
  if (const auto added = apply({{*parent, last, std::nullopt, id}}); !added)
    return std::unexpected(added.error());
  return open_inode(id, flags);
}

base::Io<base::File> ForgetfulFiles::open_unnamed(int folder, std::uint32_t mode) {
  ENTER("open_unnamed");
  if (folder_of(folder) == nullptr) return std::unexpected(ENOTDIR);
  return open_inode(add_inode(S_IFREG | mode), O_RDWR);
}

base::Io<void> ForgetfulFiles::link_unnamed(int file, int folder, const std::string& name) {
  ENTER("link_unnamed");
  if (inode_of(file) == nullptr || folder_of(folder) == nullptr) return std::unexpected(EBADF);
  const Id to = open_.at(folder).inode;
  if (find(to, name)) return std::unexpected(EEXIST);
  return apply({{to, name, std::nullopt, open_.at(file).inode}});
}

void ForgetfulFiles::close(int descriptor) {
  const std::lock_guard lock(mutex_);
  std::erase_if(locks_, [&](const Lock& lock) { return lock.descriptor == descriptor; });
  open_.erase(descriptor);
}

base::Io<std::size_t> ForgetfulFiles::read(int file, base::MutableBytes into, std::uint64_t offset) {
  ENTER("read");
  const Inode* inode = inode_of(file);
  if (inode == nullptr) return std::unexpected(EBADF);
  const base::Bytes& data = inode->now.data;
  if (offset >= data.size()) return 0;
  const std::size_t count = std::min<std::size_t>(into.size(), data.size() - offset);
  std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(offset), count, into.begin());
  return count;
}

base::Io<std::size_t> ForgetfulFiles::read_cached(int file, base::MutableBytes into, std::uint64_t offset) {
  return read(file, into, offset);
}

base::Io<void> ForgetfulFiles::write_locked(Inode& inode, base::ByteView bytes, std::uint64_t offset) {
  if (byte_limit_ && used_bytes() + bytes.size() > *byte_limit_) return std::unexpected(ENOSPC);
  if (bytes.empty()) return {};
  base::Bytes& data = inode.now.data;
  if (data.size() < offset + bytes.size()) data.resize(offset + bytes.size());
  std::ranges::copy(bytes, data.begin() + static_cast<std::ptrdiff_t>(offset));
  inode.pending.push_back({offset, {bytes.begin(), bytes.end()}});
  inode.now.modified = inode.changed = clock_.now();
  return {};
}

base::Io<void> ForgetfulFiles::write(int file, base::ByteView bytes, std::uint64_t offset) {
  ENTER("write");
  Inode* inode = inode_of(file);
  if (inode == nullptr || !is_writable(open_.at(file).flags)) return std::unexpected(EBADF);
  return write_locked(*inode, bytes, offset);
}

base::Io<void> ForgetfulFiles::truncate(int file, std::uint64_t size) {
  ENTER("truncate");
  Inode* inode = inode_of(file);
  if (inode == nullptr || !is_writable(open_.at(file).flags)) return std::unexpected(EBADF);
  inode->now.data.resize(size);
  inode->pending.push_back({size, {}});
  inode->now.modified = inode->changed = clock_.now();
  return {};
}

base::Io<void> ForgetfulFiles::clone_range(int, std::uint64_t, int, std::uint64_t, std::uint64_t) {
  ENTER("clone_range");
  return std::unexpected(EOPNOTSUPP);
}

base::Io<std::uint64_t> ForgetfulFiles::copy_range(int from, std::uint64_t from_offset, int to,
                                                   std::uint64_t to_offset, std::uint64_t length) {
  ENTER("copy_range");
  const Inode* source = inode_of(from);
  Inode* target = inode_of(to);
  if (source == nullptr || target == nullptr) return std::unexpected(EBADF);
  if (from_offset >= source->now.data.size()) return 0;
  const std::uint64_t count = std::min<std::uint64_t>(length, source->now.data.size() - from_offset);
  const base::Bytes bytes(source->now.data.begin() + static_cast<std::ptrdiff_t>(from_offset),
                          source->now.data.begin() + static_cast<std::ptrdiff_t>(from_offset + count));
  if (const auto written = write_locked(*target, bytes, to_offset); !written)
    return std::unexpected(written.error());
  return count;
}

base::Io<void> ForgetfulFiles::sync(int descriptor) {
  ENTER("sync");
  Inode* inode = inode_of(descriptor);
  if (inode == nullptr) return std::unexpected(EBADF);
  if (ignored_sync_ == syncs_++) return {};
  commit_inode(*inode);
  if (S_ISDIR(inode->now.mode)) commit_folder(open_.at(descriptor).inode);
  return {};
}

base::Io<void> ForgetfulFiles::sync_file_system(int descriptor) {
  ENTER("sync_file_system");
  if (inode_of(descriptor) == nullptr) return std::unexpected(EBADF);
  for (auto& [id, inode] : inodes_) commit_inode(inode);
  for (const Operation& operation : pending_) apply_durably(inodes_, operation);
  pending_.clear();
  return {};
}

base::Io<base::FileStatus> ForgetfulFiles::status(int descriptor) {
  ENTER("status");
  if (inode_of(descriptor) == nullptr) return std::unexpected(EBADF);
  return status_of(open_.at(descriptor).inode);
}

base::Io<base::FileStatus> ForgetfulFiles::status_at(int folder, const std::string& name) {
  ENTER("status_at");
  if (folder_of(folder) == nullptr) return std::unexpected(ENOTDIR);
  const auto found = find(open_.at(folder).inode, name);
  if (!found) return std::unexpected(ENOENT);
  return status_of(*found);
}

base::Io<void> ForgetfulFiles::set_owner(int file, std::uint32_t user, std::uint32_t group) {
  ENTER("set_owner");
  Inode* inode = inode_of(file);
  if (inode == nullptr) return std::unexpected(EBADF);
  inode->now.user = user;
  inode->now.group = group;
  inode->changed = clock_.now();
  return {};
}

base::Io<void> ForgetfulFiles::set_mode(int file, std::uint32_t mode) {
  ENTER("set_mode");
  Inode* inode = inode_of(file);
  if (inode == nullptr) return std::unexpected(EBADF);
  inode->now.mode = (inode->now.mode & S_IFMT) | (mode & 07777);
  inode->changed = clock_.now();
  return {};
}

base::Io<void> ForgetfulFiles::set_times(int file, base::TimePoint accessed, base::TimePoint modified) {
  ENTER("set_times");
  Inode* inode = inode_of(file);
  if (inode == nullptr) return std::unexpected(EBADF);
  inode->now.accessed = accessed;
  inode->now.modified = modified;
  inode->changed = clock_.now();
  return {};
}

base::Io<base::Bytes> ForgetfulFiles::attribute(int file, const std::string& name) {
  ENTER("attribute");
  const Inode* inode = inode_of(file);
  if (inode == nullptr) return std::unexpected(EBADF);
  if (!refused_prefix_.empty() && name.starts_with(refused_prefix_)) return std::unexpected(ENODATA);
  const auto found = inode->now.attributes.find(name);
  if (found == inode->now.attributes.end()) return std::unexpected(ENODATA);
  return found->second;
}

base::Io<void> ForgetfulFiles::set_attribute(int file, const std::string& name, base::ByteView value) {
  ENTER("set_attribute");
  Inode* inode = inode_of(file);
  if (inode == nullptr) return std::unexpected(EBADF);
  if (!refused_prefix_.empty() && name.starts_with(refused_prefix_)) return std::unexpected(EPERM);
  if (value.size() > kAttributeBytesMax) return std::unexpected(ENOSPC);
  inode->now.attributes[name] = {value.begin(), value.end()};
  inode->changed = clock_.now();
  return {};
}

base::Io<void> ForgetfulFiles::remove_attribute(int file, const std::string& name) {
  ENTER("remove_attribute");
  Inode* inode = inode_of(file);
  if (inode == nullptr) return std::unexpected(EBADF);
  if (inode->now.attributes.erase(name) == 0) return std::unexpected(ENODATA);
  return {};
}

base::Io<std::vector<std::string>> ForgetfulFiles::attribute_names(int file) {
  ENTER("attribute_names");
  const Inode* inode = inode_of(file);
  if (inode == nullptr) return std::unexpected(EBADF);
  std::vector<std::string> names;
  for (const auto& [name, value] : inode->now.attributes) names.push_back(name);
  return names;
}

base::Io<void> ForgetfulFiles::make_folder(int folder, const std::string& name, std::uint32_t mode) {
  ENTER("make_folder");
  if (folder_of(folder) == nullptr) return std::unexpected(ENOTDIR);
  const Id parent = open_.at(folder).inode;
  if (find(parent, name)) return std::unexpected(EEXIST);
  return apply({{parent, name, std::nullopt, add_inode(S_IFDIR | mode)}});
}

base::Io<void> ForgetfulFiles::link(int from_folder, const std::string& from, int to_folder,
                                    const std::string& to) {
  ENTER("link");
  if (folder_of(from_folder) == nullptr || folder_of(to_folder) == nullptr) return std::unexpected(ENOTDIR);
  const auto found = find(open_.at(from_folder).inode, from);
  if (!found) return std::unexpected(ENOENT);
  const Id target = open_.at(to_folder).inode;
  if (find(target, to)) return std::unexpected(EEXIST);
  return apply({{target, to, std::nullopt, *found}});
}

base::Io<void> ForgetfulFiles::rename(int from_folder, const std::string& from, int to_folder,
                                      const std::string& to, base::RenameMode mode) {
  ENTER("rename");
  if (folder_of(from_folder) == nullptr || folder_of(to_folder) == nullptr) return std::unexpected(ENOTDIR);
  const Id source = open_.at(from_folder).inode;
  const Id target = open_.at(to_folder).inode;
  const auto moved = find(source, from);
  const auto displaced = find(target, to);
  if (!moved) return std::unexpected(ENOENT);
  if (mode == base::RenameMode::exchange) {
    if (!displaced) return std::unexpected(ENOENT);
    return apply({{source, from, moved, displaced}, {target, to, displaced, moved}});
  }
  if (displaced) {
    if (mode == base::RenameMode::no_replace) return std::unexpected(EEXIST);
    const bool onto_folder = S_ISDIR(inodes_.at(*displaced).now.mode);
    if (onto_folder && !S_ISDIR(inodes_.at(*moved).now.mode)) return std::unexpected(EISDIR);
    if (onto_folder && !inodes_.at(*displaced).entries.empty()) return std::unexpected(ENOTEMPTY);
  }
  return apply({{source, from, moved, std::nullopt}, {target, to, displaced, moved}});
}

base::Io<void> ForgetfulFiles::unlink(int folder, const std::string& name) {
  ENTER("unlink");
  if (folder_of(folder) == nullptr) return std::unexpected(ENOTDIR);
  const Id parent = open_.at(folder).inode;
  const auto found = find(parent, name);
  if (!found) return std::unexpected(ENOENT);
  if (S_ISDIR(inodes_.at(*found).now.mode)) return std::unexpected(EISDIR);
  if (link_count(*found) == 1) {
    inodes_.at(*found).freed_early = std::ranges::any_of(pending_, [&](const Operation& operation) {
      return std::ranges::any_of(
          operation, [&](const Change& change) { return change.before == found || change.after == found; });
    });
  }
  return apply({{parent, name, found, std::nullopt}});
}

base::Io<void> ForgetfulFiles::remove_folder(int folder, const std::string& name) {
  ENTER("remove_folder");
  if (folder_of(folder) == nullptr) return std::unexpected(ENOTDIR);
  const Id parent = open_.at(folder).inode;
  const auto found = find(parent, name);
  if (!found) return std::unexpected(ENOENT);
  if (!S_ISDIR(inodes_.at(*found).now.mode)) return std::unexpected(ENOTDIR);
  if (!inodes_.at(*found).entries.empty()) return std::unexpected(ENOTEMPTY);
  return apply({{parent, name, found, std::nullopt}});
}

base::Io<void> ForgetfulFiles::make_link(const std::string& text, int folder, const std::string& name) {
  ENTER("make_link");
  if (folder_of(folder) == nullptr) return std::unexpected(ENOTDIR);
  const Id parent = open_.at(folder).inode;
  if (find(parent, name)) return std::unexpected(EEXIST);
  const Id id = add_inode(S_IFLNK | 0777);
  inodes_.at(id).link_text = text;
  return apply({{parent, name, std::nullopt, id}});
}

base::Io<std::string> ForgetfulFiles::read_link(int folder, const std::string& name) {
  ENTER("read_link");
  if (folder_of(folder) == nullptr) return std::unexpected(ENOTDIR);
  const auto found = find(open_.at(folder).inode, name);
  if (!found) return std::unexpected(ENOENT);
  if (!S_ISLNK(inodes_.at(*found).now.mode)) return std::unexpected(EINVAL);
  return inodes_.at(*found).link_text;
}

base::Io<std::vector<base::FolderEntry>> ForgetfulFiles::entries(int folder) {
  ENTER("entries");
  const Inode* inode = folder_of(folder);
  if (inode == nullptr) return std::unexpected(ENOTDIR);
  std::vector<base::FolderEntry> out;
  for (const auto& [name, id] : inode->entries) {
    const std::uint32_t mode = inodes_.at(id).now.mode;
    out.push_back({name, S_ISREG(mode)   ? base::EntryKind::regular
                         : S_ISDIR(mode) ? base::EntryKind::folder
                         : S_ISLNK(mode) ? base::EntryKind::link
                                         : base::EntryKind::other});
  }
  return out;
}

base::Io<base::LockOutcome> ForgetfulFiles::try_lock_byte(int file, std::uint64_t offset,
                                                          base::LockMode mode) {
  ENTER("try_lock_byte");
  if (inode_of(file) == nullptr) return std::unexpected(EBADF);
  const Id inode = open_.at(file).inode;
  const bool in_the_way = std::ranges::any_of(locks_, [&](const Lock& lock) {
    return lock.inode == inode && lock.offset == offset && lock.descriptor != file &&
           (mode == base::LockMode::exclusive || lock.mode == base::LockMode::exclusive);
  });
  if (in_the_way) return base::LockOutcome::held_elsewhere;
  locks_.push_back({.inode = inode, .offset = offset, .descriptor = file, .mode = mode});
  return base::LockOutcome::taken;
}

base::Io<void> ForgetfulFiles::set_lease(int file, base::Lease lease) {
  ENTER("set_lease");
  if (inode_of(file) == nullptr) return std::unexpected(EBADF);
  Open& mine = open_.at(file);
  for (const auto& [descriptor, open] : open_) {
    if (descriptor == file || open.inode != mine.inode || (open.flags & O_PATH) != 0) continue;
    if (lease == base::Lease::write || (lease == base::Lease::read && is_writable(open.flags)))
      return std::unexpected(EAGAIN);
  }
  if (lease == base::Lease::read && is_writable(mine.flags)) return std::unexpected(EAGAIN);
  mine.lease = lease;
  mine.lease_broken = false;
  return {};
}

base::Io<base::Lease> ForgetfulFiles::lease(int file) {
  ENTER("lease");
  if (inode_of(file) == nullptr) return std::unexpected(EBADF);
  const Open& mine = open_.at(file);
  return mine.lease_broken ? base::Lease::none : mine.lease;
}

base::Io<std::uint64_t> ForgetfulFiles::file_system_magic(int descriptor) {
  ENTER("file_system_magic");
  if (inode_of(descriptor) == nullptr) return std::unexpected(EBADF);
  return magic_;
}

#undef ENTER

}  // namespace reelway::testing
