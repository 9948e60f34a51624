#include "tape/ltfs/manifest.h"

#include <algorithm>

#include "base/checksum.h"
#include "tape/ltfs/names.h"
#include "tape/ltfs/version.h"

namespace reelway::tape::ltfs {

using base::Code;
using base::fail;
using base::Result;

namespace {

constexpr std::string_view kMagic = "RWBATCH1\t";
constexpr std::string_view kHead = "manifest";

base::Error damaged(std::string_view what) {
  return fail(Code::data_loss, "batch manifest: " + std::string(what), base::Scope::cartridge);
}

/// Fields separated by tabs.
class Line {
 public:
  explicit Line(std::string& out, std::string_view kind) : out_(out) { out_ += kind; }
  ~Line() { out_ += '\n'; }
  Line& raw(std::string_view text) {
    out_ += '\t';
    out_ += text;
    return *this;
  }
  Line& name(std::string_view text) { return raw(base::percent_encode(text, true)); }
  Line& number(std::uint64_t value) { return raw(std::to_string(value)); }
  Line& time(base::TimePoint value) { return raw(base::to_ltfs_time(value)); }

 private:
  std::string& out_;
};

void append_file(const FileAdded& added, std::string& out) {
  const auto& file = added.file;
  Line(out, "file")
      .name(added.path)
      .number(file.uid)
      .number(file.length)
      .raw(file.readonly ? "readonly" : "")
      .time(file.times.creation)
      .time(file.times.change)
      .time(file.times.modify)
      .time(file.times.access)
      .time(file.times.backup);
  for (const auto& extent : file.extents) {
    Line(out, "extent")
        .number(extent.file_offset)
        .raw({&extent.partition, 1})
        .number(extent.start_block)
        .number(extent.byte_offset)
        .number(extent.byte_count);
  }
  for (const auto& attribute : file.attributes) {
    Line(out, "xattr").name(attribute.key).raw(base::to_base64(base::as_bytes(attribute.value)));
  }
}

/// Walks the lines and keeps what is under construction.
class Decoder {
 public:
  Result<Manifest> decode(std::string_view body);

 private:
  using Fields = std::vector<std::string_view>;
  Result<void> take(std::string_view line);
  Result<void> take_head(const Fields& fields);
  Result<void> take_file(const Fields& fields);
  Result<void> take_extent(const Fields& fields);
  Result<void> take_attribute(const Fields& fields);
  File* open_file();

  Manifest manifest_;
  bool has_head_ = false;
  bool ended_ = false;
  std::uint64_t line_count_ = 0;
};

Result<std::uint64_t> number(std::string_view field) {
  auto value = base::parse_decimal(field);
  if (!value) return damaged("a field that is no number");
  return *value;
}

Result<std::string> name(std::string_view field) {
  auto value = base::percent_decode(field, false);
  if (!value) return damaged("a field that is no name");
  return std::move(*value);
}

Result<std::string> path(std::string_view field) {
  TRY(auto value, name(field));
  if (!is_storable_path(value)) return damaged("a path that LTFS cannot hold");
  return value;
}

Result<Manifest> Decoder::decode(std::string_view body) {
  while (!body.empty()) {
    TRY(const auto line, take_line(body));
    if (ended_) return damaged("lines after its end");
    TRY_VOID(take(line));
    ++line_count_;
  }
  if (!has_head_ || !ended_) return damaged("cut short");
  return std::move(manifest_);
}

Result<void> Decoder::take(std::string_view line) {
  const auto fields = split_fields(line);
  const auto kind = fields[0];
  if (kind == kHead) return take_head(fields);
  if (!has_head_) return damaged("it does not begin as one");
  if (kind == "file") return take_file(fields);
  if (kind == "extent") return take_extent(fields);
  if (kind == "xattr") return take_attribute(fields);
  if (kind == "member") {
    if (manifest_.bundles.empty()) return damaged("a member of no bundle");
    TRY(auto member, parse_member_line(line));
    manifest_.bundles.back().members.push_back(std::move(member));
    return {};
  }
  if (kind == "rename" && fields.size() == 3) {
    TRY(auto from, path(fields[1]));
    TRY(auto to, path(fields[2]));
    manifest_.changes.emplace_back(FileRenamed{std::move(from), std::move(to)});
    return {};
  }
  if (kind == "remove" && fields.size() == 2) {
    TRY(auto removed, path(fields[1]));
    manifest_.changes.emplace_back(FileRemoved{std::move(removed)});
    return {};
  }
  if (kind == "bundle" && fields.size() == 2) {
    TRY(auto bundle, path(fields[1]));
    manifest_.bundles.push_back({.path = std::move(bundle), .members = {}});
    return {};
  }
  if (kind == "end" && fields.size() == 2) {
    TRY(const auto count, number(fields[1]));
    if (count != line_count_) return damaged("lines are missing");
    ended_ = true;
    return {};
  }
  return damaged("an unknown line");
}

Result<void> Decoder::take_head(const Fields& fields) {
  if (has_head_ || fields.size() != 5 || fields[1] != "1") return damaged("not of version 1");
  TRY(manifest_.number, number(fields[2]));
  manifest_.volume_uuid = fields[3];
  TRY(manifest_.time, parse_ltfs_time(fields[4]));
  has_head_ = true;
  return {};
}

Result<void> Decoder::take_file(const Fields& fields) {
  if (fields.size() != 10) return damaged("a bad file line");
  FileAdded added;
  TRY(added.path, path(fields[1]));
  TRY(added.file.uid, number(fields[2]));
  TRY(added.file.length, number(fields[3]));
  added.file.readonly = fields[4] == "readonly";
  TRY(added.file.times.creation, parse_ltfs_time(fields[5]));
  TRY(added.file.times.change, parse_ltfs_time(fields[6]));
  TRY(added.file.times.modify, parse_ltfs_time(fields[7]));
  TRY(added.file.times.access, parse_ltfs_time(fields[8]));
  TRY(added.file.times.backup, parse_ltfs_time(fields[9]));
  if (added.file.length > INT64_MAX) return damaged("a file of impossible size");
  manifest_.changes.emplace_back(std::move(added));
  return {};
}

File* Decoder::open_file() {
  if (manifest_.changes.empty()) return nullptr;
  auto* added = std::get_if<FileAdded>(&manifest_.changes.back());
  return added == nullptr ? nullptr : &added->file;
}

Result<void> Decoder::take_extent(const Fields& fields) {
  auto* file = open_file();
  if (file == nullptr || fields.size() != 6 || fields[2].size() != 1) return damaged("a bad extent line");
  Extent extent{.partition = fields[2][0]};
  TRY(extent.file_offset, number(fields[1]));
  TRY(extent.start_block, number(fields[3]));
  TRY(const auto byte_offset, number(fields[4]));
  TRY(extent.byte_count, number(fields[5]));
  const auto end_before =
      file->extents.empty() ? 0 : file->extents.back().file_offset + file->extents.back().byte_count;
  const bool fits = extent.byte_count > 0 && extent.byte_count <= INT64_MAX &&
                    extent.file_offset <= INT64_MAX - extent.byte_count;
  if (!fits || byte_offset > UINT32_MAX || extent.file_offset < end_before)
    return damaged("an impossible extent");
  extent.byte_offset = static_cast<std::uint32_t>(byte_offset);
  file->extents.push_back(extent);
  return {};
}

Result<void> Decoder::take_attribute(const Fields& fields) {
  auto* file = open_file();
  if (file == nullptr || fields.size() != 3) return damaged("a bad attribute line");
  TRY(auto key, name(fields[1]));
  const auto value = base::from_base64(fields[2]);
  if (!value) return damaged("an attribute that is not base64");
  file->attributes.push_back({std::move(key), std::string(base::as_text(*value))});
  return {};
}

}  // namespace

std::string manifest_path(std::uint64_t number) { return "/.reelway/batches/" + std::to_string(number); }

std::string encode_manifest(const Manifest& manifest) {
  std::string out;
  Line(out, kHead).raw("1").number(manifest.number).raw(manifest.volume_uuid).time(manifest.time);
  for (const auto& change : manifest.changes) {
    if (const auto* added = std::get_if<FileAdded>(&change)) append_file(*added, out);
    if (const auto* renamed = std::get_if<FileRenamed>(&change))
      Line(out, "rename").name(renamed->from).name(renamed->to);
    if (const auto* removed = std::get_if<FileRemoved>(&change)) Line(out, "remove").name(removed->path);
  }
  for (const auto& bundle : manifest.bundles) {
    Line(out, "bundle").name(bundle.path);
    for (const auto& member : bundle.members) append_member_line(member, out);
  }
  const auto line_count = static_cast<std::uint64_t>(std::ranges::count(out, '\n'));
  Line(out, "end").number(line_count);
  return out;
}

Result<Manifest> decode_manifest(std::string_view body) { return Decoder().decode(body); }

std::string encode_trailer(const ManifestTrailer& trailer) {
  std::string rest;
  Line(rest, std::to_string(trailer.number))
      .raw(trailer.volume_uuid)
      .number(trailer.start_block)
      .number(trailer.own_block)
      .raw(trailer.previous_block ? std::to_string(*trailer.previous_block) : "-")
      .number(trailer.body_bytes)
      .number(trailer.body_crc32c)
      .number(trailer.file_uid)
      .time(trailer.time);
  std::string out(kMagic);
  out += std::to_string(base::crc32c(0, base::as_bytes(rest)));
  out += '\t';
  return out + rest;
}

Result<ManifestTrailer> decode_trailer(base::ByteView record) {
  auto text = base::as_text(record);
  if (!text.starts_with(kMagic)) return fail(Code::not_found, "no manifest trailer", base::Scope::object);
  text.remove_prefix(kMagic.size());
  const auto tab = text.find('\t');
  if (tab == std::string_view::npos) return damaged("a damaged trailer");
  TRY(const auto crc, number(text.substr(0, tab)));
  text.remove_prefix(tab + 1);
  if (base::crc32c(0, base::as_bytes(text)) != crc) return damaged("a trailer that fails its CRC");
  TRY(const auto line, take_line(text));
  const auto fields = split_fields(line);
  if (fields.size() != 9 || !text.empty()) return damaged("a trailer of unknown form");
  ManifestTrailer trailer;
  TRY(trailer.number, number(fields[0]));
  trailer.volume_uuid = fields[1];
  TRY(trailer.start_block, number(fields[2]));
  TRY(trailer.own_block, number(fields[3]));
  if (fields[4] != "-") {
    TRY(trailer.previous_block, number(fields[4]));
  }
  TRY(trailer.body_bytes, number(fields[5]));
  TRY(const auto body_crc, number(fields[6]));
  TRY(trailer.file_uid, number(fields[7]));
  TRY(trailer.time, parse_ltfs_time(fields[8]));
  if (body_crc > UINT32_MAX || trailer.start_block >= trailer.own_block)
    return damaged("a trailer of impossible content");
  trailer.body_crc32c = static_cast<std::uint32_t>(body_crc);
  return trailer;
}

}  // namespace reelway::tape::ltfs
