#include "base/encoding.h"

#include <fmt/format.h>

#include <array>
#include <limits>

namespace reelway::base {

namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr std::array<std::int8_t, 256> kBase64Values = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kBase64.size(); ++i) {
    values[static_cast<unsigned char>(kBase64[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}();

bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

}  // namespace

std::string to_hex(ByteView bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte byte : bytes) {
    const auto value = std::to_integer<unsigned>(byte);
    text += kDigits[value >> 4];
    text += kDigits[value & 15];
  }
  return text;
}

Result<Bytes> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return fail(Code::invalid_argument, "hex text of odd length");
  Bytes bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_value(text[i]);
    const int low = hex_value(text[i + 1]);
    if (high < 0 || low < 0)
      return fail(Code::invalid_argument, "hex text with a character that is no hex digit");
    bytes.push_back(static_cast<std::byte>(high << 4 | low));
  }
  return bytes;
}

std::string to_base64(ByteView bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    unsigned group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? std::to_integer<unsigned>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) text += j <= count ? kBase64[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

Result<Bytes> from_base64(std::string_view text) {
  const auto broken = [] { return fail(Code::invalid_argument, "not padded base64"); };
  if (text.size() % 4 != 0) return broken();
  Bytes bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    const std::size_t padding = !last || text[i + 3] != '=' ? 0 : text[i + 2] == '=' ? 2 : 1;
    unsigned group = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      const int value = j < 4 - padding ? kBase64Values[static_cast<unsigned char>(text[i + j])] : 0;
      if (value < 0) return broken();
      group = group << 6 | static_cast<unsigned>(value);
    }
    for (std::size_t j = 0; j < 3 - padding; ++j)
      bytes.push_back(static_cast<std::byte>(group >> (16 - 8 * j) & 255));
    if ((group & ((1U << 8 * padding) - 1)) != 0) return broken();
  }
  return bytes;
}

std::string percent_encode(std::string_view text, bool keep_slash) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (const char c : text) {
    if (is_unreserved(c) || (keep_slash && c == '/')) {
      out += c;
      continue;
    }
    const auto value = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[value >> 4];
    out += kDigits[value & 15];
  }
  return out;
}

Result<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const int high = i + 1 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) return fail(Code::invalid_argument, "broken percent escape");
    out += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return out;
}

namespace {

/// Bytes of the UTF-8 sequence at the front of `text`, 0 when it is not one (RFC 3629: no overlong form, no
/// surrogate, at most U+10FFFF).
std::size_t utf8_sequence_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned lead = at(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                             : lead >= 0xE0 && lead <= 0xEF ? 3
                             : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                            : 0;
  if (length == 0) return 0;
  const unsigned lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (at(1) < lowest || at(1) > highest) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (at(i) < 0x80 || at(i) > 0xBF) return 0;
  }
  return length;
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

Result<std::uint64_t> parse_decimal(std::string_view text) {
  if (text.empty()) return fail(Code::invalid_argument, "no digits");
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return fail(Code::invalid_argument, "not a decimal number");
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (value > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) {
      return fail(Code::invalid_argument, "number over 64 bits");
    }
    value = value * 10 + digit;
  }
  return value;
}

Result<std::uint64_t> parse_hex_u64(std::string_view text) {
  if (text.empty() || text.size() > 16) return fail(Code::invalid_argument, "not 1 to 16 hex digits");
  std::uint64_t value = 0;
  for (const char c : text) {
    const int digit = hex_value(c);
    if (digit < 0) return fail(Code::invalid_argument, "not a hex number");
    value = value << 4 | static_cast<std::uint64_t>(digit);
  }
  return value;
}

}  // namespace reelway::base
