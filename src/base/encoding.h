#pragma once
// Text forms of bytes. Decoders refuse what is not exactly of the form.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace reelway::base {

using Bytes = std::vector<std::byte>;

std::string to_hex(ByteView bytes);                ///< lower case
Result<Bytes> from_hex(std::string_view text);     ///< both cases; even length
std::string to_base64(ByteView bytes);             ///< RFC 4648 section 4, padded
Result<Bytes> from_base64(std::string_view text);  ///< padded, no white space, zero pad bits

/// RFC 3986 unreserved characters stay, everything else becomes %XX in upper case; '/' stays when
/// `keep_slash`.
std::string percent_encode(std::string_view text, bool keep_slash);
/// %XX to bytes; '+' to space when `plus_is_space`. invalid_argument for a broken escape.
Result<std::string> percent_decode(std::string_view text, bool plus_is_space);

bool is_valid_utf8(std::string_view text);

/// Digits only, no sign, no overflow.
Result<std::uint64_t> parse_decimal(std::string_view text);
/// 1 to 16 hex digits, no prefix.
Result<std::uint64_t> parse_hex_u64(std::string_view text);

}  // namespace reelway::base
