#pragma once
// One 512-byte ustar header block and the records of a pax extended header (POSIX.1-2017, pax, "ustar
// Interchange Format" and "pax Header Block"). Numbers are octal text; GNU's base-256 form of large sizes is
// read too.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace reelway::tape::bundle {

inline constexpr std::uint64_t kUstarSizeMax = 077777777777;  ///< 8 GiB - 1: more needs a pax `size` record

struct TarHeader {
  std::string name;  ///< prefix and name joined; at most 100 bytes when written
  char type = '0';
  std::uint64_t size = 0;
  std::uint64_t modify_seconds = 0;
  std::uint32_t mode = 0644;
};

void append_tar_header(const TarHeader& header, std::string& out);
/// data_loss: a bad checksum or number.
base::Result<TarHeader> parse_tar_header(std::string_view block);
bool is_zero_block(std::string_view block);

/// "<length> <keyword>=<value>\n", the length counting itself.
void append_pax_record(std::string_view keyword, std::string_view value, std::string& out);

struct PaxRecord {
  std::string_view keyword;
  std::string_view value;
};
/// Takes the next record off `text`. data_loss when it is malformed.
base::Result<PaxRecord> take_pax_record(std::string_view& text);

}  // namespace reelway::tape::bundle
