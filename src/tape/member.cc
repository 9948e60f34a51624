#include "tape/member.h"

#include <algorithm>

namespace reelway::tape {

using base::Code;
using base::fail;
using base::Result;

namespace {

bool is_sha256(std::string_view text) {
  return text.size() == 64 &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

base::Error damaged(std::string_view what) {
  return fail(Code::data_loss, "member line: " + std::string(what), base::Scope::object);
}

}  // namespace

void append_member_line(const Member& member, std::string& out) {
  out += "member\t";
  out += std::to_string(member.offset);
  out += '\t';
  out += std::to_string(member.length);
  out += '\t';
  out += member.sha256;
  out += '\t';
  out += base::percent_encode(member.generation, false);
  out += '\t';
  out += base::percent_encode(member.bucket, false);
  out += '\t';
  out += base::percent_encode(member.key, true);
  out += '\t';
  out += base::to_base64(member.metadata);
  out += '\n';
}

Result<Member> parse_member_line(std::string_view line) {
  const auto fields = split_fields(line);
  if (fields.size() != 8 || fields[0] != "member") return damaged("wrong number of fields");
  Member member;
  auto offset = base::parse_decimal(fields[1]);
  auto length = base::parse_decimal(fields[2]);
  auto generation = base::percent_decode(fields[4], false);
  auto bucket = base::percent_decode(fields[5], false);
  auto key = base::percent_decode(fields[6], false);
  auto metadata = base::from_base64(fields[7]);
  if (!offset || !length) return damaged("bad offset or length");
  if (!fields[3].empty() && !is_sha256(fields[3])) return damaged("bad SHA-256");
  if (!generation || !bucket || !key || !metadata) return damaged("bad encoding");
  if (*offset > UINT64_MAX - *length) return damaged("range out of bounds");
  member.offset = *offset;
  member.length = *length;
  member.sha256 = fields[3];
  member.generation = std::move(*generation);
  member.bucket = std::move(*bucket);
  member.key = std::move(*key);
  member.metadata = std::move(*metadata);
  return member;
}

std::vector<std::string_view> split_fields(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const auto tab = line.find('\t');
    fields.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

Result<std::string_view> take_line(std::string_view& text) {
  const auto newline = text.find('\n');
  if (newline == std::string_view::npos)
    return fail(Code::data_loss, "a line without an end", base::Scope::object);
  const auto line = text.substr(0, newline);
  text.remove_prefix(newline + 1);
  return line;
}

}  // namespace reelway::tape
