#pragma once
// Cartridges by barcode, drives by number: load and unload are idempotent, so that after a restart or an
// unknown outcome the same call is right again. The inventory is read again whenever the changer says that
// something may have changed. One caller at a time for each drive; moves are in order.

#include <memory>
#include <string>
#include <vector>

#include "tape/changer.h"
#include "tape/drive.h"

namespace reelway::tape {

struct LibraryView {
  struct Bay {
    std::uint16_t address = 0;
    std::string drive_serial;
    std::string barcode;  ///< empty: no cartridge
  };
  struct Slot {
    std::uint16_t address = 0;
    bool mail = false;
    bool full = false;
    std::string barcode;
  };
  std::vector<Bay> bays;  ///< index = number of the drive
  std::vector<Slot> slots;
};

class Library {
 public:
  /// `drives` in any order: each is matched to its bay by serial number at the first refresh; unavailable
  /// when one has no bay.
  Library(Changer& changer, std::vector<Drive*> drives, async::Timer& timer,
          base::Log& log = base::null_log());

  async::Task<void> refresh();
  /// As of the last look.
  const LibraryView& view() const { return view_; }
  std::size_t drive_count() const { return drives_.size(); }
  Drive& drive(std::size_t number) { return *drives_[number]; }

  /// The cartridge is in the drive and ready. Another cartridge that lies there is put away first. not_found:
  /// no such barcode in the library. busy: it is in another drive.
  async::Task<void> load(std::string barcode, std::size_t drive_number);
  /// The drive is empty; the cartridge is in the slot it came from, or in any free one. Success when already
  /// empty.
  async::Task<void> unload(std::size_t drive_number);
  std::optional<std::size_t> drive_of(const std::string& barcode) const;

 private:
  async::Task<void> refresh_if_stale();
  async::Task<void> put_away(std::size_t drive_number);
  base::Result<void> match_drives();

  Changer& changer_;
  std::vector<Drive*> drives_;
  async::Timer& timer_;
  base::Log& log_;
  LibraryView view_;
  std::vector<Element> elements_;
  std::uint64_t seen_change_count_ = 0;
};

}  // namespace reelway::tape
