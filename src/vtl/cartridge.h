#pragma once
// A cartridge: one or two partitions, the cartridge memory (MAM), and what is fixed to the plastic
// (write-protect tab). The memory is a text file that each change replaces durably, as a drive writes the
// chip at once. Capacities are native, times the scale the cartridge was made with.

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "media/geometry.h"
#include "scsi/replies.h"
#include "vtl/partition.h"

namespace reelway::vtl {

struct CartridgeOptions {
  PartitionOptions partition;
  media::Generation generation = media::Generation::lto9;  ///< a new one's
  double capacity_scale = 1;                               ///< a new one's
};

class Cartridge {
 public:
  /// Opens the folder, or makes a blank cartridge of it.
  static base::Result<std::unique_ptr<Cartridge>> open(const std::filesystem::path& folder,
                                                       std::string barcode, const CartridgeOptions& options);

  const std::string& barcode() const { return barcode_; }
  /// Of the chip; it stays with the folder's content when that gets another barcode.
  const std::string& medium_serial() const { return medium_serial_; }
  const media::Personality& personality() const { return media::personality(generation_); }
  media::Layout layout() const {
    return partitions_.size() == 1 ? media::Layout::one_partition : media::Layout::two_partitions;
  }
  std::uint8_t partition_count() const { return static_cast<std::uint8_t>(partitions_.size()); }
  Partition& partition(std::uint8_t number) { return partitions_[number]; }
  std::uint64_t capacity_bytes(std::uint8_t partition) const;
  media::HeadPosition head_at(std::uint8_t partition, std::uint64_t bytes) const;

  bool write_protected() const { return write_protected_; }
  std::uint64_t load_count() const { return load_count_; }
  std::uint64_t written_bytes() const { return written_bytes_; }
  std::uint64_t read_bytes() const { return read_bytes_; }
  bool characterized() const { return characterized_; }
  std::uint32_t change_reference() const { return change_reference_; }

  base::Result<void> format(std::uint8_t partition_count);  ///< all data is gone; the cartridge memory stays
  base::Result<void> set_proportion(std::uint16_t proportion);  ///< SET CAPACITY: formats to one partition
  base::Result<void> set_write_protected(bool on);
  base::Result<void> count_load();  ///< also: characterized from now on
  base::Result<void> count_moved(std::uint64_t written_bytes, std::uint64_t read_bytes);
  base::Result<void> bump_change_reference();
  base::Result<void> lose_power(base::Rng& rng);

  /// Of the cartridge memory: what hosts wrote into it. An empty value removes.
  using AttributeKey = std::pair<std::uint8_t, std::uint16_t>;  ///< partition, id
  const std::map<AttributeKey, scsi::Attribute>& attributes() const { return attributes_; }
  base::Result<void> store(std::uint8_t partition, const std::vector<scsi::Attribute>& attributes);

 private:
  Cartridge() = default;
  base::Result<void> read_memory(std::string_view text);
  base::Result<void> take_line(const std::vector<std::string_view>& words);
  base::Result<void> write_memory() const;
  base::Result<void> open_partitions(std::uint8_t count);

  std::filesystem::path folder_;
  std::string barcode_;
  std::string medium_serial_;
  PartitionOptions options_;
  media::Generation generation_ = media::Generation::lto9;
  double scale_ = 1;
  std::uint16_t proportion_ = 0xffff;
  bool write_protected_ = false;
  bool characterized_ = false;
  std::uint64_t load_count_ = 0, written_bytes_ = 0, read_bytes_ = 0;
  std::uint32_t change_reference_ = 1;
  std::uint8_t formatted_partitions_ = 1;
  std::map<AttributeKey, scsi::Attribute> attributes_;
  std::vector<Partition> partitions_;
};

/// Splits at single spaces.
std::vector<std::string_view> words_of(std::string_view line);

}  // namespace reelway::vtl
