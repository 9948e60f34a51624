#include "store/posix/objects.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>

namespace reelway::store::posix {

namespace {

using base::in_context;

constexpr int kReadFlags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY;

/// The inode of the link at a name's path, if there is a link.
std::optional<std::uint64_t> link_inode_at(Space& space, const object::ObjectName& name) {
  const std::string path = name.bucket + "/" + name.key;
  const std::size_t slash = path.rfind('/');
  const auto folder =
      space.files().open(space.root(), path.substr(0, slash), O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!folder) return std::nullopt;
  const auto status = space.files().status_at(folder->get(), path.substr(slash + 1));
  if (!status || !status->is_link()) return std::nullopt;
  return status->inode;
}

/// Rule 4: a stub stands for its own key, or for the one that mv gave it.
bool stands_for(Space& space, const Sidecar& sidecar, const base::FileStatus& link,
                const object::ObjectName& name) {
  if (sidecar.info.name == name) return true;
  if (!sidecar.inode || sidecar.inode->stub_inode != link.inode || !is_plain_key(sidecar.info.name.key))
    return false;
  return link_inode_at(space, sidecar.info.name) != link.inode;
}

base::Result<std::optional<Found>> look_at_link(Space& space, int folder, const std::string& path,
                                                const object::ObjectName& name) {
  const std::size_t slash = path.rfind('/');
  const std::string leaf = path.substr(slash + 1);
  const std::string above = slash == std::string::npos ? "." : path.substr(0, slash);
  const auto parent = space.files().open(folder, above, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!parent) return std::nullopt;
  const auto status = space.files().status_at(parent->get(), leaf);
  if (!status || !status->is_link()) return std::nullopt;
  const auto text = space.files().read_link(parent->get(), leaf);
  const auto stub = text ? parse_stub_text(*text) : std::nullopt;
  if (!stub) return std::nullopt;
  auto sidecar = read_sidecar(space, name.bucket, stub->generation);
  if (!sidecar && sidecar.error().scope == base::Scope::node) return sidecar.error();
  if (!sidecar || sidecar->info.size != stub->size || !stands_for(space, *sidecar, *status, name)) {
    space.log().write(base::LogLevel::warning, "store/posix",
                      fmt::format("conflict: {}/{} is a stub of generation {}, which is not its own",
                                  name.bucket, name.key, stub->generation));
    return std::nullopt;
  }
  Found found{.info = std::move(sidecar->info),
              .status = *status,
              .file = {},
              .has_sidecar = true,
              .odd = false,
              .inode = std::move(sidecar->inode),
              .recorded_name = {}};
  found.recorded_name = std::exchange(found.info.name, name);
  found.info.residency = object::Residency::evicted;
  return found;
}

}  // namespace

base::Result<std::optional<Found>> look(Space& space, int folder, const std::string& path,
                                        const object::ObjectName& name) {
  auto file = space.files().open(folder, path, kReadFlags);
  if (!file) {
    switch (file.error()) {
      case ELOOP:
        return look_at_link(space, folder, path, name);
      case ENOENT:
      case ENOTDIR:
      case ENAMETOOLONG:
      case EXDEV:
      case ENXIO:  // a socket, or a FIFO
      case ENODEV:
        return std::nullopt;
      default:
        return base::from_errno(file.error(), "open an object");
    }
  }
  TRY(const base::FileStatus status, in_context(space.files().status(file->get()), "stat an object"));
  if (!status.is_regular()) return std::nullopt;
  TRY(StoredInfo stored, read_stored_info(space, file->get(), status, name));
  return Found{.info = std::move(stored.info),
               .status = status,
               .file = std::move(*file),
               .has_sidecar = stored.has_sidecar,
               .odd = false,
               .inode = std::nullopt,
               .recorded_name = {}};
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
