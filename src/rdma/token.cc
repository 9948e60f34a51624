#include "rdma/token.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <vector>

#include "base/checksum.h"

namespace reelway::rdma {
namespace {

using base::Code;
using base::Result;

constexpr std::size_t kTokenMax = 1024;
constexpr std::size_t kFieldMax = 8;
constexpr std::size_t kDcLength = 81;
constexpr std::size_t kDcSuffixedLength = 115;
constexpr std::size_t kEndpointMax = 192;
constexpr std::size_t kProviderMax = 32;

base::Error broken(std::string_view what) {
  return base::fail(Code::invalid_argument, fmt::format("rdma token: {}", what));
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> fields;
  while (fields.size() <= kFieldMax) {
    const auto colon = text.find(':');
    fields.push_back(text.substr(0, colon));
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
  }
  return fields;
}

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

/// A field of exactly `width` hex digits.
template <class T>
Result<T> fixed_hex(std::string_view text, std::size_t width) {
  if (text.size() != width || !is_hex(text)) return broken("a field is not hex of its width");
  TRY(const std::uint64_t value, base::parse_hex_u64(text));
  return static_cast<T>(value);
}

Result<std::uint64_t> hex_field(std::string_view text) {
  auto value = base::parse_hex_u64(text);
  if (!value) return broken("a field is not 1 to 16 hex digits");
  return *value;
}

Result<void> check_window(std::uint64_t address, std::uint64_t length) {
  if (length == 0) return broken("the window has no bytes");
  if (length > std::numeric_limits<std::uint64_t>::max() - address) return broken("the window overflows");
  return {};
}

Result<DcToken> parse_descriptor(const std::vector<std::string_view>& fields) {
  DcToken token;
  TRY(token.address, fixed_hex<std::uint64_t>(fields[0], 16));
  TRY(token.length, fixed_hex<std::uint32_t>(fields[1], 8));
  TRY(token.rkey, fixed_hex<std::uint32_t>(fields[2], 8));
  TRY(token.lid, fixed_hex<std::uint16_t>(fields[3], 4));
  TRY(token.dct_number, fixed_hex<std::uint32_t>(fields[4], 6));
  if (fields[5] != "0" && fields[5] != "1") return broken("the GID flag is neither 0 nor 1");
  token.has_gid = fields[5] == "1";
  if (fields[6].size() != 32 || !is_hex(fields[6])) return broken("the GID is not 32 hex digits");
  TRY(const base::Bytes gid, base::from_hex(fields[6]));
  std::copy(gid.begin(), gid.end(), token.gid.begin());
  TRY_VOID(check_window(token.address, token.length));
  return token;
}

Result<DcToken> narrow(DcToken token, std::string_view address_text, std::string_view length_text) {
  TRY(const auto address, fixed_hex<std::uint64_t>(address_text, 16));
  TRY(const auto length, fixed_hex<std::uint64_t>(length_text, 16));
  TRY_VOID(check_window(address, length));
  if (address < token.address || address + length > token.address + token.length) {
    return broken("the suffix lies outside the window");
  }
  token.address = address;
  token.length = static_cast<std::uint32_t>(length);
  return token;
}

Result<Token> parse_dc(std::string_view text) {
  if (text.size() == kDcSuffixedLength + 1 && text.back() == ';') text.remove_suffix(1);
  if (text.size() != kDcLength && text.size() != kDcSuffixedLength) return broken("of no known length");
  const auto fields = split(text);
  if (fields.size() != (text.size() == kDcLength ? 7U : 9U)) return broken("wrong number of fields");
  TRY(DcToken token, parse_descriptor(fields));
  if (fields.size() == 7) return token;
  TRY(token, narrow(token, fields[7], fields[8]));
  return token;
}

bool is_provider(std::string_view text) {
  return !text.empty() && text.size() <= kProviderMax &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_;-") == std::string_view::npos;
}

Result<Token> parse_ofi(const std::vector<std::string_view>& fields) {
  if (fields.size() != 6) return broken("an ofi1 token has 6 fields");
  OfiToken token;
  TRY(token.address, hex_field(fields[0]));
  TRY(token.length, hex_field(fields[1]));
  if (!is_provider(fields[3])) return broken("not a provider's name");
  token.provider = fields[3];
  if (fields[4].empty() || fields[4].size() > 2 * kEndpointMax || fields[4].size() % 2 != 0 ||
      !is_hex(fields[4])) {
    return broken("the endpoint's name is not 1 to 192 bytes in hex");
  }
  TRY(token.endpoint, base::from_hex(fields[4]));
  TRY(token.key, hex_field(fields[5]));
  TRY_VOID(check_window(token.address, token.length));
  return token;
}

Result<Token> parse_rc(std::string_view connection, std::size_t width,
                       std::span<const std::string_view> rest) {
  RcToken token;
  if (connection.size() != width || !is_hex(connection))
    return broken("the connection is not hex of its width");
  TRY(token.connection, base::from_hex(connection));
  if (rest.empty()) return token;
  TRY(token.address, hex_field(rest[0]));
  TRY(token.length, hex_field(rest[1]));
  TRY_VOID(check_window(token.address, token.length));
  if (rest.size() < 3) return token;
  TRY(const std::uint64_t rkey, hex_field(rest[2]));
  if (rkey > std::numeric_limits<std::uint32_t>::max()) return broken("the rkey is wider than 32 bits");
  token.rkey = static_cast<std::uint32_t>(rkey);
  return token;
}

Result<Token> parse_plain(std::string_view text) {
  const auto fields = split(text);
  const std::span all(fields);
  if (fields.size() >= 3 && fields[2] == "ofi1") return parse_ofi(fields);
  if (fields[0] == "rc") {
    if (fields.size() != 5) return broken("an rc token has 5 fields");
    return parse_rc(fields[1], 32, all.subspan(2));
  }
  if (fields[0].size() == 88) {
    if (fields.size() != 1 && fields.size() != 3) return broken("an RC token has 1 or 3 fields");
    return parse_rc(fields[0], 88, all.subspan(1));
  }
  return parse_dc(text);
}

}  // namespace

Result<Token> parse_token(std::string_view text) {
  if (text.empty()) return broken("empty");
  if (text.size() > kTokenMax) return broken("too long");
  if (text.find(':') != std::string_view::npos || text.size() == 88) return parse_plain(text);
  const auto decoded = base::from_base64(text);
  if (!decoded) return broken("of no known form");
  return parse_dc(base::as_text(*decoded));
}

std::string format_token(const OfiToken& token) {
  return fmt::format("{:016x}:{:x}:ofi1:{}:{}:{:x}", token.address, token.length, token.provider,
                     base::to_hex(token.endpoint), token.key);
}

std::string token_hash(std::string_view text) {
  return base::to_hex(base::digest_of(base::ChecksumKind::sha256, base::as_bytes(text))).substr(0, 16);
}

}  // namespace reelway::rdma
