#include "tape/ltfs/index_builder.h"

#include <algorithm>

#include "tape/ltfs/names.h"
#include "tape/ltfs/version.h"

namespace reelway::tape::ltfs {

using base::Code;
using base::fail;
using base::Result;

namespace {

constexpr std::size_t kLeafBytesMax = 1 << 20;
constexpr std::size_t kTagBytesMax = 256 << 10;    // the parser looks at an unfinished tag again and again
constexpr std::size_t kUnknownBytesMax = 1 << 20;  // of one unknown tag
constexpr std::uint64_t kFileBytesMax = INT64_MAX;

base::Error damaged(std::string_view what) {
  return fail(Code::data_loss, "LTFS index: " + std::string(what), base::Scope::cartridge);
}

Result<std::uint64_t> number(std::string_view name, std::string_view text) {
  auto value = base::parse_decimal(text);
  if (!value) return damaged(std::string(name) + " is no number");
  return *value;
}

bool is_true(std::string_view text) { return text == "true" || text == "1"; }

bool is_entry_leaf(std::string_view name) {
  constexpr std::string_view kLeaves[] = {"name",       "readonly",   "creationtime", "changetime",
                                          "modifytime", "accesstime", "backuptime",   "fileuid"};
  return std::ranges::find(kLeaves, name) != std::end(kLeaves);
}

bool is_index_leaf(std::string_view name) {
  constexpr std::string_view kLeaves[] = {"creator",          "comment",        "volumeuuid",
                                          "generationnumber", "updatetime",     "allowpolicyupdate",
                                          "highestfileuid",   "volumelockstate"};
  return std::ranges::find(kLeaves, name) != std::end(kLeaves);
}

bool is_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

}  // namespace

IndexBuilder::Tag IndexBuilder::tag_of(Tag parent, std::string_view name) const {
  switch (parent) {
    case Tag::none:
      return name == "ltfsindex" ? Tag::index : Tag::none;
    case Tag::index:
      if (name == "directory") return Tag::directory;
      if (name == "location") return Tag::location;
      if (name == "previousgenerationlocation") return Tag::previous;
      return is_index_leaf(name) ? Tag::leaf : Tag::ignored;
    case Tag::location:
    case Tag::previous:
      return name == "partition" || name == "startblock" ? Tag::leaf : Tag::none;
    case Tag::directory:
      if (name == "contents") return Tag::contents;
      if (name == "extendedattributes") return Tag::attributes;
      return is_entry_leaf(name) ? Tag::leaf : Tag::ignored;
    case Tag::contents:
      return name == "directory" ? Tag::directory : name == "file" ? Tag::file : Tag::none;
    case Tag::file:
      if (name == "extendedattributes") return Tag::attributes;
      if (name == "extentinfo") return Tag::extents;
      return is_entry_leaf(name) || name == "length" || name == "symlink" || name == "openforwrite"
                 ? Tag::leaf
                 : Tag::ignored;
    case Tag::attributes:
      return name == "xattr" ? Tag::xattr : Tag::none;
    case Tag::xattr:
      return name == "key" || name == "value" ? Tag::leaf : Tag::none;
    case Tag::extents:
      return name == "extent" ? Tag::extent : Tag::none;
    case Tag::extent:
      return Tag::leaf;
    case Tag::leaf:
    case Tag::ignored:
      return Tag::none;
  }
  return Tag::none;
}

Result<void> IndexBuilder::start(std::string_view name, const std::vector<XmlAttribute>& attributes) {
  if (capture_depth_ > 0) {
    capture_start(name, attributes);
    return {};
  }
  const auto tag = tag_of(tags_.empty() ? Tag::none : tags_.back(), name);
  if (tag == Tag::none) return damaged("unexpected tag " + printable(name));
  if (tag == Tag::ignored) {
    captured_.clear();
    captured_policy_ = name == "dataplacementpolicy";
    capture_start(name, attributes);
    return {};
  }
  leaf_text_.clear();
  leaf_percent_encoded_ = leaf_base64_ = false;
  for (const auto& attribute : attributes) {
    if (attribute.name == "percentencoded") leaf_percent_encoded_ = is_true(attribute.value);
    if (attribute.name == "type") leaf_base64_ = attribute.value == "base64";
    if (tag == Tag::index && attribute.name == "version") index_.version = attribute.value;
  }
  tags_.push_back(tag);
  return open(tag);
}

Result<void> IndexBuilder::open(Tag tag) {
  switch (tag) {
    case Tag::index:
      if (!is_supported_version(index_.version)) {
        return fail(Code::unsupported, "an LTFS index of version " + printable(index_.version),
                    base::Scope::cartridge);
      }
      return {};
    case Tag::directory:
      if (directories_.empty() && std::exchange(root_seen_, true)) return damaged("two roots");
      if (directories_.size() >= limits_.depth_max) return damaged("directories nested too deeply");
      directories_.emplace_back();
      return count_entry();
    case Tag::file:
      file_ = std::make_unique<File>();
      file_name_.reset();
      return count_entry();
    case Tag::xattr:
      xattr_.emplace();
      xattr_has_key_ = false;
      return {};
    case Tag::extent:
      extent_ = {};
      extent_has_offset_ = extent_has_block_ = false;
      return {};
    default:
      return {};
  }
}

Result<void> IndexBuilder::count_entry() {
  if (++entry_count_ > limits_.entry_count_max) return damaged("more entries than allowed");
  return {};
}

Result<void> IndexBuilder::text(std::string_view text) {
  if (capture_depth_ > 0) {
    if (captured_.size() + text.size() > kUnknownBytesMax)
      return damaged("an unknown tag larger than allowed");
    append_escaped(text, captured_);
    return {};
  }
  if (tags_.empty() || tags_.back() != Tag::leaf) return {};
  if (leaf_text_.size() + text.size() > kLeafBytesMax) return damaged("a value larger than allowed");
  leaf_text_ += text;
  return {};
}

Result<void> IndexBuilder::end(std::string_view name) {
  if (capture_depth_ > 0) {
    captured_ += "</" + std::string(name) + ">";
    if (--capture_depth_ == 0) keep_captured(tags_.back());
    return {};
  }
  const auto tag = tags_.back();
  tags_.pop_back();
  if (tag == Tag::leaf) return set_leaf(tags_.back(), name);
  return close(tag, name);
}

Result<void> IndexBuilder::close(Tag tag, std::string_view) {
  switch (tag) {
    case Tag::directory:
      return close_directory();
    case Tag::file:
      return close_file();
    case Tag::xattr:
      return close_xattr();
    case Tag::extent:
      return close_extent();
    default:
      return {};
  }
}

Result<void> IndexBuilder::close_directory() {
  auto closed = std::move(directories_.back());
  directories_.pop_back();
  uid_max_ = std::max(uid_max_, closed.directory->uid);
  if (directories_.empty()) {
    index_.volume_name = closed.name.value_or("");
    index_.root = std::move(*closed.directory);
    return {};
  }
  if (!closed.name || !is_name(*closed.name)) return damaged("a directory without a name");
  auto& parent = *directories_.back().directory;
  if (parent.files.contains(*closed.name)) return damaged("a name that is there twice");
  const auto [place, added] =
      parent.directories.emplace(std::move(*closed.name), std::move(closed.directory));
  if (!added) return damaged("a name that is there twice");
  return {};
}

Result<void> IndexBuilder::close_file() {
  auto file = std::move(file_);
  if (!file_name_ || !is_name(*file_name_)) return damaged("a file without a name");
  if (file->length > kFileBytesMax) return damaged("a file of impossible size");
  std::ranges::sort(file->extents, {}, &Extent::file_offset);
  for (std::size_t i = 1; i < file->extents.size(); ++i) {
    const auto& before = file->extents[i - 1];
    if (before.file_offset + before.byte_count > file->extents[i].file_offset)
      return damaged("extents that overlap");
  }
  file->extents.shrink_to_fit();
  file->attributes.shrink_to_fit();
  uid_max_ = std::max(uid_max_, file->uid);
  auto& parent = *directories_.back().directory;
  if (parent.directories.contains(*file_name_)) return damaged("a name that is there twice");
  const auto [place, added] = parent.files.emplace(std::move(*file_name_), std::move(file));
  if (!added) return damaged("a name that is there twice");
  ++index_.file_count_;
  return {};
}

Result<void> IndexBuilder::close_xattr() {
  if (!xattr_has_key_) return damaged("an attribute without a key");
  Entry& entry = file_ ? static_cast<Entry&>(*file_) : *directories_.back().directory;
  entry.attributes.push_back(std::move(*xattr_));
  xattr_.reset();
  return {};
}

Result<void> IndexBuilder::close_extent() {
  if (!extent_has_block_) return damaged("an extent without a block");
  auto& extents = file_->extents;
  if (!extent_has_offset_ && !extents.empty()) {  // LTFS 1.0 had no fileoffset
    extent_.file_offset = extents.back().file_offset + extents.back().byte_count;
  }
  if (extent_.byte_count == 0) return {};
  if (extent_.byte_count > kFileBytesMax || extent_.file_offset > kFileBytesMax - extent_.byte_count) {
    return damaged("an extent of impossible size");
  }
  extents.push_back(extent_);
  return {};
}

Result<void> IndexBuilder::set_leaf(Tag parent, std::string_view name) {
  switch (parent) {
    case Tag::index:
      return set_index_leaf(name);
    case Tag::location:
      return set_location_leaf(location_, name);
    case Tag::previous:
      return set_location_leaf(index_.previous, name);
    case Tag::directory: {
      auto& open = directories_.back();
      if (name != "name") return set_entry_leaf(*open.directory, name);
      TRY(open.name, decoded_text());
      return {};
    }
    case Tag::file:
      return set_file_leaf(name);
    case Tag::extent:
      return set_extent_leaf(name);
    case Tag::xattr:
      if (name == "key") {
        TRY(xattr_->key, decoded_text());
        xattr_has_key_ = true;
      } else if (leaf_base64_) {
        std::erase_if(leaf_text_, [](char c) { return c == '\n' || c == ' ' || c == '\r' || c == '\t'; });
        const auto value = base::from_base64(leaf_text_);
        if (!value) return damaged("an attribute that is not base64");
        xattr_->value = base::as_text(*value);
      } else {
        xattr_->value = leaf_text_;
      }
      return {};
    default:
      return {};
  }
}

Result<void> IndexBuilder::set_index_leaf(std::string_view name) {
  if (name == "creator") index_.creator = leaf_text_;
  if (name == "comment") index_.comment = leaf_text_;
  if (name == "volumeuuid") index_.volume_uuid = leaf_text_;
  if (name == "allowpolicyupdate") index_.allow_policy_update = is_true(leaf_text_);
  if (name == "generationnumber") {
    TRY(index_.generation, number(name, leaf_text_));
    has_generation_ = true;
  }
  if (name == "updatetime") {
    TRY(index_.update_time, parse_ltfs_time(leaf_text_));
  }
  if (name == "highestfileuid") {
    TRY(index_.highest_uid, number(name, leaf_text_));
  }
  if (name == "volumelockstate") {
    if (leaf_text_ == "locked") index_.lock = VolumeLock::locked;
    if (leaf_text_ == "permlocked") index_.lock = VolumeLock::permanently_locked;
  }
  return {};
}

Result<void> IndexBuilder::set_location_leaf(std::optional<IndexLocation>& location, std::string_view name) {
  if (!location) location.emplace();
  if (name == "partition") {
    if (leaf_text_.size() != 1) return damaged("a location without a partition");
    location->partition = leaf_text_[0];
    return {};
  }
  TRY(location->start_block, number(name, leaf_text_));
  return {};
}

Result<void> IndexBuilder::set_entry_leaf(Entry& entry, std::string_view name) {
  if (name == "readonly") entry.readonly = is_true(leaf_text_);
  if (name == "fileuid") {
    TRY(entry.uid, number(name, leaf_text_));
  }
  if (!name.ends_with("time")) return {};
  TRY(const auto time, parse_ltfs_time(leaf_text_));
  if (name == "creationtime") entry.times.creation = time;
  if (name == "changetime") entry.times.change = time;
  if (name == "modifytime") entry.times.modify = time;
  if (name == "accesstime") entry.times.access = time;
  if (name == "backuptime") entry.times.backup = time;
  return {};
}

Result<void> IndexBuilder::set_file_leaf(std::string_view name) {
  if (name == "name") {
    TRY(file_name_, decoded_text());
    return {};
  }
  if (name == "length") {
    TRY(file_->length, number(name, leaf_text_));
    return {};
  }
  if (name == "symlink") {
    TRY(file_->symlink, decoded_text());
    return {};
  }
  return set_entry_leaf(*file_, name);
}

Result<void> IndexBuilder::set_extent_leaf(std::string_view name) {
  if (name == "partition") {
    if (leaf_text_.size() != 1) return damaged("an extent without a partition");
    extent_.partition = leaf_text_[0];
    return {};
  }
  if (name != "fileoffset" && name != "startblock" && name != "byteoffset" && name != "bytecount") return {};
  TRY(const auto value, number(name, leaf_text_));
  if (name == "fileoffset") {
    extent_.file_offset = value;
    extent_has_offset_ = true;
  } else if (name == "startblock") {
    extent_.start_block = value;
    extent_has_block_ = true;
  } else if (name == "bytecount") {
    extent_.byte_count = value;
  } else {
    if (value > UINT32_MAX) return damaged("a byte offset beyond any block");
    extent_.byte_offset = static_cast<std::uint32_t>(value);
  }
  return {};
}

Result<std::string> IndexBuilder::decoded_text() {
  if (!leaf_percent_encoded_) return leaf_text_;
  auto decoded = percent_decode_name(leaf_text_);
  if (!decoded) return damaged("a name with a broken percent encoding");
  return std::move(*decoded);
}

void IndexBuilder::capture_start(std::string_view name, const std::vector<XmlAttribute>& attributes) {
  ++capture_depth_;
  captured_ += '<';
  captured_ += name;
  for (const auto& attribute : attributes) {
    captured_ += ' ';
    captured_ += attribute.name;
    captured_ += "=\"";
    append_escaped(attribute.value, captured_);
    captured_ += '"';
  }
  captured_ += '>';
}

void IndexBuilder::keep_captured(Tag parent) {
  auto text = std::exchange(captured_, {});
  if (parent == Tag::index) {
    if (captured_policy_) {
      index_.placement_policy = std::move(text);
    } else {
      index_.unknown_tags.push_back(std::move(text));
    }
  }
  if (parent == Tag::directory) directories_.back().directory->unknown_tags.push_back(std::move(text));
  if (parent == Tag::file) file_->unknown_tags.push_back(std::move(text));
}

Result<Index> IndexBuilder::finish() {
  if (!root_seen_ || !has_generation_ || !location_ || index_.volume_uuid.empty())
    return damaged("a required tag is missing");
  index_.location = *location_;
  index_.highest_uid = std::max(index_.highest_uid, uid_max_);
  return std::move(index_);
}

struct IndexParser::State {
  explicit State(IndexLimits limits)
      : builder(limits),
        parser(builder, {.document_bytes_max = limits.xml_bytes_max,
                         .tag_bytes_max = kTagBytesMax,
                         .depth_max = 2 * limits.depth_max + 16}) {}
  IndexBuilder builder;
  XmlParser parser;
};

IndexParser::IndexParser(IndexLimits limits) : state_(std::make_unique<State>(limits)) {}
IndexParser::~IndexParser() = default;
Result<void> IndexParser::feed(base::ByteView record) { return state_->parser.feed(record); }
Result<Index> IndexParser::finish() {
  TRY_VOID(state_->parser.finish());
  return state_->builder.finish();
}

}  // namespace reelway::tape::ltfs
