#pragma once
// A sequential-access device at CDB level (SSC-5, LTO flavour): bytes in, bytes out, and the modelled cost of
// each command; it never waits. Variable-length blocks up to 8 MiB. A cartridge is inserted (the robot's
// work), loads by itself to the beginning of partition 0, and can be taken again once unloaded. Safe for
// several threads: one command at a time.

#include <memory>
#include <mutex>
#include <string>

#include "vtl/cartridge.h"
#include "vtl/outcome.h"

namespace reelway::vtl {

inline constexpr std::uint32_t kBlockBytesMax = 8 * base::kMiB;

class DriveModel {
 public:
  DriveModel(std::uint32_t index, media::Generation generation);

  const std::string& serial() const { return serial_; }
  /// `now_s`: modelled time, for what becomes ready later.
  Outcome execute(const scsi::Command& command, double now_s);

  // The robot's side.
  bool empty() const;
  /// Removable: unloaded, and not locked in.
  bool loaded() const;
  bool removal_prevented() const;
  /// The cartridge is there and threads itself until `ready_s`.
  void insert(std::shared_ptr<Cartridge> cartridge, double ready_s);
  std::shared_ptr<Cartridge> eject();
  std::shared_ptr<Cartridge> cartridge() const;

  /// Power comes back: rewound, everything forgotten, power-on attention.
  void power_on();

 private:
  enum class State : std::uint8_t { empty, loading, held, loaded, unloaded };

  Outcome dispatch(const scsi::Command& command, double now_s);
  /// Set when the command needs a loaded medium and there is none.
  std::optional<scsi::Sense> not_ready(double now_s);
  void finish_loading();

  // drive_data.cc: blocks, filemarks, position
  Outcome read(const scsi::Command& command);
  Outcome write(const scsi::Command& command);
  Outcome write_filemarks(const scsi::Command& command, std::uint64_t count);
  Outcome space(const scsi::Command& command, std::int64_t count);
  Outcome space_blocks(std::int64_t count);
  Outcome space_filemarks(std::int64_t count);
  Outcome locate(const scsi::Command& command);
  Outcome locate_to(std::uint8_t partition, std::uint64_t block, bool immediate);
  Outcome rewind(bool immediate);
  Outcome read_position(const scsi::Command& command);
  Outcome erase(const scsi::Command& command);
  Outcome format_medium(const scsi::Command& command);
  Outcome set_capacity(const scsi::Command& command);
  Outcome load_unload(const scsi::Command& command);
  Outcome unload(bool immediate);
  Outcome move_head(std::uint64_t block, const scsi::Sense* told);
  std::optional<scsi::Sense> before_writing();
  std::optional<scsi::Sense> warning_after_write();
  Outcome media_failure(const scsi::Sense& why);
  Charge motion_to(std::uint8_t partition, std::uint64_t block);
  media::HeadPosition head();
  Partition& here() { return cartridge_->partition(partition_); }
  std::uint64_t early_warning_bytes() const;
  std::uint64_t programmable_warning_bytes() const;

  // drive_pages.cc: identity, modes, logs
  Outcome inquiry(const scsi::Command& command);
  Outcome request_sense(const scsi::Command& command);
  Outcome mode_sense(const scsi::Command& command, bool ten);
  Outcome mode_select(const scsi::Command& command, bool ten);
  bool take_mode_page(base::ByteView page);
  base::Bytes mode_page(std::uint8_t page, std::uint8_t subpage);
  base::Bytes medium_partition_page();
  Outcome log_sense(const scsi::Command& command);
  base::Bytes volume_statistics();
  base::Bytes tape_capacity();
  base::Bytes tape_alert_page();
  Outcome report_density(const scsi::Command& command);
  Outcome report_opcodes(const scsi::Command& command);

  // drive_attributes.cc: cartridge memory
  Outcome read_attribute(const scsi::Command& command);
  Outcome write_attribute(const scsi::Command& command);
  std::vector<scsi::Attribute> all_attributes(std::uint8_t partition);

  const media::Generation generation_;
  const std::string serial_;

  mutable std::mutex mutex_;
  std::shared_ptr<Cartridge> cartridge_;
  State state_ = State::empty;
  double ready_s_ = 0;
  std::uint8_t partition_ = 0;
  std::uint64_t block_ = 0;     ///< the next object
  std::uint64_t bytes_at_ = 0;  ///< block bytes before it: where the head is
  bool prevented_ = false;
  bool compression_ = true;
  std::uint16_t programmable_warning_mb_ = 0;
  bool told_programmable_warning_ = false;
  std::uint8_t next_additional_partitions_ = 0;  ///< mode page 11h, for FORMAT MEDIUM
  bool change_reference_used_ = true;  ///< somebody may hold the present value: the next write must change it
  std::uint64_t written_this_load_ = 0, read_this_load_ = 0;
  std::uint64_t alerts_ = 0;  ///< bit n: TapeAlert flag n
  Attentions attentions_;
};

}  // namespace reelway::vtl
