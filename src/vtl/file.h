#pragma once
// The few file calls that the library's folders need. Short transfers are finished, EINTR is retried; errors
// carry the path.

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace reelway::vtl {

class File {
 public:
  File() = default;
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();
  /// Opens for reading and writing; made when absent.
  static base::Result<File> open(const std::filesystem::path& path);

  base::Result<std::uint64_t> size() const;
  /// Exactly this many bytes; data_loss when the file ends before.
  base::Result<void> read_at(std::uint64_t offset, base::MutableBytes out) const;
  base::Result<void> write_at(std::uint64_t offset, base::ByteView bytes);
  base::Result<void> truncate(std::uint64_t size);
  base::Result<void> sync();
  /// False when another process holds it.
  bool try_lock();

 private:
  int fd_ = -1;
  std::string path_;
};

enum class Durable : bool { no, yes };

/// The file has the new content or the old one, whatever happens.
base::Result<void> replace_file(const std::filesystem::path& path, std::string_view content, Durable durable);
/// not_found when absent.
base::Result<std::string> read_file(const std::filesystem::path& path);
base::Result<void> sync_folder(const std::filesystem::path& folder);

}  // namespace reelway::vtl
