#pragma once
// The two label records at the start of each partition: VOL1 (80 bytes) and the LTFS label XML. LTFS 2.4.0,
// section 6.1. Layout of a partition: 0 VOL1 | 1 filemark | 2 label XML | 3 filemark | 4 content area.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/encoding.h"

namespace reelway::tape::ltfs {

inline constexpr std::uint64_t kLabelBlock = 2;
inline constexpr std::uint64_t kContentBlock = 4;
inline constexpr std::uint32_t kIndexPartition = 0;  ///< SCSI partition that we format as the index partition
inline constexpr std::uint32_t kDataPartition = 1;
inline constexpr std::uint32_t kBlockBytesMin = 4096;
inline constexpr std::uint32_t kBlockBytesMax = 8 << 20;

struct Label {
  std::string creator;
  std::string format_time;  ///< LTFS time, kept as text: labels of both partitions must agree to the letter
  std::string volume_uuid;  ///< 36 characters
  char location = 'a';      ///< the partition that this label stands on
  char index_partition = 'a';
  char data_partition = 'b';
  std::uint32_t block_bytes = 512 << 10;
  bool compression = true;
  std::string version = "2.4.0";
  friend bool operator==(const Label&, const Label&) = default;
};

/// `serial`: 6 characters A-Z 0-9, or empty.
base::Bytes encode_vol1(std::string_view serial);
/// The volume serial (may be empty). unsupported: the record is not the VOL1 of an LTFS volume.
base::Result<std::string> decode_vol1(base::ByteView record);

std::string encode_label(const Label& label);
/// data_loss: not a label, or one that contradicts itself. unsupported: a version outside 1.0.0 to 2.99.99.
base::Result<Label> decode_label(base::ByteView record);
/// data_loss when the labels do not belong to one volume.
base::Result<void> check_labels_agree(const Label& a, const Label& b);

}  // namespace reelway::tape::ltfs
