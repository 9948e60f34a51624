#pragma once
// A medium changer at CDB level (SMC-3). Knows the shelf and the drives; opens cartridges when a drive needs
// them. A cartridge that a drive has not unloaded is not taken from it (05/53/01), nor one that the host
// locked in (05/53/02). Safe for several threads.

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "vtl/drive_model.h"
#include "vtl/outcome.h"
#include "vtl/shelf.h"

namespace reelway::vtl {

struct ChangerOptions {
  std::filesystem::path directory;
  CartridgeOptions cartridge;
  media::Generation generation = media::Generation::lto9;
  bool media_optimisation = false;
  bool waits = false;  ///< loading takes modelled time; else a moved cartridge is ready at once
  std::uint64_t seed = 1;
};

class ChangerModel {
 public:
  ChangerModel(ChangerOptions options, Shelf shelf, std::vector<DriveModel*> drives);

  Outcome execute(const scsi::Command& command, double now_s);

  /// Modelled loading, by drive, since the last call: the drive's time, not the robot's.
  std::vector<double> take_load_seconds();

  // The world outside.
  base::Result<void> put_in(std::string_view barcode);
  base::Result<void> take_out(std::string_view barcode);
  base::Result<std::shared_ptr<Cartridge>> cartridge(std::string_view barcode);
  std::vector<std::string> barcodes() const;
  /// Drives get back what the shelf says is in them.
  base::Result<void> refill_drives();
  /// New cartridges until the library has this many.
  base::Result<void> stock(std::uint32_t cartridges);
  base::Result<void> lose_power(base::Rng& rng);

 private:
  Outcome dispatch(const scsi::Command& command, double now_s);
  Outcome inquiry(const scsi::Command& command);
  Outcome mode_sense(const scsi::Command& command, bool ten);
  Outcome read_element_status(const scsi::Command& command);
  base::Bytes element_page(scsi::ElementType type, const std::vector<const Bay*>& bays, std::uint8_t flags,
                           bool device_ids);
  base::Bytes element_descriptor(const Bay& bay, bool tags, bool device_ids);
  Outcome move_medium(const scsi::Command& command, double now_s);
  std::optional<scsi::Sense> check_source(const Bay& bay);
  std::optional<scsi::Sense> put_into(const Bay& bay, std::string_view barcode, double now_s);
  double loading_s(const Cartridge& cartridge);
  base::Result<std::shared_ptr<Cartridge>> open(std::string_view barcode);
  DriveModel& drive_at(const Bay& bay) { return *drives_[bay.address - Shelf::kFirstDriveBay]; }

  const ChangerOptions options_;
  mutable std::mutex mutex_;
  Shelf shelf_;
  const std::vector<DriveModel*> drives_;
  std::vector<double> load_seconds_;
  bool prevented_ = false;  ///< the mail slots are locked
  Attentions attentions_;
};

}  // namespace reelway::vtl
