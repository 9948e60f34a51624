#include "base/checksum.h"
#include "tape/bundle/bundle.h"
#include "tape/bundle/tar_header.h"

namespace reelway::tape::bundle {

namespace {

constexpr std::size_t kComponentBytesMax = 255;  // what file systems take
constexpr std::size_t kNameBytesMax = 4000;      // under PATH_MAX, with room for a folder
constexpr std::size_t kUstarNameBytes = 100;
constexpr std::string_view kTocName = ".reelway/toc";

/// True when every tar unpacks a file of this name, below the folder it stands in.
bool is_plain_path(std::string_view path) {
  if (path.size() > kNameBytesMax || path.find('\0') != std::string_view::npos) return false;
  while (true) {
    const auto slash = path.find('/');
    const auto part = path.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.size() > kComponentBytesMax) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool is_printable_ascii(std::string_view text) {
  for (const char c : text) {
    if (c < 0x20 || c > 0x7E) return false;
  }
  return true;
}

/// Seconds since the epoch, with all nine digits of the fraction when there is one.
std::string pax_time(base::TimePoint time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto fraction = (time - seconds).count();
  auto text = std::to_string(seconds.time_since_epoch().count());
  if (fraction == 0) return text;
  const auto digits = std::to_string(fraction);
  return text + "." + std::string(9 - digits.size(), '0') + digits;
}

std::uint64_t ustar_seconds(base::TimePoint time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
  return seconds < 0 ? 0 : static_cast<std::uint64_t>(seconds);
}

void append_padding(std::uint64_t content_bytes, std::string& out) {
  out.append((kTarBlock - content_bytes % kTarBlock) % kTarBlock, '\0');
}

void append_member_headers(const MemberHead& head, const std::string& name, std::string& out) {
  std::string records;
  const bool long_name = name.size() > kUstarNameBytes || !is_printable_ascii(name);
  if (!base::is_valid_utf8(name) || !base::is_valid_utf8(head.key))
    append_pax_record("hdrcharset", "BINARY", records);
  if (long_name) append_pax_record("path", name, records);
  if (head.length > kUstarSizeMax) append_pax_record("size", std::to_string(head.length), records);
  append_pax_record("mtime", pax_time(head.modify_time), records);
  const auto attribute = [&records](std::string_view key, std::string_view value) {
    append_pax_record(std::string("SCHILY.xattr.user.reelway.") + std::string(key), value, records);
  };
  attribute("generation", head.generation);
  attribute("bucket", head.bucket);
  attribute("key", head.key);
  if (!head.sha256.empty()) attribute("sha256", head.sha256);
  if (!head.metadata.empty()) attribute("meta", base::as_text(head.metadata));

  const auto seconds = ustar_seconds(head.modify_time);
  const TarHeader extended{.name = "PaxHeaders/" + head.generation.substr(0, 64),
                           .type = 'x',
                           .size = records.size(),
                           .modify_seconds = seconds};
  append_tar_header(extended, out);
  out += records;
  append_padding(records.size(), out);
  const auto& short_name = long_name ? head.generation : name;
  append_tar_header(
      {.name = short_name.substr(0, kUstarNameBytes), .size = head.length, .modify_seconds = seconds}, out);
}

}  // namespace

std::string Writer::choose_name(const MemberHead& head) {
  const auto name = head.bucket + "/" + head.key;
  const auto odd = [this, &head] {
    ++odd_count_;
    const auto& generation = head.generation;
    const bool plain = is_plain_path(generation) && generation.find('/') == std::string::npos;
    return ".reelway/odd/" + (plain ? generation : std::to_string(odd_count_));
  };
  if (!is_plain_path(name) || head.bucket == ".reelway" || files_.contains(name) || folders_.contains(name))
    return odd();
  for (auto slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    if (files_.contains(name.substr(0, slash))) return odd();
  }
  for (auto slash = name.rfind('/'); slash != std::string::npos && slash > 0;
       slash = name.rfind('/', slash - 1)) {
    if (!folders_.insert(name.substr(0, slash)).second) break;  // its parents are there too
  }
  files_.insert(name);
  return name;
}

void Writer::begin_member(const MemberHead& head, std::string& out) {
  const auto before = out.size();
  append_member_headers(head, choose_name(head), out);
  size_ += out.size() - before;
  open_ = Member{.bucket = head.bucket,
                 .key = head.key,
                 .generation = head.generation,
                 .offset = size_,
                 .length = head.length,
                 .sha256 = head.sha256,
                 .metadata = head.metadata};
  size_ += head.length;
}

void Writer::end_member(std::string sha256, std::string& out) {
  if (!sha256.empty()) open_.sha256 = std::move(sha256);
  pad(out);
  members_.push_back(std::move(open_));
}

void Writer::drop_member(std::string& out) { pad(out); }

void Writer::pad(std::string& out) {
  const auto before = out.size();
  append_padding(size_, out);
  size_ += out.size() - before;
}

void Writer::finish(std::string& out) {
  std::string text;
  for (const auto& member : members_) append_member_line(member, text);
  const auto table_bytes = text.size();
  const auto crc = base::crc32c(0, base::as_bytes(text));
  const auto before = out.size();
  // The footer's line names the offset, which depends on the header's size alone: one block.
  const auto offset = size_ + kTarBlock;
  text += "RWTOC1\t" + std::to_string(offset) + "\t" + std::to_string(table_bytes) + "\t" +
          std::to_string(members_.size()) + "\t" + std::to_string(crc) + "\n";
  append_tar_header({.name = std::string(kTocName), .size = text.size()}, out);
  out += text;
  append_padding(text.size(), out);
  out.append(2 * kTarBlock, '\0');
  size_ += out.size() - before;
}

}  // namespace reelway::tape::bundle
