#pragma once
// An LTFS index as a tree in memory (LTFS 2.4.0, section 7 and annex D), its reader (SAX, fed record by
// record) and its writer (a record at a time), so that the XML text never lies in memory as a whole. Tags
// that we do not know are kept and written back. Names here are decoded UTF-8; the writer percent-encodes.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/encoding.h"

namespace reelway::tape::ltfs {

struct Extent {
  std::uint64_t file_offset = 0;
  char partition = 'b';
  std::uint64_t start_block = 0;
  std::uint32_t byte_offset = 0;  ///< within the first block
  std::uint64_t byte_count = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
};

/// `value` is raw bytes; the writer uses base64 where it is no XML text.
struct ExtendedAttribute {
  std::string key;
  std::string value;
  friend bool operator==(const ExtendedAttribute&, const ExtendedAttribute&) = default;
};

struct Times {
  base::TimePoint creation{};
  base::TimePoint change{};
  base::TimePoint modify{};
  base::TimePoint access{};
  base::TimePoint backup{};
  friend bool operator==(const Times&, const Times&) = default;
};

struct Entry {
  Times times;
  bool readonly = false;
  std::uint64_t uid = 0;
  std::vector<ExtendedAttribute> attributes;
  std::vector<std::string> unknown_tags;  ///< XML text
  const std::string* attribute(std::string_view key) const;
  friend bool operator==(const Entry&, const Entry&) = default;
};

struct File : Entry {
  std::uint64_t length = 0;
  std::vector<Extent> extents;  ///< in order of file_offset; gaps read as zeros
  std::optional<std::string> symlink;
  friend bool operator==(const File&, const File&) = default;
};

/// Children by name, in byte order. Nodes keep their addresses while the tree changes around them.
struct Directory : Entry {
  std::map<std::string, std::unique_ptr<Directory>, std::less<>> directories;
  std::map<std::string, std::unique_ptr<File>, std::less<>> files;
};

struct IndexLocation {
  char partition = 'b';
  std::uint64_t start_block = 0;
  friend bool operator==(const IndexLocation&, const IndexLocation&) = default;
};

enum class VolumeLock : std::uint8_t { unlocked, locked, permanently_locked };

class Index {
 public:
  Index() = default;
  Index(Index&&) = default;
  Index& operator=(Index&&) = default;

  std::string version = "2.4.0";
  std::string creator;
  std::optional<std::string> comment;
  std::string volume_uuid;
  std::uint64_t generation = 0;
  base::TimePoint update_time{};
  IndexLocation location;
  std::optional<IndexLocation> previous;
  bool allow_policy_update = true;
  std::string placement_policy;  ///< the XML text of dataplacementpolicy, kept as it was
  std::uint64_t highest_uid = 1;
  VolumeLock lock = VolumeLock::unlocked;
  std::string volume_name;
  std::vector<std::string> unknown_tags;
  Directory root;

  /// Paths are absolute, "/" between names, no empty name, "." or "..".
  const File* find_file(std::string_view path) const;
  const Directory* find_directory(std::string_view path) const;
  bool exists(std::string_view path) const {
    return find_file(path) != nullptr || find_directory(path) != nullptr;
  }
  /// Makes missing parents. already_exists: the path is taken, or a parent is a file. invalid_argument: LTFS
  /// cannot hold the name (names.h).
  base::Result<File*> add_file(std::string_view path, File file, base::TimePoint now);
  base::Result<void> rename_file(std::string_view from, std::string_view to, base::TimePoint now);
  base::Result<void> remove_file(std::string_view path, base::TimePoint now);
  /// In order of the tree: directories first, then files, each in byte order.
  void for_each_file(const std::function<void(const std::string& path, const File& file)>& visit) const;
  std::uint64_t file_count() const { return file_count_; }
  std::uint64_t take_uid() { return ++highest_uid; }

 private:
  friend class IndexBuilder;
  base::Result<Directory*> make_parents(std::string_view path, base::TimePoint now);
  std::uint64_t file_count_ = 0;
};

struct IndexLimits {
  std::uint64_t xml_bytes_max = 16ull << 30;
  std::uint64_t entry_count_max = 50'000'000;
  std::uint32_t depth_max = 256;  ///< of directories; LTFS paths have at most 1024 bytes in practice
};

/// Feed it the index's records in order. data_loss for anything that is no well-formed index; document type
/// declarations and entities are refused.
class IndexParser {
 public:
  explicit IndexParser(IndexLimits limits = {});
  ~IndexParser();
  base::Result<void> feed(base::ByteView record);
  base::Result<Index> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Gives the XML text piece by piece. The index must not change meanwhile.
class IndexSerializer {
 public:
  explicit IndexSerializer(const Index& index);
  ~IndexSerializer();
  /// Appends to `out` until it holds at least `wanted` bytes; false when the text is complete.
  bool fill(std::string& out, std::size_t wanted);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reelway::tape::ltfs
