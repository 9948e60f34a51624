#pragma once
// One object inside a bundle, as bundles, batch manifests and the catalog name it; and its form as a line of
// text: fields separated by tabs, names percent-encoded, so that people and scripts can read it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/encoding.h"

namespace reelway::tape {

struct Member {
  std::string bucket;  ///< raw bytes
  std::string key;     ///< raw bytes
  std::string generation;
  std::uint64_t offset = 0;  ///< of the first content byte within the bundle's file
  std::uint64_t length = 0;
  std::string sha256;    ///< of the content, 64 lower-case hex digits; empty when unknown
  base::Bytes metadata;  ///< object metadata, CBOR; opaque here
  friend bool operator==(const Member&, const Member&) = default;
};

/// Appends "member <offset> <length> <sha256> <generation> <bucket> <key> <metadata in base64>" and a
/// newline.
void append_member_line(const Member& member, std::string& out);
/// The line without its newline. data_loss when it is not of that form.
base::Result<Member> parse_member_line(std::string_view line);

/// The parts of `line` between tabs.
std::vector<std::string_view> split_fields(std::string_view line);
/// Takes the next line off `text`; data_loss when no newline ends it.
base::Result<std::string_view> take_line(std::string_view& text);

}  // namespace reelway::tape
