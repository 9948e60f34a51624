#include "s3client/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace reelway::s3client {

namespace {

base::Result<std::size_t> read_some(int descriptor, std::uint64_t offset, base::MutableBytes into) {
  for (;;) {
    const ssize_t got = ::pread(descriptor, into.data(), into.size(), static_cast<off_t>(offset));
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) return base::from_errno(errno, "reading a file to send");
  }
}

base::Result<void> write_all(int descriptor, std::uint64_t offset, base::ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return base::from_errno(errno, "writing what came");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

}  // namespace

base::Result<std::unique_ptr<FileContent>> FileContent::open(const std::string& path,
                                                             async::BlockingPool& pool) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return base::from_errno(errno, path);
  struct stat status{};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return base::fail(base::Code::invalid_argument, path + " is not a regular file");
  }
  return std::unique_ptr<FileContent>(
      new FileContent(descriptor, static_cast<std::uint64_t>(status.st_size), pool));
}

FileContent::~FileContent() { ::close(descriptor_); }

async::Task<std::size_t> FileContent::read_at(std::uint64_t offset, base::MutableBytes into) {
  return async::offload(
      pool_, [descriptor = descriptor_, offset, into] { return read_some(descriptor, offset, into); });
}

async::Task<void> FileSink::write(std::uint64_t offset, base::ByteView bytes) {
  return async::offload(
      pool_, [descriptor = descriptor_, offset, bytes] { return write_all(descriptor, offset, bytes); });
}

}  // namespace reelway::s3client
