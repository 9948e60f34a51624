#pragma once
// One tape drive (SSC-5) over a scsi::Device. Every command's sense becomes an Error by the table in
// sense_table.h; unit attentions that change nothing are retried here, those that lose the position (medium
// changed, reset) are errors, after which only locate, rewind and read_position are accepted. The drive
// counts the blocks it moved over by itself: position() is our count, read_position() asks the drive, and
// confirm_position() fails with data_loss when the two differ. Early warning is a state, not an error. One
// caller at a time.

#include <cstdint>
#include <optional>
#include <string>

#include "base/log.h"
#include "scsi/device.h"
#include "scsi/replies.h"

namespace reelway::async {
class Timer;
}

namespace reelway::tape {

/// Partition 0 is the one at the beginning of tape. Blocks count from 0; a filemark takes a number too.
struct Position {
  std::uint32_t partition = 0;
  std::uint64_t block = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

enum class LoadState : std::uint8_t { empty, loading, not_threaded, ready };

struct DriveIdentity {
  std::string vendor;
  std::string product;
  std::string revision;
  std::string serial;
};

enum class ReadEnd : std::uint8_t { block, filemark, end_of_data };
struct BlockRead {
  ReadEnd end = ReadEnd::block;
  std::size_t bytes = 0;  ///< of the block
};

/// Of one partition, in bytes.
struct Capacity {
  std::uint64_t remaining = 0;
  std::uint64_t maximum = 0;
};

class Drive {
 public:
  Drive(scsi::Device& device, async::Timer& timer, base::Log& log = base::null_log());
  Drive(const Drive&) = delete;
  Drive& operator=(const Drive&) = delete;

  std::string name() const { return device_.name(); }
  async::Task<DriveIdentity> identify();

  async::Task<LoadState> load_state();
  /// Polls until ready; deadline_exceeded after `patience`, not_found when there is no cartridge.
  async::Task<void> wait_ready(base::Duration patience);
  async::Task<void> load();
  /// Rewinds, unthreads and lets the picker have the cartridge. Success when it is already so.
  async::Task<void> unload();

  async::Task<void> rewind();
  /// out_of_range when the partition ends before it.
  async::Task<void> locate(Position to);
  async::Task<void> locate_end_of_data(std::uint32_t partition);
  /// Forward (positive: stops after the last mark) or backward (negative: stops before it). not_found at
  /// either end of the partition.
  async::Task<void> space_filemarks(std::int64_t count);
  /// Asks the drive and takes its answer as our count.
  async::Task<Position> read_position();
  /// data_loss when the drive's position is not our count.
  async::Task<void> confirm_position();
  Position position() const { return position_; }
  /// The position is known and is this one.
  bool is_at(Position position) const { return position_known_ && position_ == position; }

  /// One block; too_large when `into` is smaller than it (the drive stands after the block all the same).
  async::Task<BlockRead> read_block(base::MutableBytes into);
  /// One block. no_space when the partition is full (nothing was written).
  async::Task<void> write_block(base::ByteView block);
  /// `immediate` false: returns after everything is on the medium. count 0 is a flush.
  async::Task<void> write_filemarks(std::uint32_t count, bool immediate);
  /// True once a write told so; false again after the medium changed or an earlier place was located.
  bool early_warning() const { return early_warning_; }
  /// Grows whenever the drive says that it was reset or that the medium may have changed: what was known of
  /// the volume must be verified again.
  std::uint64_t change_count() const { return change_count_; }

  /// Attributes of the cartridge's memory (SPC-5 section 7.4). nullopt: not there.
  async::Task<std::optional<base::Bytes>> read_attribute(std::uint32_t partition, std::uint16_t id);
  /// An empty value removes it.
  async::Task<void> write_attribute(std::uint32_t partition, scsi::Attribute attribute);
  async::Task<Capacity> capacity(std::uint32_t partition);

  /// Everything on the medium is gone afterwards: partition 0 of the smallest size, partition 1 the rest.
  async::Task<void> format_two_partitions();
  async::Task<bool> is_write_protected();

 private:
  /// Whether a command means "from where the head stands", so that it must not be repeated once the position
  /// is lost.
  enum class Relative : std::uint8_t { no, yes };
  async::Task<scsi::Reply> run(scsi::Command command, Relative relative);
  async::Task<void> run_checked(scsi::Command command, Relative relative, std::string_view what);
  base::Result<void> check_position_known() const;
  base::Result<BlockRead> take_read(const scsi::Reply& reply, std::size_t wanted);
  base::Result<void> take_write(const scsi::Reply& reply, std::uint64_t blocks, std::string_view what);
  base::Error lose_position(const scsi::Reply& reply, std::string_view what);

  scsi::Device& device_;
  async::Timer& timer_;
  base::Log& log_;
  Position position_;
  bool position_known_ = false;
  bool early_warning_ = false;
  std::uint64_t change_count_ = 0;
};

}  // namespace reelway::tape
