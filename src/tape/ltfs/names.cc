#include "tape/ltfs/names.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "base/encoding.h"

namespace reelway::tape::ltfs {

using base::Code;
using base::fail;
using base::Result;

namespace {

constexpr std::size_t kNameCodePointsMax = 255;
constexpr std::size_t kPathDepthMax = 256;

bool is_ascii(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  }
  return true;
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

bool is_plain_in_encoded_name(unsigned char c) { return c >= 0x20 && c < 0x7F && c != ':' && c != '%'; }

/// Of valid UTF-8: U+FFFE and U+FFFF, which XML 1.0 leaves out.
bool has_noncharacter(std::string_view text) {
  return text.find("\xEF\xBF\xBE") != std::string_view::npos ||
         text.find("\xEF\xBF\xBF") != std::string_view::npos;
}

}  // namespace

bool is_storable_name(std::string_view name) {
  if (name.empty() || name == "." || name == "..") return false;
  if (name.find('/') != std::string_view::npos || name.find('\0') != std::string_view::npos) return false;
  const auto normal = to_normal_form_c(name);
  return normal && *normal == name && count_code_points(name) <= kNameCodePointsMax;
}

bool is_storable_path(std::string_view path) {
  if (path.size() < 2 || path.front() != '/') return false;
  for (std::size_t depth = 0; depth < kPathDepthMax; ++depth) {
    path.remove_prefix(1);
    const auto slash = path.find('/');
    if (!is_storable_name(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash);
  }
  return false;
}

Result<std::string> to_normal_form_c(std::string_view name) {
  if (is_ascii(name)) return std::string(name);
  if (!base::is_valid_utf8(name)) return fail(Code::invalid_argument, "a name that is not UTF-8");
  utf8proc_uint8_t* composed = nullptr;
  const auto length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(name.data()),
                                   static_cast<utf8proc_ssize_t>(name.size()), &composed,
                                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (length < 0) return fail(Code::invalid_argument, "a name without a normal form");
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(composed, &std::free);
  return std::string(reinterpret_cast<const char*>(composed), static_cast<std::size_t>(length));
}

bool is_xml_text(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') return false;
  }
  return is_ascii(text) || (base::is_valid_utf8(text) && !has_noncharacter(text));
}

bool needs_percent_encoding(std::string_view name) {
  return name.find(':') != std::string_view::npos || !is_xml_text(name);
}

std::string percent_encode_name(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain_in_encoded_name(byte)) {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

Result<std::string> percent_decode_name(std::string_view text) { return base::percent_decode(text, false); }

}  // namespace reelway::tape::ltfs
