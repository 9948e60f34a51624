#include <algorithm>

#include "base/checksum.h"
#include "tape/bundle/bundle.h"
#include "tape/bundle/tar_header.h"

namespace reelway::tape::bundle {

using base::Code;
using base::fail;
using base::Result;

namespace {

constexpr std::uint64_t kExtendedBytesMax = 8 << 20;  // of one pax header
constexpr std::string_view kOurs = "SCHILY.xattr.user.reelway.";

base::Error damaged(std::string_view what) {
  return fail(Code::data_loss, "bundle: " + std::string(what), base::Scope::object);
}

std::uint64_t padded(std::uint64_t bytes) { return (bytes + kTarBlock - 1) / kTarBlock * kTarBlock; }

}  // namespace

Result<TocLocation> find_toc(base::ByteView tail, std::uint64_t bundle_bytes) {
  auto text = base::as_text(tail);
  const auto last = text.find_last_not_of('\0');
  if (last == std::string_view::npos || text[last] != '\n') return damaged("no table of contents at the end");
  text = text.substr(0, last);
  const auto newline = text.rfind('\n');
  const auto nul = text.rfind('\0');
  const auto start = std::max(newline == std::string_view::npos ? 0 : newline + 1,
                              nul == std::string_view::npos ? 0 : nul + 1);
  const auto fields = split_fields(text.substr(start));
  if (fields.size() != 5 || fields[0] != "RWTOC1") return damaged("no table of contents at the end");
  TocLocation location;
  TRY(location.offset, base::parse_decimal(fields[1]));
  TRY(location.length, base::parse_decimal(fields[2]));
  TRY(location.count, base::parse_decimal(fields[3]));
  TRY(const auto crc, base::parse_decimal(fields[4]));
  if (crc > UINT32_MAX || location.offset > bundle_bytes ||
      location.length > bundle_bytes - location.offset) {
    return damaged("a table of contents outside of the bundle");
  }
  location.crc32c = static_cast<std::uint32_t>(crc);
  return location;
}

Result<std::vector<Member>> decode_toc(base::ByteView toc, const TocLocation& location) {
  if (toc.size() != location.length || base::crc32c(0, toc) != location.crc32c)
    return damaged("the table of contents fails its CRC");
  auto text = base::as_text(toc);
  std::vector<Member> members;
  members.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(location.count, text.size() / 16)));
  while (!text.empty()) {
    TRY(const auto line, take_line(text));
    TRY(auto member, parse_member_line(line));
    if (member.offset + member.length > location.offset)
      return damaged("a member beyond the table of contents");
    members.push_back(std::move(member));
  }
  if (members.size() != location.count) return damaged("the table of contents is not complete");
  return members;
}

void Reader::skip(std::uint64_t bytes) {
  bytes = std::min(bytes, skip_);
  skip_ -= bytes;
  position_ += bytes;
}

Result<void> Reader::feed(base::ByteView bytes) {
  auto text = base::as_text(bytes);
  while (!text.empty() && !at_end_) {
    if (skip_ > 0) {
      const auto passed = std::min<std::uint64_t>(skip_, text.size());
      skip(passed);
      text.remove_prefix(static_cast<std::size_t>(passed));
      continue;
    }
    const auto taken =
        static_cast<std::size_t>(std::min<std::uint64_t>(wanted_ - pending_.size(), text.size()));
    pending_ += text.substr(0, taken);
    position_ += taken;
    text.remove_prefix(taken);
    if (pending_.size() < wanted_) continue;
    const auto whole = std::exchange(pending_, {});
    if (record_bytes_ == 0) {
      TRY_VOID(take_header(whole));
    } else {
      const bool ours = records_are_ours_;
      const auto records = std::string_view(whole).substr(0, static_cast<std::size_t>(record_bytes_));
      if (ours) TRY_VOID(take_records(records));
      record_bytes_ = 0;
      wanted_ = kTarBlock;
    }
  }
  return {};
}

Result<void> Reader::take_header(std::string_view block) {
  if (is_zero_block(block)) {
    at_end_ = true;
    return {};
  }
  TRY(const auto header, parse_tar_header(block));
  if (header.type == 'x' || header.type == 'g' || header.type == 'L' || header.type == 'K') {
    if (header.size == 0 || header.size > kExtendedBytesMax)
      return damaged("an extended header of unlikely size");
    records_are_ours_ = header.type == 'x';
    record_bytes_ = header.size;
    wanted_ = padded(header.size);
    return {};
  }
  const auto size = extended_.has_size ? extended_.size : header.size;
  if (size > UINT64_MAX / 2 || position_ > UINT64_MAX / 2 - size)
    return damaged("a member of impossible size");
  Found found{
      .name = extended_.path.empty() ? header.name : extended_.path, .type = header.type, .member = {}};
  const bool has_content = header.type == '0' || header.type == '7';
  found.member.bucket = std::move(extended_.bucket);
  found.member.key = std::move(extended_.key);
  found.member.generation = std::move(extended_.generation);
  found.member.sha256 = std::move(extended_.sha256);
  const auto metadata = base::as_bytes(extended_.metadata);
  found.member.metadata.assign(metadata.begin(), metadata.end());
  found.member.offset = position_;
  found.member.length = has_content ? size : 0;
  found_.push_back(std::move(found));
  extended_ = {};
  skip_ = has_content ? padded(size) : 0;
  return {};
}

Result<void> Reader::take_records(std::string_view text) {
  while (!text.empty()) {
    TRY(const auto record, take_pax_record(text));
    if (record.keyword == "path") extended_.path = record.value;
    if (record.keyword == "size") {
      TRY(extended_.size, base::parse_decimal(record.value));
      extended_.has_size = true;
    }
    if (!record.keyword.starts_with(kOurs)) continue;
    const auto name = record.keyword.substr(kOurs.size());
    if (name == "bucket") extended_.bucket = record.value;
    if (name == "key") extended_.key = record.value;
    if (name == "generation") extended_.generation = record.value;
    if (name == "sha256") extended_.sha256 = record.value;
    if (name == "meta") extended_.metadata = record.value;
  }
  return {};
}

}  // namespace reelway::tape::bundle
