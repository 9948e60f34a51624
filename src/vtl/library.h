#pragma once
// A tape library in a folder: one changer, some drives, cartridges as files. Its devices answer SSC and SMC
// commands at CDB level, so all above cannot tell it from iron. A command that the host was told is done is
// in the page cache; WRITE FILEMARKS with IMMED=0 makes what was written before it durable (data, then block
// index). What was not so synced may be lost, torn or reordered by a power cut, never misread: each block has
// a CRC32C and a READ of a bad one answers MEDIUM ERROR 11/00. A restarted process finds the library as it
// was. Time: every command has a modelled duration (media). The fast clock only counts it; the lto9 clock
// waits for it on the given timer.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "async/timer.h"
#include "base/result.h"
#include "media/personality.h"
#include "scsi/device.h"
#include "vtl/faults.h"

namespace reelway::vtl {

enum class ClockMode : std::uint8_t { fast, lto9 };
/// pattern: blocks that repeat their first 64 bytes are stored as those 64 bytes only (still read back
/// exactly): for simulations.
enum class Payload : std::uint8_t { full, pattern };

struct Options {
  std::filesystem::path directory = {};  ///< created when absent
  std::uint32_t drives = 2;
  std::uint32_t slots = 0;  ///< 0: as many as cartridges
  std::uint32_t mail_slots = 2;
  std::uint32_t cartridges = 8;  ///< a new library's; an existing one keeps its own and gets what is missing
  media::Generation generation = media::Generation::lto9;
  double capacity_scale = 1;  ///< 0.001: cartridges of 18 GB
  ClockMode clock = ClockMode::fast;
  double time_scale = 1;          ///< lto9: modelled seconds per second of the timer
  async::Timer* timer = nullptr;  ///< lto9 needs one; outlives the library
  Payload payload = Payload::full;
  bool media_optimisation = false;  ///< LTO-9: the first load of a cartridge takes 40 minutes and more
  bool sync = true;                 ///< false: WRITE FILEMARKS waits for no disk (`--durability none`)
  bool inline_io = false;  ///< file calls on the caller's thread, so that a virtual clock's order is fixed
  std::uint64_t seed = 1;
};

/// "DIR" or "DIR:drives=2,slots=20,mailslots=2,cartridges=8,scale=0.001,clock=lto9,speed=20,payload=pattern,
/// optimisation=on,generation=lto8" (any of them).
/// invalid_argument names the word that is wrong.
base::Result<Options> parse_options(std::string_view text);

/// Where a drive's or the changer's modelled time went, in seconds.
struct Seconds {
  double load = 0, unload = 0, rewind = 0, locate = 0, transfer = 0, flush = 0, robot = 0;
  double total() const { return load + unload + rewind + locate + transfer + flush + robot; }
};

class Library {
 public:
  /// busy when another process has it open; data_loss for a folder whose state cannot be read.
  static base::Result<std::unique_ptr<Library>> open(Options options);
  ~Library();  ///< no command may be running
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  scsi::Device& changer();
  scsi::Device& drive(std::uint32_t index);
  std::uint32_t drive_count() const;
  Seconds changer_seconds() const;
  Seconds drive_seconds(std::uint32_t index) const;
  double modelled_seconds() const;  ///< of all drives together

  Faults& faults();

  // For tests and demonstrations: what happens to a library from outside. No command may be running.
  /// Everything loses power and comes back: what was not synced is partly gone (which part, the seed
  /// decides).
  base::Result<void> power_cut(std::uint64_t seed);
  /// Damages one stored block on its medium; not_found for a block that has no bytes.
  base::Result<void> flip_bit(std::string_view barcode, std::uint8_t partition, std::uint64_t block);
  /// A hand takes the cartridge out (its files stay), or puts it, or a new blank one, into a mail slot.
  base::Result<void> take_out(std::string_view barcode);
  base::Result<void> put_in(std::string_view barcode);
  base::Result<void> set_write_protect(std::string_view barcode, bool on);
  /// Of all cartridges inside, in order of their element addresses.
  std::vector<std::string> barcodes() const;
  std::filesystem::path cartridge_folder(std::string_view barcode) const;

 private:
  struct State;
  explicit Library(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace reelway::vtl
