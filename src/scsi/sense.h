#pragma once
// Sense data (SPC-5 section 4.5, fixed and descriptor format) and what to do about it: one table of data
// rows, from key/ASC/ASCQ to a base::Error and an action. Unlisted codes fall back to their sense key.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/encoding.h"
#include "base/result.h"
#include "scsi/device.h"

namespace reelway::scsi {

namespace key {
inline constexpr std::uint8_t no_sense = 0, recovered = 1, not_ready = 2, medium_error = 3,
                              hardware_error = 4, illegal_request = 5, unit_attention = 6, data_protect = 7,
                              blank_check = 8, aborted = 0xb, volume_overflow = 0xd;
}  // namespace key

/// invalid_argument for a truncated or unknown format. Longer data than is known of is fine.
base::Result<Sense> parse_sense(base::ByteView raw);
base::Bytes encode_fixed_sense(const Sense& sense);  ///< 18 bytes and more, deferred errors never
base::Bytes encode_descriptor_sense(const Sense& sense);

enum class SenseAction : std::uint8_t {
  none,            // information about a command that worked (filemark, early warning, short block)
  log,             // worked, after a recovery
  poll,            // becoming ready: ask again
  load,            // needs LOAD UNLOAD
  insert,          // no medium
  check_position,  // reset: read the position again, verify the volume again
  retry,           // the same command once more, after a position check
  take_inventory,  // cartridges may have moved
  other_drive,     // try the cartridge elsewhere, then the other copy
  close_volume,    // stop writing to this volume; requeue since the last sync
  drop_volume,     // the cartridge cannot be used
  drive_down,      // the drive cannot be used
  give_up,         // our mistake, or a state that the caller must change
};
std::string_view to_string(SenseAction action);

struct SenseRow {
  std::uint8_t key;
  int asc;   ///< -1: any
  int ascq;  ///< -1: any
  base::Code code;
  base::Scope scope;
  base::Retry retry;
  SenseAction action;
  std::string_view text;
};

const SenseRow& classify(const Sense& sense);
/// "LOCATE: medium error 03/14/03, end of data not found"
base::Error to_error(const Sense& sense, std::string_view what);
/// The error of a reply that is not good; `what` names the command. A busy or conflicting status too.
base::Error to_error(const Reply& reply, std::string_view what);
/// Ok for good and for a check condition that is only information (SenseAction::none or log).
base::Result<void> check(const Reply& reply, std::string_view what);

}  // namespace reelway::scsi
