#include "archive/tape_place.h"

#include <fmt/format.h>

#include "tape/ltfs/names.h"

namespace reelway::archive {

namespace {

/// A path can be taken when no parent is a file and it is no folder itself.
bool is_free_of_conflicts(const tape::ltfs::Index& index, const std::string& path) {
  if (index.find_directory(path) != nullptr) return false;
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    if (index.find_file(path.substr(0, slash)) != nullptr) return false;
  }
  return true;
}

std::string hidden_path(const std::string& bucket, const std::string& generation) {
  return fmt::format("/.reelway/objects/{}/{}", bucket, generation);
}

std::string free_hidden_path(const tape::ltfs::Index& index, const std::string& bucket,
                             const std::string& generation) {
  std::string path = hidden_path(bucket, generation);
  for (int n = 2; index.find_file(path) != nullptr; ++n)
    path = fmt::format("{}.{}", hidden_path(bucket, generation), n);
  return path;
}

}  // namespace

BlockRange blocks_of(std::span<const tape::ltfs::Extent> extents, std::uint32_t block_bytes,
                     std::uint64_t offset, std::uint64_t length) {
  BlockRange range;
  bool found = false;
  for (const tape::ltfs::Extent& extent : extents) {
    const std::uint64_t begin = std::max(offset, extent.file_offset);
    const std::uint64_t end = std::min(offset + length, extent.file_offset + extent.byte_count);
    if (begin >= end) continue;
    const std::uint64_t from = extent.byte_offset + (begin - extent.file_offset);
    const std::uint64_t to = extent.byte_offset + (end - extent.file_offset);
    if (!found) range.first = extent.start_block + from / block_bytes;
    range.end = extent.start_block + (to + block_bytes - 1) / block_bytes;
    found = true;
  }
  return range;
}

std::string path_for(const tape::ltfs::Index& index, const object::ObjectName& name,
                     const std::string& generation) {
  const std::string path = "/" + name.bucket + "/" + name.key;
  const bool plain = tape::ltfs::is_storable_path(path) && !name.bucket.starts_with(".reelway") &&
                     is_free_of_conflicts(index, path);
  return plain ? path : free_hidden_path(index, name.bucket, generation);
}

std::string displaced_path(const tape::ltfs::Index& index, const object::ObjectName& name,
                           const std::string& generation) {
  return free_hidden_path(index, name.bucket, generation.empty() ? "unknown" : generation);
}

}  // namespace reelway::archive
