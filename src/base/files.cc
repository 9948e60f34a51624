#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <memory>

namespace reelway::base {

namespace {

std::unexpected<int> last_error() { return std::unexpected(errno); }

Io<void> outcome(long result) {
  if (result < 0) return last_error();
  return {};
}

/// Repeats a call that a signal interrupted.
template <class Call>
auto uninterrupted(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

std::string descriptor_path(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

TimePoint time_of(const statx_timestamp& time) {
  return TimePoint{std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec}};
}

timespec timespec_of(TimePoint time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return {.tv_sec = seconds.time_since_epoch().count(), .tv_nsec = (time - seconds).count()};
}

Io<FileStatus> status_by(int folder, const char* name, int flags) {
  struct statx raw{};
  if (::statx(folder, name, flags, STATX_BASIC_STATS, &raw) < 0) return last_error();
  return FileStatus{.mode = raw.stx_mode,
                    .user = raw.stx_uid,
                    .group = raw.stx_gid,
                    .link_count = raw.stx_nlink,
                    .device = makedev(raw.stx_dev_major, raw.stx_dev_minor),
                    .inode = raw.stx_ino,
                    .size = raw.stx_size,
                    .accessed = time_of(raw.stx_atime),
                    .modified = time_of(raw.stx_mtime),
                    .changed = time_of(raw.stx_ctime)};
}

Io<std::size_t> read_with(int file, MutableBytes into, std::uint64_t offset, int flags) {
  std::size_t done = 0;
  while (done < into.size()) {
    const iovec part{.iov_base = into.data() + done, .iov_len = into.size() - done};
    const ssize_t count =
        uninterrupted([&] { return ::preadv2(file, &part, 1, static_cast<off_t>(offset + done), flags); });
    if (count < 0) {
      if (errno == EAGAIN && done > 0) break;
      return last_error();
    }
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

EntryKind kind_of(unsigned char type) {
  switch (type) {
    case DT_REG:
      return EntryKind::regular;
    case DT_DIR:
      return EntryKind::folder;
    case DT_LNK:
      return EntryKind::link;
    default:
      return EntryKind::other;
  }
}

}  // namespace

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) files_->close(descriptor_);
    files_ = other.files_;
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) files_->close(descriptor_);
}

SystemFiles& system_files() {
  static SystemFiles files;
  return files;
}

Io<File> SystemFiles::open_root(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return last_error();
  return File(*this, descriptor);
}

Io<File> SystemFiles::open(int folder, const std::string& path, int flags, std::uint32_t mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  // EAGAIN: the kernel saw a rename on the way and cannot vouch for the path; the next try can.
  for (int attempt = 0;; ++attempt) {
    const long descriptor =
        uninterrupted([&] { return ::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how); });
    if (descriptor >= 0) return File(*this, static_cast<int>(descriptor));
    if (errno != EAGAIN || (flags & O_NONBLOCK) != 0 || attempt == 100) return last_error();
  }
}

Io<File> SystemFiles::open_unnamed(int folder, std::uint32_t mode) {
  const int descriptor = ::openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
  if (descriptor < 0) return last_error();
  return File(*this, descriptor);
}

Io<void> SystemFiles::link_unnamed(int file, int folder, const std::string& name) {
  return outcome(::linkat(AT_FDCWD, descriptor_path(file).c_str(), folder, name.c_str(), AT_SYMLINK_FOLLOW));
}

void SystemFiles::close(int descriptor) { ::close(descriptor); }

Io<std::size_t> SystemFiles::read(int file, MutableBytes into, std::uint64_t offset) {
  return read_with(file, into, offset, 0);
}

Io<std::size_t> SystemFiles::read_cached(int file, MutableBytes into, std::uint64_t offset) {
  return read_with(file, into, offset, RWF_NOWAIT);
}

Io<void> SystemFiles::write(int file, ByteView bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t count =
        uninterrupted([&] { return ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (count < 0) return last_error();
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

Io<void> SystemFiles::truncate(int file, std::uint64_t size) {
  return outcome(uninterrupted([&] { return ::ftruncate(file, static_cast<off_t>(size)); }));
}

Io<void> SystemFiles::clone_range(int from, std::uint64_t from_offset, int to, std::uint64_t to_offset,
                                  std::uint64_t length) {
  file_clone_range range{
      .src_fd = from, .src_offset = from_offset, .src_length = length, .dest_offset = to_offset};
  return outcome(uninterrupted([&] { return ::ioctl(to, FICLONERANGE, &range); }));
}

Io<std::uint64_t> SystemFiles::copy_range(int from, std::uint64_t from_offset, int to,
                                          std::uint64_t to_offset, std::uint64_t length) {
  auto in = static_cast<off64_t>(from_offset);
  auto out = static_cast<off64_t>(to_offset);
  const ssize_t count = uninterrupted([&] { return ::copy_file_range(from, &in, to, &out, length, 0); });
  if (count < 0) return last_error();
  return static_cast<std::uint64_t>(count);
}

Io<void> SystemFiles::sync(int descriptor) {
  return outcome(uninterrupted([&] { return ::fsync(descriptor); }));
}

Io<void> SystemFiles::sync_file_system(int descriptor) { return outcome(::syncfs(descriptor)); }

Io<FileStatus> SystemFiles::status(int descriptor) { return status_by(descriptor, "", AT_EMPTY_PATH); }

Io<FileStatus> SystemFiles::status_at(int folder, const std::string& name) {
  return status_by(folder, name.c_str(), AT_SYMLINK_NOFOLLOW);
}

Io<void> SystemFiles::set_owner(int file, std::uint32_t user, std::uint32_t group) {
  return outcome(::fchown(file, user, group));
}

Io<void> SystemFiles::set_mode(int file, std::uint32_t mode) { return outcome(::fchmod(file, mode)); }

Io<void> SystemFiles::set_times(int file, TimePoint accessed, TimePoint modified) {
  const std::array times{timespec_of(accessed), timespec_of(modified)};
  return outcome(::futimens(file, times.data()));
}

Io<Bytes> SystemFiles::attribute(int file, const std::string& name) {
  std::array<std::byte, 4096> small;
  const ssize_t count = ::fgetxattr(file, name.c_str(), small.data(), small.size());
  if (count >= 0) return Bytes(small.begin(), small.begin() + count);
  if (errno != ERANGE) return last_error();
  Bytes large(XATTR_SIZE_MAX);
  const ssize_t size = ::fgetxattr(file, name.c_str(), large.data(), large.size());
  if (size < 0) return last_error();
  large.resize(static_cast<std::size_t>(size));
  return large;
}

Io<void> SystemFiles::set_attribute(int file, const std::string& name, ByteView value) {
  return outcome(::fsetxattr(file, name.c_str(), value.data(), value.size(), 0));
}

Io<void> SystemFiles::remove_attribute(int file, const std::string& name) {
  return outcome(::fremovexattr(file, name.c_str()));
}

Io<std::vector<std::string>> SystemFiles::attribute_names(int file) {
  std::string names(XATTR_LIST_MAX, '\0');
  const ssize_t size = ::flistxattr(file, names.data(), names.size());
  if (size < 0) return last_error();
  names.resize(static_cast<std::size_t>(size));
  std::vector<std::string> out;
  for (std::size_t start = 0; start < names.size();) {
    out.emplace_back(names.c_str() + start);
    start += out.back().size() + 1;
  }
  return out;
}

Io<void> SystemFiles::make_folder(int folder, const std::string& name, std::uint32_t mode) {
  return outcome(::mkdirat(folder, name.c_str(), mode));
}

Io<void> SystemFiles::link(int from_folder, const std::string& from, int to_folder, const std::string& to) {
  return outcome(::linkat(from_folder, from.c_str(), to_folder, to.c_str(), 0));
}

Io<void> SystemFiles::rename(int from_folder, const std::string& from, int to_folder, const std::string& to,
                             RenameMode mode) {
  const unsigned flags = mode == RenameMode::no_replace ? RENAME_NOREPLACE
                         : mode == RenameMode::exchange ? RENAME_EXCHANGE
                                                        : 0u;
  return outcome(::syscall(SYS_renameat2, from_folder, from.c_str(), to_folder, to.c_str(), flags));
}

Io<void> SystemFiles::unlink(int folder, const std::string& name) {
  return outcome(::unlinkat(folder, name.c_str(), 0));
}

Io<void> SystemFiles::remove_folder(int folder, const std::string& name) {
  return outcome(::unlinkat(folder, name.c_str(), AT_REMOVEDIR));
}

Io<void> SystemFiles::make_link(const std::string& text, int folder, const std::string& name) {
  return outcome(::symlinkat(text.c_str(), folder, name.c_str()));
}

Io<std::string> SystemFiles::read_link(int folder, const std::string& name) {
  std::string text(PATH_MAX, '\0');
  const ssize_t size = ::readlinkat(folder, name.c_str(), text.data(), text.size());
  if (size < 0) return last_error();
  text.resize(static_cast<std::size_t>(size));
  return text;
}

Io<std::vector<FolderEntry>> SystemFiles::entries(int folder) {
  // A description of its own, so that the caller's position does not matter.
  const int descriptor = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return last_error();
  const auto close_stream = [](DIR* stream) { ::closedir(stream); };
  const std::unique_ptr<DIR, decltype(close_stream)> stream(::fdopendir(descriptor), close_stream);
  if (stream == nullptr) {
    const auto error = last_error();
    ::close(descriptor);
    return error;
  }
  std::vector<FolderEntry> out;
  for (;;) {
    errno = 0;
    const dirent64* entry = ::readdir64(stream.get());
    if (entry == nullptr) break;
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    EntryKind kind = kind_of(entry->d_type);
    if (entry->d_type == DT_UNKNOWN) {
      const auto status = status_at(folder, name);
      if (!status) continue;
      kind = kind_of(IFTODT(status->mode));
    }
    out.push_back({std::move(name), kind});
  }
  if (errno != 0) return last_error();
  return out;
}

Io<LockOutcome> SystemFiles::try_lock_byte(int file, std::uint64_t offset, LockMode mode) {
  struct flock64 lock{};
  lock.l_type = mode == LockMode::shared ? F_RDLCK : F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off64_t>(offset);
  lock.l_len = 1;
  if (::fcntl(file, F_OFD_SETLK, &lock) == 0) return LockOutcome::taken;
  if (errno == EAGAIN || errno == EACCES) return LockOutcome::held_elsewhere;
  return last_error();
}

Io<void> SystemFiles::set_lease(int file, Lease lease) {
  // A break of the lease sends a signal; the default one, SIGIO, would end the process, SIGURG is ignored.
  if (lease != Lease::none && ::fcntl(file, F_SETSIG, SIGURG) < 0) return last_error();
  const int kind = lease == Lease::write ? F_WRLCK : lease == Lease::read ? F_RDLCK : F_UNLCK;
  return outcome(::fcntl(file, F_SETLEASE, kind));
}

Io<Lease> SystemFiles::lease(int file) {
  const int kind = ::fcntl(file, F_GETLEASE);
  if (kind < 0) return last_error();
  return kind == F_WRLCK ? Lease::write : kind == F_RDLCK ? Lease::read : Lease::none;
}

Io<std::uint64_t> SystemFiles::file_system_magic(int descriptor) {
  struct statfs raw{};
  if (::fstatfs(descriptor, &raw) < 0) return last_error();
  return static_cast<std::uint64_t>(raw.f_type);
}

}  // namespace reelway::base
