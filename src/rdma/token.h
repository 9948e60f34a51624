#pragma once
// What a client writes into x-amz-rdma-token, in every form seen in the wild. Parsing is strict: exact widths
// where the form has them, hex digits only (either case), no window of zero bytes, none that runs past the
// end of the address space. A token is a capability: never log one, log its hash.
//
//   a  <address 16>:<size 8>:<rkey 8>:<lid 4>:<dct 6>:<gid flag 1>:<gid 32>           81 characters: mlx5
//   dynamic connection (cuObject) b  a, then :<address 16>:<size 16>, perhaps ';' the window is narrowed to
//   the suffix c  <44 bytes as 88 digits>, perhaps :<address>:<size>                             hipObject,
//   RC d  <address>:<size>:ofi1:<provider>:<endpoint name, hex>:<memory key>             libfabric RMA e
//   rc:<connection 32>:<address>:<size>:<rkey>                                     elbencho, RC f  base64 of
//   a or b

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/encoding.h"

namespace reelway::rdma {

struct DcToken {
  std::uint64_t address = 0;
  std::uint32_t length = 0;
  std::uint32_t rkey = 0;
  std::uint16_t lid = 0;
  std::uint32_t dct_number = 0;  ///< 24 bits
  bool has_gid = false;
  std::array<std::byte, 16> gid{};
};

struct OfiToken {
  std::uint64_t address = 0;  ///< virtual address or offset, as the client's domain has it
  std::uint64_t length = 0;
  std::string provider;  ///< "shm", "tcp", "verbs;ofi_rxm"
  base::Bytes endpoint;  ///< 1 to 192 bytes
  std::uint64_t key = 0;
};

/// Forms c and e: recognised, so that they can be declined, and served by a plane of their own.
struct RcToken {
  base::Bytes connection;  ///< 44 or 16 bytes
  std::uint64_t address = 0;
  std::uint64_t length = 0;  ///< 0: the session says
  std::uint32_t rkey = 0;
};

using Token = std::variant<DcToken, OfiToken, RcToken>;

/// invalid_argument says what is wrong, without the token's text.
base::Result<Token> parse_token(std::string_view text);

/// Form d. Digits in lower case.
std::string format_token(const OfiToken& token);

/// The first 16 hex digits of SHA-256 of the token: what a log may show.
std::string token_hash(std::string_view text);

}  // namespace reelway::rdma
