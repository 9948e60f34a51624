#pragma once
// Builds an Index from XML events. Tags may come in any order; unknown ones are kept as text where an entry
// or the index itself can carry them.

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tape/ltfs/index.h"
#include "tape/ltfs/sax.h"

namespace reelway::tape::ltfs {

class IndexBuilder final : public XmlHandler {
 public:
  explicit IndexBuilder(IndexLimits limits) : limits_(limits) {}
  base::Result<void> start(std::string_view name, const std::vector<XmlAttribute>& attributes) override;
  base::Result<void> text(std::string_view text) override;
  base::Result<void> end(std::string_view name) override;
  /// After the document's end.
  base::Result<Index> finish();

 private:
  enum class Tag : std::uint8_t {
    none,
    index,
    location,
    previous,
    directory,
    contents,
    file,
    attributes,
    xattr,
    extents,
    extent,
    leaf,
    ignored
  };
  struct OpenDirectory {
    std::unique_ptr<Directory> directory = std::make_unique<Directory>();
    std::optional<std::string> name;
  };

  Tag tag_of(Tag parent, std::string_view name) const;
  base::Result<void> open(Tag tag);
  base::Result<void> close(Tag tag, std::string_view name);
  base::Result<void> close_directory();
  base::Result<void> close_file();
  base::Result<void> close_xattr();
  base::Result<void> close_extent();
  base::Result<void> set_leaf(Tag parent, std::string_view name);
  base::Result<void> set_index_leaf(std::string_view name);
  base::Result<void> set_location_leaf(std::optional<IndexLocation>& location, std::string_view name);
  base::Result<void> set_entry_leaf(Entry& entry, std::string_view name);
  base::Result<void> set_file_leaf(std::string_view name);
  base::Result<void> set_extent_leaf(std::string_view name);
  base::Result<std::string> decoded_text();
  base::Result<void> count_entry();
  void capture_start(std::string_view name, const std::vector<XmlAttribute>& attributes);
  void keep_captured(Tag parent);

  IndexLimits limits_;
  Index index_;
  std::vector<Tag> tags_;
  std::deque<OpenDirectory> directories_;
  bool root_seen_ = false;
  bool has_generation_ = false;
  std::optional<IndexLocation> location_;
  std::unique_ptr<File> file_;
  std::optional<std::string> file_name_;
  std::optional<ExtendedAttribute> xattr_;
  bool xattr_has_key_ = false;
  Extent extent_;
  bool extent_has_offset_ = false;
  bool extent_has_block_ = false;
  std::uint64_t entry_count_ = 0;
  std::uint64_t uid_max_ = 0;

  std::string leaf_text_;
  bool leaf_percent_encoded_ = false;
  bool leaf_base64_ = false;

  std::size_t capture_depth_ = 0;  // inside an unknown tag
  std::string captured_;
  bool captured_policy_ = false;
};

}  // namespace reelway::tape::ltfs
