#include "tape/ltfs/index.h"
#include "tape/ltfs/names.h"
#include "tape/ltfs/sax.h"

namespace reelway::tape::ltfs {

namespace {

/// <tag>name</tag>, percent-encoded where XML or LTFS asks for it.
void append_name(std::string_view tag, std::string_view name, std::string& out) {
  if (!needs_percent_encoding(name)) return append_element(tag, name, out);
  out += '<';
  out += tag;
  out += " percentencoded=\"true\">";
  append_escaped(percent_encode_name(name), out);
  out += "</";
  out += tag;
  out += ">\n";
}

void append_number(std::string_view tag, std::uint64_t number, std::string& out) {
  append_element(tag, std::to_string(number), out);
}

void append_bool(std::string_view tag, bool value, std::string& out) {
  append_element(tag, value ? "true" : "false", out);
}

void append_location(std::string_view tag, const IndexLocation& location, std::string& out) {
  out += '<';
  out += tag;
  out += ">\n";
  append_element("partition", {&location.partition, 1}, out);
  append_number("startblock", location.start_block, out);
  out += "</";
  out += tag;
  out += ">\n";
}

void append_attributes(const std::vector<ExtendedAttribute>& attributes, std::string& out) {
  if (attributes.empty()) return;
  out += "<extendedattributes>\n";
  for (const auto& attribute : attributes) {
    out += "<xattr>\n";
    append_name("key", attribute.key, out);
    if (attribute.value.empty()) {
      out += "<value/>\n";
    } else {
      const bool text = is_xml_text(attribute.value);
      out += text ? "<value type=\"text\">" : "<value type=\"base64\">";
      append_escaped(text ? attribute.value : base::to_base64(base::as_bytes(attribute.value)), out);
      out += "</value>\n";
    }
    out += "</xattr>\n";
  }
  out += "</extendedattributes>\n";
}

/// From readonly to the extended attributes: the same for files and directories.
void append_entry(const Entry& entry, std::string& out) {
  append_bool("readonly", entry.readonly, out);
  append_element("creationtime", base::to_ltfs_time(entry.times.creation), out);
  append_element("changetime", base::to_ltfs_time(entry.times.change), out);
  append_element("modifytime", base::to_ltfs_time(entry.times.modify), out);
  append_element("accesstime", base::to_ltfs_time(entry.times.access), out);
  append_element("backuptime", base::to_ltfs_time(entry.times.backup), out);
  append_number("fileuid", entry.uid, out);
  append_attributes(entry.attributes, out);
}

void append_unknown(const std::vector<std::string>& tags, std::string& out) {
  for (const auto& tag : tags) {
    out += tag;
    out += '\n';
  }
}

void append_extents(const std::vector<Extent>& extents, std::string& out) {
  if (extents.empty()) return;
  out += "<extentinfo>\n";
  for (const auto& extent : extents) {
    out += "<extent>\n";
    append_number("fileoffset", extent.file_offset, out);
    append_element("partition", {&extent.partition, 1}, out);
    append_number("startblock", extent.start_block, out);
    append_number("byteoffset", extent.byte_offset, out);
    append_number("bytecount", extent.byte_count, out);
    out += "</extent>\n";
  }
  out += "</extentinfo>\n";
}

void append_file(std::string_view name, const File& file, std::string& out) {
  out += "<file>\n";
  append_name("name", name, out);
  append_number("length", file.length, out);
  append_entry(file, out);
  if (file.symlink) {
    append_name("symlink", *file.symlink, out);
  } else {
    append_extents(file.extents, out);
  }
  append_unknown(file.unknown_tags, out);
  out += "</file>\n";
}

void append_directory_head(std::string_view name, const Directory& directory, std::string& out) {
  out += "<directory>\n";
  append_name("name", name, out);
  append_entry(directory, out);
  append_unknown(directory.unknown_tags, out);
  out += "<contents>\n";
}

std::string_view to_text(VolumeLock lock) {
  switch (lock) {
    case VolumeLock::unlocked:
      return "unlocked";
    case VolumeLock::locked:
      return "locked";
    case VolumeLock::permanently_locked:
      return "permlocked";
  }
  return "unlocked";
}

void append_index_head(const Index& index, std::string& out) {
  out += "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ltfsindex version=\"";
  append_escaped(index.version, out);
  out += "\">\n";
  append_element("creator", index.creator, out);
  if (index.comment) append_element("comment", *index.comment, out);
  append_element("volumeuuid", index.volume_uuid, out);
  append_number("generationnumber", index.generation, out);
  append_element("updatetime", base::to_ltfs_time(index.update_time), out);
  append_location("location", index.location, out);
  if (index.previous) append_location("previousgenerationlocation", *index.previous, out);
  append_bool("allowpolicyupdate", index.allow_policy_update, out);
  if (!index.placement_policy.empty()) out += index.placement_policy + "\n";
  append_number("highestfileuid", index.highest_uid, out);
  append_element("volumelockstate", to_text(index.lock), out);
  append_unknown(index.unknown_tags, out);
}

}  // namespace

struct IndexSerializer::State {
  struct Frame {
    const Directory* directory;
    decltype(Directory::directories)::const_iterator next_directory;
    decltype(Directory::files)::const_iterator next_file;
  };
  const Index& index;
  bool started = false;
  std::vector<Frame> frames;

  void enter(std::string_view name, const Directory& directory, std::string& out) {
    append_directory_head(name, directory, out);
    frames.push_back({&directory, directory.directories.begin(), directory.files.begin()});
  }

  /// One file, or the start or end of one directory.
  void step(std::string& out) {
    auto& frame = frames.back();
    if (frame.next_directory != frame.directory->directories.end()) {
      const auto& [name, directory] = *frame.next_directory++;
      return enter(name, *directory, out);
    }
    if (frame.next_file != frame.directory->files.end()) {
      const auto& [name, file] = *frame.next_file++;
      return append_file(name, *file, out);
    }
    frames.pop_back();
    out += "</contents>\n</directory>\n";
    if (frames.empty()) out += "</ltfsindex>\n";
  }
};

IndexSerializer::IndexSerializer(const Index& index)
    : state_(std::make_unique<State>(State{.index = index, .frames = {}})) {}
IndexSerializer::~IndexSerializer() = default;

bool IndexSerializer::fill(std::string& out, std::size_t wanted) {
  if (!state_->started) {
    state_->started = true;
    append_index_head(state_->index, out);
    state_->enter(state_->index.volume_name, state_->index.root, out);
  }
  while (out.size() < wanted && !state_->frames.empty()) state_->step(out);
  return !state_->frames.empty();
}

}  // namespace reelway::tape::ltfs
