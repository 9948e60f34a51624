#pragma once
// A medium changer (SMC-3) over a scsi::Device: which element holds which cartridge, and the robot's one
// verb.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "scsi/device.h"

namespace reelway::tape {

enum class ElementKind : std::uint8_t { picker = 1, slot = 2, mail_slot = 3, drive_bay = 4 };

struct Element {
  ElementKind kind = ElementKind::slot;
  std::uint16_t address = 0;
  bool full = false;
  bool accessible = true;               ///< the robot can reach it
  std::string barcode;                  ///< empty: none readable
  std::string drive_serial;             ///< of a drive bay
  std::optional<std::uint16_t> source;  ///< the element that its cartridge came from
};

struct Move {
  std::uint16_t from = 0;
  std::uint16_t to = 0;
};

class Changer {
 public:
  explicit Changer(scsi::Device& device, base::Log& log = base::null_log());
  /// All elements in order of address.
  async::Task<std::vector<Element>> inventory();
  /// not_found: the source is empty. already_exists: the destination is full. access_denied: removal is
  /// prevented.
  async::Task<void> move(Move move);
  /// Counts unit attentions that said the contents may have changed; the inventory is stale when it has
  /// grown.
  std::uint64_t change_count() const { return change_count_; }

 private:
  /// A move must not be repeated when the contents may have changed: it could carry another cartridge than
  /// was meant.
  enum class AfterChange : std::uint8_t { repeat, stop };
  async::Task<scsi::Reply> run(scsi::Command command, AfterChange after_change);
  async::Task<std::size_t> element_count();

  scsi::Device& device_;
  base::Log& log_;
  std::uint16_t picker_ = 0;
  std::uint64_t change_count_ = 1;
};

}  // namespace reelway::tape
