#pragma once
// The one seam to the kernel's file calls, so that tests can forget, tear, reorder and refuse
// (testing/forgetful_files.h). Every call blocks. A path is resolved beneath the folder that is given and
// never through a symbolic link (openat2(2): RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS); all calls but `open` and
// `open_root` take a single name, so that no path is walked any other way. Errors are errno values, because
// callers need the exact one; `in_context` makes a Result of them. Safe for several threads.

#include <sys/stat.h>

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "base/result.h"

namespace reelway::base {

template <class T>
using Io = std::expected<T, int>;

template <class T>
Result<T> in_context(Io<T> io, std::string_view what) {
  if (!io) return from_errno(io.error(), what);
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return std::move(*io);
  }
}

struct FileStatus {
  std::uint32_t mode = 0;  ///< type and permissions, as in stat(2)
  std::uint32_t user = 0;
  std::uint32_t group = 0;
  std::uint32_t link_count = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  TimePoint accessed{};
  TimePoint modified{};
  TimePoint changed{};
  bool is_regular() const { return S_ISREG(mode); }
  bool is_folder() const { return S_ISDIR(mode); }
  bool is_link() const { return S_ISLNK(mode); }
};

enum class EntryKind : std::uint8_t { regular, folder, link, other };

struct FolderEntry {
  std::string name;
  EntryKind kind{};
};

enum class Lease : std::uint8_t { none, read, write };
enum class RenameMode : std::uint8_t { replace, no_replace, exchange };
enum class LockMode : std::uint8_t { shared, exclusive };
enum class LockOutcome : std::uint8_t { taken, held_elsewhere };

class Files;

/// Owns an open descriptor. Movable; an empty one is -1.
class File {
 public:
  File() = default;
  File(Files& files, int descriptor) : files_(&files), descriptor_(descriptor) {}
  File(File&& other) noexcept : files_(other.files_), descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept;
  ~File();
  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  Files* files_ = nullptr;
  int descriptor_ = -1;
};

class Files {
 public:
  virtual ~Files() = default;

  /// The starting folder of everything, by any path; symbolic links are followed here only.
  virtual Io<File> open_root(const std::string& path) = 0;
  /// `flags` as in open(2); O_CLOEXEC is added. ELOOP for a symbolic link anywhere, EXDEV for an escape.
  virtual Io<File> open(int folder, const std::string& path, int flags, std::uint32_t mode = 0) = 0;
  /// A file without a name, on the folder's file system (O_TMPFILE). EOPNOTSUPP where there is no such thing.
  virtual Io<File> open_unnamed(int folder, std::uint32_t mode) = 0;
  /// Gives an unnamed file its name. EEXIST when the name is taken.
  virtual Io<void> link_unnamed(int file, int folder, const std::string& name) = 0;
  virtual void close(int descriptor) = 0;

  virtual Io<std::size_t> read(int file, MutableBytes into,
                               std::uint64_t offset) = 0;  ///< short only at the end
  /// As read, but EAGAIN where it would wait for the disk.
  virtual Io<std::size_t> read_cached(int file, MutableBytes into, std::uint64_t offset) = 0;
  virtual Io<void> write(int file, ByteView bytes, std::uint64_t offset) = 0;  ///< all of it
  virtual Io<void> truncate(int file, std::uint64_t size) = 0;
  /// Shares blocks (FICLONERANGE); EOPNOTSUPP, EINVAL or EXDEV where the file system cannot.
  virtual Io<void> clone_range(int from, std::uint64_t from_offset, int to, std::uint64_t to_offset,
                               std::uint64_t length) = 0;
  /// copy_file_range(2): bytes copied, 0 only at the end of `from`.
  virtual Io<std::uint64_t> copy_range(int from, std::uint64_t from_offset, int to, std::uint64_t to_offset,
                                       std::uint64_t length) = 0;

  virtual Io<void> sync(int descriptor) = 0;  ///< fsync: data, attributes; of a folder, its entries
  virtual Io<void> sync_file_system(int descriptor) = 0;  ///< syncfs

  virtual Io<FileStatus> status(int descriptor) = 0;
  virtual Io<FileStatus> status_at(int folder, const std::string& name) = 0;  ///< of a link itself
  virtual Io<void> set_owner(int file, std::uint32_t user, std::uint32_t group) = 0;
  virtual Io<void> set_mode(int file, std::uint32_t mode) = 0;
  virtual Io<void> set_times(int file, TimePoint accessed, TimePoint modified) = 0;
  virtual Io<Bytes> attribute(int file, const std::string& name) = 0;  ///< ENODATA when there is none
  virtual Io<void> set_attribute(int file, const std::string& name, ByteView value) = 0;
  virtual Io<void> remove_attribute(int file, const std::string& name) = 0;
  virtual Io<std::vector<std::string>> attribute_names(int file) = 0;

  virtual Io<void> make_folder(int folder, const std::string& name, std::uint32_t mode) = 0;
  virtual Io<void> link(int from_folder, const std::string& from, int to_folder, const std::string& to) = 0;
  virtual Io<void> rename(int from_folder, const std::string& from, int to_folder, const std::string& to,
                          RenameMode mode) = 0;
  virtual Io<void> unlink(int folder, const std::string& name) = 0;
  virtual Io<void> remove_folder(int folder, const std::string& name) = 0;
  virtual Io<void> make_link(const std::string& text, int folder, const std::string& name) = 0;
  virtual Io<std::string> read_link(int folder, const std::string& name) = 0;
  virtual Io<std::vector<FolderEntry>> entries(int folder) = 0;  ///< without . and .., in no order

  /// An open-file-description lock on one byte; held until `file`, open for reading and writing, is closed.
  /// Two descriptors of one process exclude each other as two processes do.
  virtual Io<LockOutcome> try_lock_byte(int file, std::uint64_t offset, LockMode mode) = 0;
  /// F_SETLEASE. EAGAIN when somebody else has the file open against it.
  virtual Io<void> set_lease(int file, Lease lease) = 0;
  /// What is left of the lease: less than was set once somebody's open waits for it.
  virtual Io<Lease> lease(int file) = 0;
  virtual Io<std::uint64_t> file_system_magic(int descriptor) = 0;  ///< statfs(2) f_type
};

class SystemFiles final : public Files {
 public:
  Io<File> open_root(const std::string& path) override;
  Io<File> open(int folder, const std::string& path, int flags, std::uint32_t mode) override;
  Io<File> open_unnamed(int folder, std::uint32_t mode) override;
  Io<void> link_unnamed(int file, int folder, const std::string& name) override;
  void close(int descriptor) override;
  Io<std::size_t> read(int file, MutableBytes into, std::uint64_t offset) override;
  Io<std::size_t> read_cached(int file, MutableBytes into, std::uint64_t offset) override;
  Io<void> write(int file, ByteView bytes, std::uint64_t offset) override;
  Io<void> truncate(int file, std::uint64_t size) override;
  Io<void> clone_range(int from, std::uint64_t from_offset, int to, std::uint64_t to_offset,
                       std::uint64_t length) override;
  Io<std::uint64_t> copy_range(int from, std::uint64_t from_offset, int to, std::uint64_t to_offset,
                               std::uint64_t length) override;
  Io<void> sync(int descriptor) override;
  Io<void> sync_file_system(int descriptor) override;
  Io<FileStatus> status(int descriptor) override;
  Io<FileStatus> status_at(int folder, const std::string& name) override;
  Io<void> set_owner(int file, std::uint32_t user, std::uint32_t group) override;
  Io<void> set_mode(int file, std::uint32_t mode) override;
  Io<void> set_times(int file, TimePoint accessed, TimePoint modified) override;
  Io<Bytes> attribute(int file, const std::string& name) override;
  Io<void> set_attribute(int file, const std::string& name, ByteView value) override;
  Io<void> remove_attribute(int file, const std::string& name) override;
  Io<std::vector<std::string>> attribute_names(int file) override;
  Io<void> make_folder(int folder, const std::string& name, std::uint32_t mode) override;
  Io<void> link(int from_folder, const std::string& from, int to_folder, const std::string& to) override;
  Io<void> rename(int from_folder, const std::string& from, int to_folder, const std::string& to,
                  RenameMode mode) override;
  Io<void> unlink(int folder, const std::string& name) override;
  Io<void> remove_folder(int folder, const std::string& name) override;
  Io<void> make_link(const std::string& text, int folder, const std::string& name) override;
  Io<std::string> read_link(int folder, const std::string& name) override;
  Io<std::vector<FolderEntry>> entries(int folder) override;
  Io<LockOutcome> try_lock_byte(int file, std::uint64_t offset, LockMode mode) override;
  Io<void> set_lease(int file, Lease lease) override;
  Io<Lease> lease(int file) override;
  Io<std::uint64_t> file_system_magic(int descriptor) override;
};

SystemFiles& system_files();

}  // namespace reelway::base
