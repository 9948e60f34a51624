#include "store/posix/space.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace reelway::store::posix {

namespace {

using base::in_context;

constexpr std::size_t kDurableFoldersMax = 65536;
constexpr std::size_t kSmallFileBytesMax = 8 * base::kMiB;
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
constexpr std::array<std::uint64_t, 3> kLocalFileSystems{0xef53, 0x58465342, 0x9123683e};  // ext4, XFS, Btrfs

base::Result<void> published(const base::Io<void>& outcome) {
  if (!outcome && outcome.error() == EXDEV)
    return base::fail(base::Code::unsupported,
                      "publish: the key's folder is a mount of its own, on another file system than the root",
                      base::Scope::object);
  return base::in_context(outcome, "publish");
}

bool lacks_exchange(int error) { return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP; }

}  // namespace

Temporary::~Temporary() {
  if (!name_.empty()) std::ignore = files_->unlink(folder_, name_);
}

base::Result<std::unique_ptr<Space>> Space::create(const Options& options) {
  std::unique_ptr<Space> space(new Space(options));
  TRY_VOID(space->open_folders());
  TRY_VOID(space->load_site_key());
  TRY_VOID(space->probe_attributes());
  TRY_VOID(space->probe_leases());
  return space;
}

base::Result<void> Space::open_folders() {
  TRY(root_, in_context(files().open_root(options_.root), "open " + options_.root));
  const auto open_own = [&](int parent, const std::string& name, base::File& out) -> base::Result<void> {
    const auto made = files().make_folder(parent, name, 0700);
    if (!made && made.error() != EEXIST) return base::from_errno(made.error(), "make .reelway/" + name);
    TRY(out, in_context(files().open(parent, name, kFolderFlags), "open .reelway/" + name));
    return {};
  };
  TRY_VOID(open_own(root(), ".reelway", own_));
  TRY_VOID(open_own(own_.get(), "tmp", tmp_));
  TRY_VOID(open_own(own_.get(), "locks", locks_));
  TRY_VOID(open_own(own_.get(), "meta", meta_));
  TRY_VOID(open_own(own_.get(), "odd", odd_));
  TRY_VOID(open_own(own_.get(), "evicting", evicting_));
  TRY_VOID(open_own(own_.get(), "uploads", uploads_));
  TRY_VOID(open_own(own_.get(), "buckets", buckets_));
  TRY_VOID(sync(own_.get()));
  return sync(root());
}

base::Result<void> Space::load_site_key() {
  constexpr std::size_t kKeyBytes = 32;
  auto found = read_small_file(own_.get(), "site.key");
  if (!found && found.error().code == base::Code::not_found) {
    base::Bytes fresh(kKeyBytes);
    options_.rng->fill(fresh);
    TRY(Temporary file, make_temporary());
    TRY_VOID(in_context(files().set_mode(file.get(), 0600), "site.key"));
    TRY_VOID(in_context(files().write(file.get(), fresh, 0), "site.key"));
    TRY_VOID(sync(file.get()));
    const auto published = publish_new(file, own_.get(), "site.key");
    if (!published && published.error().code != base::Code::already_exists) return published.error();
    found = read_small_file(own_.get(), "site.key");
  }
  if (!found) return found.error();
  if (found->size() != kKeyBytes)
    return base::fail(base::Code::data_loss, ".reelway/site.key is not 32 bytes long", base::Scope::node);
  site_key_ = std::move(*found);
  return {};
}

base::Result<void> Space::probe_attributes() {
  TRY(const Temporary probe, make_temporary());
  const auto trusted = files().set_attribute(probe.get(), "trusted.reelway", base::as_bytes("probe"));
  trusted_ = trusted.has_value();
  if (trusted_) return {};
  return in_context(files().set_attribute(probe.get(), "user.reelway", base::as_bytes("probe")),
                    "the root's file system takes no extended attributes");
}

base::Result<void> Space::probe_leases() {
  TRY(const std::uint64_t magic, in_context(files().file_system_magic(root()), "statfs"));
  leases_ = options_.evict_on_any_file_system ||
            std::ranges::find(kLocalFileSystems, magic) != kLocalFileSystems.end();
  return {};
}

base::Result<void> Space::sync(int descriptor) {
  if (options_.durability == Durability::none) return {};
  return in_context(files().sync(descriptor), "fsync");
}

base::Result<Temporary> Space::make_temporary() {
  auto unnamed = files().open_unnamed(tmp(), 0644);
  if (unnamed) return Temporary(files(), tmp(), std::move(*unnamed), "");
  const int error = unnamed.error();
  if (error != EOPNOTSUPP && error != ENOSYS && error != EISDIR)
    return base::from_errno(error, "make a temporary file");
  std::string name = make_ulid();
  TRY(base::File named,
      in_context(files().open(tmp(), name, O_CREAT | O_EXCL | O_RDWR, 0644), "make a temporary file"));
  return Temporary(files(), tmp(), std::move(named), std::move(name));
}

base::Result<void> Space::publish_new(Temporary& file, int folder, const std::string& name) {
  if (file.name().empty()) {
    TRY_VOID(published(files().link_unnamed(file.get(), folder, name)));
  } else {
    TRY_VOID(published(files().rename(tmp(), file.name(), folder, name, base::RenameMode::no_replace)));
    file.forget_name();
  }
  auto synced = sync(folder);
  if (!synced) std::ignore = files().unlink(folder, name);
  return synced;
}

base::Result<void> Space::publish(Temporary& file, int folder, const std::string& name) {
  // A POSIX process may add or remove the name between the two ways; the bound is for one that does nothing
  // else.
  for (int attempt = 0; attempt < 100; ++attempt) {
    auto fresh = publish_new(file, folder, name);
    if (fresh || fresh.error().code != base::Code::already_exists) return fresh;
    auto replaced = replace_displacing(file, folder, name);
    if (replaced || replaced.error().code != base::Code::not_found) return replaced;
    TRY_VOID(in_context(files().status(folder), "publish"));
  }
  return base::fail(base::Code::busy, "publish: the name changes all the time", base::Scope::object,
                    base::Retry::later);
}

/// An exchange, so that a failed sync of the folder can bring back what was there.
base::Result<void> Space::replace_displacing(Temporary& file, int folder, const std::string& name) {
  TRY(const base::FileStatus there, in_context(files().status_at(folder, name), "publish"));
  if (there.is_folder())
    return base::fail(base::Code::already_exists, "publish: a folder lies there", base::Scope::object);
  if (file.name().empty()) {
    std::string own_name = make_ulid();
    TRY_VOID(in_context(files().link_unnamed(file.get(), tmp(), own_name), "name a temporary file"));
    file.set_name(std::move(own_name));
  }
  const auto exchanged = files().rename(tmp(), file.name(), folder, name, base::RenameMode::exchange);
  if (!exchanged && lacks_exchange(exchanged.error())) {
    TRY_VOID(published(files().rename(tmp(), file.name(), folder, name, base::RenameMode::replace)));
    file.forget_name();
    return sync(folder);
  }
  if (!exchanged) return published(exchanged);
  // From here the temporary's name belongs to what was displaced, which must not go with it while it may
  // still be needed.
  const auto undo = [&] {
    if (!files().rename(tmp(), file.name(), folder, name, base::RenameMode::exchange)) file.forget_name();
  };
  const auto displaced = files().status_at(tmp(), file.name());
  if (!displaced || displaced->is_folder()) {
    undo();
    if (!displaced) return base::from_errno(displaced.error(), "publish");
    return base::fail(base::Code::already_exists, "publish: a folder lies there", base::Scope::object);
  }
  auto synced = sync(folder);
  if (!synced) undo();
  return synced;
}

base::Result<void> Space::write_small_file(int folder, const std::string& name, base::ByteView bytes) {
  TRY(Temporary file, make_temporary());
  TRY_VOID(in_context(files().write(file.get(), bytes, 0), "write " + name));
  TRY_VOID(sync(file.get()));
  return publish(file, folder, name);
}

base::Result<base::Bytes> Space::read_small_file(int folder, const std::string& path) {
  TRY(const base::File file,
      in_context(files().open(folder, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK), path));
  TRY(const base::FileStatus status, in_context(files().status(file.get()), path));
  if (!status.is_regular() || status.size > kSmallFileBytesMax)
    return base::fail(base::Code::data_loss, path + " is no small regular file", base::Scope::object);
  base::Bytes bytes(status.size);
  TRY(const std::size_t count, in_context(files().read(file.get(), bytes, 0), path));
  bytes.resize(count);
  return bytes;
}

base::Result<base::File> Space::step_into(int folder, const std::string& name) {
  const auto made = files().make_folder(folder, name, 0755);
  if (!made && made.error() != EEXIST) return base::from_errno(made.error(), "make a folder");
  auto child = files().open(folder, name, kFolderFlags);
  if (!child && (child.error() == ENOTDIR || child.error() == ELOOP))
    return base::fail(base::Code::already_exists, "something that is no folder is in the way",
                      base::Scope::object);
  if (!child) return base::from_errno(child.error(), "open a folder");
  // Also when somebody else made it: that one may not have synced it yet.
  TRY_VOID(sync(folder));
  return std::move(*child);
}

base::Result<base::File> Space::open_made_folder(int base, const std::string& tag, const std::string& path) {
  auto whole = files().open(base, path.empty() ? "." : path, kFolderFlags);
  if (whole) {
    TRY(const base::FileStatus status, in_context(files().status(whole->get()), "stat a folder"));
    const std::lock_guard lock(mutex_);
    const auto known = durable_folders_.find(tag + path);
    if (path.empty() || (known != durable_folders_.end() && known->second == status.inode))
      return std::move(*whole);
  }
  TRY(base::File folder, in_context(files().open(base, ".", kFolderFlags), "open a folder"));
  for (std::size_t start = 0; start < path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    TRY(folder, step_into(folder.get(), path.substr(start, end - start)));
    TRY(const base::FileStatus status, in_context(files().status(folder.get()), "stat a folder"));
    const std::lock_guard lock(mutex_);
    if (durable_folders_.size() >= kDurableFoldersMax) durable_folders_.clear();
    durable_folders_[tag + path.substr(0, end)] = status.inode;
    start = end + 1;
  }
  return folder;
}

void Space::forget_folder(const std::string& tag, const std::string& path) {
  const std::lock_guard lock(mutex_);
  durable_folders_.erase(tag + path);
}

}  // namespace reelway::store::posix
