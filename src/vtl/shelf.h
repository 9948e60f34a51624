#pragma once
// Where every cartridge is: the elements of the library and what they hold, kept in a text file that is
// replaced durably before a move is told to be done. Element addresses: picker 1, mail slots from 10h, drive
// bays from 100h, slots from 1000h.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "scsi/commands.h"

namespace reelway::vtl {

struct Bay {
  std::uint16_t address = 0;
  scsi::ElementType type = scsi::ElementType::slot;
  std::string barcode = {};  ///< empty: nothing inside
  std::uint16_t source = 0;  ///< the slot that the cartridge came from; 0: none
  bool by_operator = false;
};

struct ShelfOptions {
  std::uint32_t drives = 2, slots = 8, mail_slots = 2;
  bool sync = true;
};

class Shelf {
 public:
  static constexpr std::uint16_t kPicker = 1, kFirstMailSlot = 0x10, kFirstDriveBay = 0x100,
                                 kFirstSlot = 0x1000;

  /// Reads `file`, or starts empty. Cartridges in bays that are no more go to free slots; slots grow to hold
  /// what is there.
  static base::Result<Shelf> open(const std::filesystem::path& file, const ShelfOptions& options);

  std::vector<Bay>& bays() { return bays_; }
  const std::vector<Bay>& bays() const { return bays_; }  ///< by address
  Bay* find(std::uint16_t address);
  Bay* find(std::string_view barcode);
  Bay* free_bay(scsi::ElementType type);
  std::uint32_t count(scsi::ElementType type) const;
  base::Result<void> save() const;

 private:
  Shelf() = default;
  base::Result<void> take(std::string_view text);

  std::filesystem::path file_;
  bool sync_ = true;
  std::vector<Bay> bays_;
};

}  // namespace reelway::vtl
