#include "s3/types.h"

#include <array>

namespace reelway::s3 {

namespace {

struct Names {
  std::string_view element;
  std::string_view algorithm;
};
constexpr std::array<Names, 6> kNames{{{"ChecksumCRC32", "CRC32"},
                                       {"ChecksumCRC32C", "CRC32C"},
                                       {"ChecksumCRC64NVME", "CRC64NVME"},
                                       {"ChecksumSHA1", "SHA1"},
                                       {"ChecksumSHA256", "SHA256"},
                                       {"ChecksumMD5", "MD5"}}};

}  // namespace

std::string to_text(const Checksum& checksum) {
  std::string text = base::to_base64(checksum.value);
  if (checksum.composite_part_count != 0) text += "-" + std::to_string(checksum.composite_part_count);
  return text;
}

std::string checksum_header(base::ChecksumKind kind) {
  return "x-amz-checksum-" + std::string(base::to_string(kind));
}

std::string_view checksum_element(base::ChecksumKind kind) {
  return kNames[static_cast<std::size_t>(kind)].element;
}

std::string_view checksum_algorithm(base::ChecksumKind kind) {
  return kNames[static_cast<std::size_t>(kind)].algorithm;
}

}  // namespace reelway::s3
