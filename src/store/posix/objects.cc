#include "store/posix/objects.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>

namespace reelway::store::posix {

namespace {

using base::in_context;

constexpr int kReadFlags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY;

bool is_absence(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG || error == EXDEV;
}

/// The inode of the link at a name's path, if there is a link.
base::Result<std::optional<std::uint64_t>> link_inode_at(Space& space, const object::ObjectName& name) {
  const std::string path = name.bucket + "/" + name.key;
  const std::size_t slash = path.rfind('/');
  const auto folder =
      space.files().open(space.root(), path.substr(0, slash), O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!folder && is_absence(folder.error())) return std::nullopt;
  if (!folder) return base::from_errno(folder.error(), "open a folder");
  const auto status = space.files().status_at(folder->get(), path.substr(slash + 1));
  if (!status && is_absence(status.error())) return std::nullopt;
  if (!status) return base::from_errno(status.error(), "stat a stub");
  if (!status->is_link()) return std::nullopt;
  return status->inode;
}

/// Rule 4: a stub stands for its own key, or for the one that mv gave it.
base::Result<bool> stands_for(Space& space, const Sidecar& sidecar, const base::FileStatus& link,
                              const object::ObjectName& name) {
  if (sidecar.info.name == name) return true;
  if (!sidecar.inode || sidecar.inode->stub_inode != link.inode || !is_plain_key(sidecar.info.name.key))
    return false;
  TRY(const std::optional<std::uint64_t> inode, link_inode_at(space, sidecar.info.name));
  return inode != link.inode;
}

/// What one look at an entry came to.
struct Glimpse {
  std::optional<Found> found;
  /// It was being exchanged, or its metadata is lost. It is lost when the next look finds the same inode,
  /// with the same times, no better.
  bool is_doubtful = false;
  std::uint64_t inode = 0;
  base::TimePoint changed{};
  std::string conflict;  ///< with a doubtful stub: why it is no object

  bool shows_the_same(const Glimpse& other) const {
    return inode != 0 && inode == other.inode && changed == other.changed;
  }
};

Glimpse doubtful_stub(const base::FileStatus& status, std::string conflict) {
  return {.found = {},
          .is_doubtful = true,
          .inode = status.inode,
          .changed = status.changed,
          .conflict = std::move(conflict)};
}

base::Result<Glimpse> glimpse_at_link(Space& space, int folder, const std::string& path,
                                      const object::ObjectName& name) {
  const auto exchanged = [] {
    return Glimpse{.found = {}, .is_doubtful = true, .inode = 0, .changed = {}, .conflict = {}};
  };
  const std::size_t slash = path.rfind('/');
  const std::string leaf = path.substr(slash + 1);
  const std::string above = slash == std::string::npos ? "." : path.substr(0, slash);
  const auto parent = space.files().open(folder, above, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!parent && is_absence(parent.error())) return Glimpse{};  // the link is further up, and none of ours
  if (!parent) return base::from_errno(parent.error(), "open a folder");
  const auto status = space.files().status_at(parent->get(), leaf);
  if (!status && status.error() == ENOENT) return exchanged();
  if (!status) return base::from_errno(status.error(), "stat a stub");
  if (!status->is_link()) return exchanged();
  const auto text = space.files().read_link(parent->get(), leaf);
  if (!text && (text.error() == ENOENT || text.error() == EINVAL)) return exchanged();
  if (!text) return base::from_errno(text.error(), "read a stub");
  const auto stub = parse_stub_text(*text);
  if (!stub) return Glimpse{};
  auto sidecar = read_sidecar(space, name.bucket, stub->generation);
  if (!sidecar && is_unreadable(sidecar.error())) return sidecar.error();
  const std::string conflict = fmt::format("conflict: {}/{} is a stub of generation {}, which is not its own",
                                           name.bucket, name.key, stub->generation);
  if (!sidecar || sidecar->info.size != stub->size) return doubtful_stub(*status, conflict);
  TRY(const bool is_own, stands_for(space, *sidecar, *status, name));
  if (!is_own) return doubtful_stub(*status, conflict);
  Found found{.info = std::move(sidecar->info),
              .status = *status,
              .file = {},
              .has_sidecar = true,
              .odd = false,
              .inode = std::move(sidecar->inode),
              .recorded_name = {}};
  found.recorded_name = std::exchange(found.info.name, name);
  found.info.residency = object::Residency::evicted;
  Glimpse seen;
  seen.found = std::move(found);
  return seen;
}

base::Result<Glimpse> glimpse(Space& space, int folder, const std::string& path,
                              const object::ObjectName& name) {
  auto file = space.files().open(folder, path, kReadFlags);
  if (!file) {
    switch (file.error()) {
      case ELOOP:
        return glimpse_at_link(space, folder, path, name);
      case ENOENT:
      case ENOTDIR:
      case ENAMETOOLONG:
      case EXDEV:
      case ENXIO:  // a socket, or a FIFO
      case ENODEV:
        return Glimpse{};
      default:
        return base::from_errno(file.error(), "open an object");
    }
  }
  TRY(const base::FileStatus status, in_context(space.files().status(file->get()), "stat an object"));
  if (!status.is_regular()) return Glimpse{};
  TRY(StoredInfo stored, read_stored_info(space, file->get(), status, name));
  Glimpse seen{.found = {},
               .is_doubtful = stored.lacks_sidecar,
               .inode = status.inode,
               .changed = status.changed,
               .conflict = {}};
  seen.found = Found{.info = std::move(stored.info),
                     .status = status,
                     .file = std::move(*file),
                     .has_sidecar = stored.has_sidecar,
                     .odd = false,
                     .inode = std::nullopt,
                     .recorded_name = {}};
  return seen;
}

}  // namespace

base::Result<std::optional<Found>> look(Space& space, int folder, const std::string& path,
                                        const object::ObjectName& name) {
  Glimpse before;
  for (int attempt = 0; attempt < kLooksMax; ++attempt) {
    TRY(Glimpse seen, glimpse(space, folder, path, name));
    if (!seen.is_doubtful) return std::move(seen.found);
    if (before.is_doubtful && seen.shows_the_same(before)) {
      if (!seen.conflict.empty()) space.log().write(base::LogLevel::warning, "store/posix", seen.conflict);
      return std::move(seen.found);
    }
    before = std::move(seen);
  }
  return base::fail(base::Code::busy, "the object changes all the time", base::Scope::object,
                    base::Retry::later);
}

base::Result<bool> is_unchanged(Space& space, const Found& found) {
  TRY(const base::FileStatus now, in_context(space.files().status(found.file.get()), "stat an object"));
  return now.size == found.status.size && now.modified == found.status.modified;
}

base::Result<Found> Objects::find(const object::ObjectName& name) {
  if (!is_bucket_name(name.bucket)) return object::bucket_not_found(name.bucket);
  if (is_plain_key(name.key)) {
    TRY(std::optional<Found> found, look(space_, space_.root(), name.bucket + "/" + name.key, name));
    if (found) return std::move(*found);
  }
  TRY(std::optional<Found> found,
      look(space_, space_.odd(), name.bucket + "/" + odd_name_of(name.key), name));
  if (found) {
    found->odd = true;
    return std::move(*found);
  }
  TRY(const base::File bucket, open_bucket(space_, name.bucket));
  return object::object_not_found(name);
}

base::Result<Found> Objects::find_patiently(const object::ObjectName& name) {
  return with_patience([&] { return find(name); });
}

base::Result<std::optional<Found>> Objects::find_current(const object::ObjectName& name) {
  auto found = find_patiently(name);
  if (found) return std::move(*found);
  if (object::is_object_not_found(found.error())) return std::nullopt;
  return found.error();
}

base::Result<void> Objects::put_in_place(Temporary& file, const object::ObjectName& name, bool prefer_odd) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    TRY(const Place place, make_place(space_, name, prefer_odd));
    auto published = space_.publish(file, place.folder.get(), place.name);
    if (published) return published;
    // A folder took the name, or the folder above was removed when it became empty.
    if (published.error().code == base::Code::already_exists && !place.odd) {
      prefer_odd = true;
    } else if (published.error().code != base::Code::not_found) {
      return published;
    }
  }
  return base::fail(base::Code::busy, "the key's place changes all the time", base::Scope::object,
                    base::Retry::later);
}

base::Result<object::ObjectInfo> Objects::publish(Temporary& file, object::ObjectInfo info,
                                                  const object::Conditions& conditions) {
  TRY(const base::FileStatus status, in_context(space_.files().status(file.get()), "stat a temporary file"));
  info.size = status.size;
  info.last_modified = status.modified;
  info.generation = space_.make_ulid();
  TRY(const KeyLocks::Held bucket, lock_bucket(info.name.bucket));
  TRY(const base::File still_there, open_bucket(space_, info.name.bucket));
  TRY(const bool has_sidecar, write_stored_info(space_, file.get(), info));
  const auto finish = [&]() -> base::Result<void> {
    TRY_VOID(space_.sync(file.get()));
    TRY(const KeyLocks::Held held, lock(info.name));
    TRY(const std::optional<Found> current, find_current(info.name));
    TRY_VOID(object::check_write_conditions(conditions, current ? &current->info : nullptr));
    if (const auto put = put_in_place(file, info.name, current && current->odd); !put) {
      remove_empty_parents(space_, info.name);
      return put.error();
    }
    if (current && current->has_sidecar) remove_sidecar(space_, info.name.bucket, current->info.generation);
    return {};
  };
  if (const auto finished = finish(); !finished) {
    if (has_sidecar) remove_sidecar(space_, info.name.bucket, info.generation);
    return finished.error();
  }
  return info;
}

base::Result<void> Objects::unlink_object(const object::ObjectName& name, const Found& current) {
  // The odd one first: behind a path that a POSIX process made it is an older version, which must not rise
  // again.
  const auto odd = space_.files().open(space_.odd(), name.bucket, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!odd && odd.error() != ENOENT) return base::from_errno(odd.error(), "open the odd keys");
  if (odd) {
    const auto removed = space_.files().unlink(odd->get(), odd_name_of(name.key));
    if (!removed && removed.error() != ENOENT) return base::from_errno(removed.error(), "remove an object");
    if (removed) TRY_VOID(space_.sync(odd->get()));
  }
  if (current.odd) return {};
  const std::string path = name.bucket + "/" + name.key;
  const std::size_t slash = path.rfind('/');
  const auto folder =
      space_.files().open(space_.root(), path.substr(0, slash), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder) return base::from_errno(folder.error(), "open the object's folder");
  const auto removed = space_.files().unlink(folder->get(), path.substr(slash + 1));
  if (!removed && removed.error() != ENOENT) return base::from_errno(removed.error(), "remove an object");
  return space_.sync(folder->get());
}

base::Result<bool> Objects::remove(const object::ObjectName& name, const object::Conditions& conditions) {
  TRY(const KeyLocks::Held held, lock(name));
  TRY(const std::optional<Found> current, find_current(name));
  TRY_VOID(object::check_write_conditions(conditions, current ? &current->info : nullptr));
  if (!current) return false;
  TRY_VOID(unlink_object(name, *current));
  if (current->has_sidecar) remove_sidecar(space_, name.bucket, current->info.generation);
  remove_empty_parents(space_, name);
  return true;
}

}  // namespace reelway::store::posix
