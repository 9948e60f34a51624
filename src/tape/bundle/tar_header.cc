#include "tape/bundle/tar_header.h"

#include <algorithm>
#include <cstring>

#include "base/encoding.h"

namespace reelway::tape::bundle {

using base::Code;
using base::fail;
using base::Result;

namespace {

// Offsets and widths of the ustar header's fields.
struct Field {
  std::size_t offset;
  std::size_t width;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kUid{108, 8}, kGid{116, 8}, kSize{124, 12}, kTime{136, 12},
    kChecksum{148, 8}, kMagic{257, 8}, kPrefix{345, 155};
constexpr std::size_t kType = 156;
constexpr std::size_t kBlock = 512;

base::Error damaged(std::string_view what) {
  return fail(Code::data_loss, "tar: " + std::string(what), base::Scope::object);
}

/// Octal digits, zero-filled, with a NUL at the end.
void put_octal(std::string& block, Field field, std::uint64_t value) {
  for (std::size_t i = field.width - 1; i-- > 0; value >>= 3)
    block[field.offset + i] = static_cast<char>('0' + (value & 7));
}

unsigned sum_of(std::string_view block) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const bool in_checksum = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.width;
    sum += in_checksum ? static_cast<unsigned>(' ') : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

std::string_view text_of(std::string_view block, Field field) {
  const auto text = block.substr(field.offset, field.width);
  return text.substr(0, text.find('\0'));
}

Result<std::uint64_t> base256_of(std::string_view text) {
  std::uint64_t value = static_cast<unsigned char>(text[0]) & 0x3FU;
  for (const char c : text.substr(1)) {
    if (value >> 56 != 0) return damaged("a number out of range");
    value = value << 8 | static_cast<unsigned char>(c);
  }
  return value;
}

Result<std::uint64_t> number_of(std::string_view block, Field field) {
  auto text = block.substr(field.offset, field.width);
  if ((static_cast<unsigned char>(text[0]) & 0xC0U) == 0x80U) return base256_of(text);
  text = text.substr(0, text.find('\0'));
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '7') return damaged("a number that is not octal");
    value = value << 3 | static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

}  // namespace

void append_tar_header(const TarHeader& header, std::string& out) {
  std::string block(kBlock, '\0');
  header.name.copy(block.data() + kName.offset, kName.width);
  put_octal(block, kMode, header.mode);
  put_octal(block, kUid, 0);
  put_octal(block, kGid, 0);
  put_octal(block, kSize, std::min(header.size, kUstarSizeMax));
  put_octal(block, kTime, std::min(header.modify_seconds, kUstarSizeMax));
  block[kType] = header.type;
  std::string_view("ustar\00000", 8).copy(block.data() + kMagic.offset, kMagic.width);
  put_octal(block, {kChecksum.offset, kChecksum.width - 1}, sum_of(block));
  block[kChecksum.offset + kChecksum.width - 1] = ' ';
  out += block;
}

Result<TarHeader> parse_tar_header(std::string_view block) {
  if (block.size() != kBlock) return damaged("a short header");
  TRY(const auto checksum, number_of(block, kChecksum));
  if (checksum != sum_of(block)) return damaged("a header with a wrong checksum");
  TarHeader header;
  TRY(header.size, number_of(block, kSize));
  TRY(header.modify_seconds, number_of(block, kTime));
  TRY(const auto mode, number_of(block, kMode));
  header.mode = static_cast<std::uint32_t>(mode & 07777);
  header.type = block[kType] == '\0' ? '0' : block[kType];
  header.name = text_of(block, kName);
  const bool has_prefix =
      block.substr(kMagic.offset, 6) == std::string_view("ustar\0", 6) && block[kPrefix.offset] != '\0';
  if (has_prefix) header.name = std::string(text_of(block, kPrefix)) + "/" + header.name;
  return header;
}

bool is_zero_block(std::string_view block) {
  return std::ranges::all_of(block, [](char c) { return c == '\0'; });
}

void append_pax_record(std::string_view keyword, std::string_view value, std::string& out) {
  const std::size_t rest = keyword.size() + value.size() + 3;  // space, '=', newline
  std::size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) length = std::to_string(length).size() + rest;
  out += std::to_string(length);
  out += ' ';
  out += keyword;
  out += '=';
  out += value;
  out += '\n';
}

Result<PaxRecord> take_pax_record(std::string_view& text) {
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return damaged("a pax record without a length");
  TRY(const auto length, base::parse_decimal(text.substr(0, space)));
  if (length > text.size() || length <= space + 1 || text[length - 1] != '\n')
    return damaged("a pax record of wrong length");
  const auto body = text.substr(space + 1, length - space - 2);
  const auto equals = body.find('=');
  if (equals == std::string_view::npos) return damaged("a pax record without a value");
  text.remove_prefix(length);
  return PaxRecord{.keyword = body.substr(0, equals), .value = body.substr(equals + 1)};
}

}  // namespace reelway::tape::bundle
