#pragma once
// Cartridges by barcode, drives by number: load and unload are idempotent, so that after a restart or an
// unknown outcome the same call is right again. The inventory is read again after each move and whenever the
// changer says that something may have changed. One caller at a time.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tape/changer.h"
#include "tape/drive.h"

namespace reelway::tape {

struct LibraryView {
  struct Bay {
    std::uint16_t address = 0;
    std::string drive_serial;
    bool full = false;
    std::string barcode;
    std::optional<std::uint16_t> source;  ///< the slot that its cartridge came from
  };
  struct Slot {
    std::uint16_t address = 0;
    bool mail = false;
    bool full = false;
    bool accessible = true;
    std::string barcode;
  };
  std::vector<Bay> bays;  ///< index = number of the drive
  std::vector<Slot> slots;
};

class Library {
 public:
  /// `drives` in any order: each is matched to its bay by serial number at the first refresh; unavailable
  /// when one has no bay.
  Library(Changer& changer, std::vector<Drive*> drives);

  async::Task<void> refresh();
  /// As of the last look.
  const LibraryView& view() const { return view_; }
  std::size_t drive_count() const { return drives_.size(); }
  Drive& drive(std::size_t number) { return *drives_[number]; }

  /// The cartridge is in the drive and ready. Another one that lies there is put away first. not_found: no
  /// such barcode in the library. busy: it is in another drive.
  async::Task<void> load(std::string barcode, std::size_t drive_number);
  /// The drive is empty; the cartridge is in the slot it came from, or in any free one. Success when already
  /// so. no_space: no free slot.
  async::Task<void> unload(std::size_t drive_number);
  std::optional<std::size_t> drive_of(const std::string& barcode) const;

 private:
  async::Task<void> refresh_if_stale();
  async::Task<bool> try_move(Move move);
  base::Result<LibraryView> make_view(const std::vector<Element>& elements) const;
  std::optional<std::uint16_t> free_slot(std::optional<std::uint16_t> preferred) const;

  Changer& changer_;
  std::vector<Drive*> drives_;
  std::vector<std::string> serials_;
  LibraryView view_;
  std::uint64_t seen_change_count_ = 0;
};

}  // namespace reelway::tape
