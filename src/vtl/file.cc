#include "vtl/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace reelway::vtl {
namespace {

constexpr std::uint64_t kReadFileMax = 64 * base::kMiB;

base::Error failed(const char* what, const std::string& path) {
  return base::from_errno(errno, std::string(what) + " " + path);
}

}  // namespace

File::File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
    path_ = std::move(other.path_);
  }
  return *this;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

base::Result<File> File::open(const std::filesystem::path& path) {
  File file;
  file.path_ = path.string();
  file.fd_ = ::open(file.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file.fd_ < 0) return failed("open", file.path_);
  return file;
}

base::Result<std::uint64_t> File::size() const {
  struct stat info{};
  if (::fstat(fd_, &info) != 0) return failed("stat", path_);
  return static_cast<std::uint64_t>(info.st_size);
}

base::Result<void> File::read_at(std::uint64_t offset, base::MutableBytes out) const {
  while (!out.empty()) {
    const ssize_t count = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("read", path_);
    if (count == 0) return base::fail(base::Code::data_loss, path_ + " ends early", base::Scope::cartridge);
    out = out.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

base::Result<void> File::write_at(std::uint64_t offset, base::ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("write", path_);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

base::Result<void> File::truncate(std::uint64_t size) {
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) return failed("truncate", path_);
  return {};
}

base::Result<void> File::sync() {
  if (::fdatasync(fd_) != 0) return failed("fdatasync", path_);
  return {};
}

bool File::try_lock() { return ::flock(fd_, LOCK_EX | LOCK_NB) == 0; }

base::Result<void> replace_file(const std::filesystem::path& path, std::string_view content,
                                Durable durable) {
  const std::filesystem::path temporary = path.string() + ".new";
  {
    TRY(File file, File::open(temporary));
    TRY_VOID(file.truncate(0));
    TRY_VOID(file.write_at(0, base::as_bytes(content)));
    if (durable == Durable::yes) TRY_VOID(file.sync());
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return failed("rename", temporary.string());
  if (durable == Durable::yes) TRY_VOID(sync_folder(path.parent_path()));
  return {};
}

base::Result<std::string> read_file(const std::filesystem::path& path) {
  if (std::error_code error; !std::filesystem::exists(path, error)) {
    return base::fail(base::Code::not_found, path.string() + " is absent");
  }
  TRY(const File file, File::open(path));
  TRY(const std::uint64_t size, file.size());
  if (size > kReadFileMax) return base::fail(base::Code::data_loss, path.string() + " is too large");
  std::string content(size, '\0');
  TRY_VOID(file.read_at(0, std::as_writable_bytes(std::span(content))));
  return content;
}

base::Result<void> sync_folder(const std::filesystem::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failed("open", folder.string());
  const int result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  if (result != 0) return base::from_errno(error, "fsync " + folder.string());
  return {};
}

}  // namespace reelway::vtl
