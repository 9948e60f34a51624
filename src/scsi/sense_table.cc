// The sense codes that tape drives and changers give (SPC-5 annex on ASC and ASCQ, SSC-5, SMC-3, LTO SCSI
// references), and what to do.

#include <array>

#include "scsi/sense.h"

namespace reelway::scsi {
namespace {

using base::Code;
using base::Retry;
using base::Scope;
using A = SenseAction;

constexpr int kAny = -1;

// The first row that fits wins: exact codes before `kAny`.
constexpr auto kRows = std::to_array<SenseRow>({
    {0x0, 0x00, 0x01, Code::internal, Scope::request, Retry::never, A::none, "filemark"},
    {0x0, 0x00, 0x02, Code::internal, Scope::request, Retry::never, A::none, "early warning"},
    {0x0, 0x00, 0x04, Code::internal, Scope::request, Retry::never, A::none, "beginning of partition"},
    {0x0, 0x00, 0x05, Code::internal, Scope::request, Retry::never, A::none, "end of data"},
    {0x0, 0x00, 0x07, Code::internal, Scope::request, Retry::never, A::none, "programmable early warning"},
    {0x0, 0x00, 0x17, Code::internal, Scope::drive, Retry::never, A::log, "cleaning requested"},
    {0x0, kAny, kAny, Code::internal, Scope::request, Retry::never, A::none, "no sense"},
    {0x1, 0x37, 0x00, Code::internal, Scope::request, Retry::never, A::log, "parameter rounded"},
    {0x1, 0x5d, kAny, Code::internal, Scope::drive, Retry::never, A::log, "failure predicted"},
    {0x1, kAny, kAny, Code::internal, Scope::request, Retry::never, A::log, "recovered error"},
    {0x2, 0x04, 0x00, Code::unavailable, Scope::drive, Retry::later, A::poll, "not ready"},
    {0x2, 0x04, 0x01, Code::busy, Scope::drive, Retry::later, A::poll, "becoming ready"},
    {0x2, 0x04, 0x02, Code::unavailable, Scope::drive, Retry::same_place, A::load, "needs a load command"},
    {0x2, 0x04, 0x03, Code::unavailable, Scope::drive, Retry::elsewhere, A::drive_down,
     "manual intervention required"},
    {0x2, 0x04, 0x07, Code::busy, Scope::drive, Retry::later, A::poll, "operation in progress"},
    {0x2, 0x04, 0x12, Code::unavailable, Scope::drive, Retry::elsewhere, A::drive_down, "offline"},
    {0x2, 0x30, 0x03, Code::unavailable, Scope::drive, Retry::later, A::insert, "cleaning cartridge inside"},
    {0x2, 0x3a, 0x00, Code::not_found, Scope::cartridge, Retry::never, A::insert, "no medium"},
    {0x2, 0x3a, 0x04, Code::unavailable, Scope::drive, Retry::same_place, A::load,
     "cartridge memory accessible, not loaded"},
    {0x2, 0x3a, kAny, Code::not_found, Scope::cartridge, Retry::never, A::insert, "no medium"},
    {0x2, 0x3e, 0x00, Code::unavailable, Scope::drive, Retry::later, A::poll, "not configured itself yet"},
    {0x2, 0x53, 0x00, Code::unavailable, Scope::cartridge, Retry::elsewhere, A::other_drive, "load failed"},
    {0x2, kAny, kAny, Code::unavailable, Scope::drive, Retry::later, A::poll, "not ready"},
    {0x3, 0x0c, kAny, Code::data_loss, Scope::cartridge, Retry::elsewhere, A::close_volume, "write error"},
    {0x3, 0x11, kAny, Code::data_loss, Scope::cartridge, Retry::elsewhere, A::other_drive,
     "unrecovered read error"},
    {0x3, 0x14, 0x03, Code::data_loss, Scope::cartridge, Retry::elsewhere, A::other_drive,
     "end of data not found"},
    {0x3, 0x14, kAny, Code::data_loss, Scope::cartridge, Retry::elsewhere, A::other_drive,
     "recorded entity not found"},
    {0x3, 0x30, kAny, Code::unsupported, Scope::cartridge, Retry::never, A::drop_volume,
     "unknown or incompatible medium"},
    {0x3, 0x31, kAny, Code::data_loss, Scope::cartridge, Retry::elsewhere, A::drop_volume,
     "medium format corrupted"},
    {0x3, 0x3b, kAny, Code::data_loss, Scope::cartridge, Retry::elsewhere, A::other_drive,
     "positioning error"},
    {0x3, 0x50, kAny, Code::data_loss, Scope::cartridge, Retry::elsewhere, A::close_volume, "append error"},
    {0x3, 0x51, kAny, Code::data_loss, Scope::cartridge, Retry::elsewhere, A::drop_volume, "erase failure"},
    {0x3, 0x52, kAny, Code::data_loss, Scope::cartridge, Retry::never, A::drop_volume, "cartridge fault"},
    {0x3, 0x53, kAny, Code::unavailable, Scope::cartridge, Retry::elsewhere, A::other_drive,
     "load or thread failure"},
    {0x3, kAny, kAny, Code::data_loss, Scope::cartridge, Retry::elsewhere, A::other_drive, "medium error"},
    {0x4, 0x10, 0x01, Code::checksum_mismatch, Scope::request, Retry::same_place, A::retry,
     "logical block guard check failed"},
    {0x4, 0x15, kAny, Code::unavailable, Scope::library, Retry::later, A::drive_down,
     "mechanical positioning error"},
    {0x4, 0x44, kAny, Code::unavailable, Scope::drive, Retry::elsewhere, A::drive_down,
     "internal target failure"},
    {0x4, 0x53, kAny, Code::unavailable, Scope::drive, Retry::elsewhere, A::drive_down,
     "load or eject failed"},
    {0x4, kAny, kAny, Code::unavailable, Scope::drive, Retry::elsewhere, A::drive_down, "hardware error"},
    {0x5, 0x1a, kAny, Code::internal, Scope::request, Retry::never, A::give_up,
     "parameter list length error"},
    {0x5, 0x20, kAny, Code::unsupported, Scope::request, Retry::never, A::give_up, "command not supported"},
    {0x5, 0x21, 0x01, Code::invalid_argument, Scope::request, Retry::never, A::give_up,
     "invalid element address"},
    {0x5, 0x24, kAny, Code::internal, Scope::request, Retry::never, A::give_up, "invalid field in command"},
    {0x5, 0x25, kAny, Code::unavailable, Scope::drive, Retry::never, A::drive_down, "no such logical unit"},
    {0x5, 0x26, kAny, Code::internal, Scope::request, Retry::never, A::give_up,
     "invalid field in parameters"},
    {0x5, 0x2c, kAny, Code::precondition_failed, Scope::request, Retry::never, A::give_up,
     "command sequence error"},
    {0x5, 0x30, kAny, Code::unsupported, Scope::cartridge, Retry::never, A::drop_volume,
     "medium cannot be written in this format"},
    {0x5, 0x3b, 0x0c, Code::out_of_range, Scope::request, Retry::never, A::give_up,
     "position past the beginning"},
    {0x5, 0x3b, 0x0d, Code::already_exists, Scope::request, Retry::never, A::take_inventory,
     "destination element full"},
    {0x5, 0x3b, 0x0e, Code::not_found, Scope::request, Retry::never, A::take_inventory,
     "source element empty"},
    {0x5, 0x3b, kAny, Code::unavailable, Scope::library, Retry::later, A::take_inventory,
     "element not accessible"},
    {0x5, 0x53, 0x01, Code::busy, Scope::cartridge, Retry::same_place, A::give_up,
     "drive did not unload the cartridge"},
    {0x5, 0x53, 0x02, Code::busy, Scope::cartridge, Retry::later, A::give_up, "medium removal prevented"},
    {0x5, kAny, kAny, Code::internal, Scope::request, Retry::never, A::give_up, "illegal request"},
    {0x6, 0x28, 0x01, Code::busy, Scope::library, Retry::same_place, A::take_inventory, "mail slot accessed"},
    {0x6, 0x28, kAny, Code::busy, Scope::cartridge, Retry::same_place, A::take_inventory,
     "medium may have changed"},
    {0x6, 0x29, kAny, Code::busy, Scope::drive, Retry::same_place, A::check_position, "power on or reset"},
    {0x6, 0x2a, 0x01, Code::busy, Scope::drive, Retry::same_place, A::retry, "mode parameters changed"},
    {0x6, 0x2a, 0x03, Code::busy, Scope::drive, Retry::elsewhere, A::give_up, "reservation preempted"},
    {0x6, 0x2a, 0x04, Code::busy, Scope::drive, Retry::elsewhere, A::give_up, "reservation released"},
    {0x6, 0x2a, 0x05, Code::busy, Scope::drive, Retry::elsewhere, A::give_up, "registration preempted"},
    {0x6, 0x3f, kAny, Code::busy, Scope::drive, Retry::same_place, A::check_position,
     "microcode or operating conditions changed"},
    {0x6, 0x5a, kAny, Code::busy, Scope::cartridge, Retry::later, A::take_inventory,
     "operator asks for removal"},
    {0x6, kAny, kAny, Code::busy, Scope::drive, Retry::same_place, A::check_position, "unit attention"},
    {0x7, 0x27, kAny, Code::access_denied, Scope::cartridge, Retry::never, A::close_volume,
     "write protected"},
    {0x7, 0x30, kAny, Code::unsupported, Scope::cartridge, Retry::never, A::drop_volume,
     "incompatible or WORM medium"},
    {0x7, 0x50, kAny, Code::access_denied, Scope::cartridge, Retry::never, A::close_volume,
     "WORM append error"},
    {0x7, 0x5a, kAny, Code::access_denied, Scope::cartridge, Retry::never, A::close_volume,
     "write protected by the operator"},
    {0x7, 0x74, kAny, Code::access_denied, Scope::cartridge, Retry::never, A::give_up,
     "encryption key missing or wrong"},
    {0x7, kAny, kAny, Code::access_denied, Scope::cartridge, Retry::never, A::close_volume, "data protected"},
    {0x8, 0x00, 0x05, Code::out_of_range, Scope::request, Retry::never, A::give_up, "end of data"},
    {0x8, 0x14, 0x03, Code::data_loss, Scope::cartridge, Retry::elsewhere, A::other_drive,
     "end of data not found"},
    {0x8, kAny, kAny, Code::out_of_range, Scope::request, Retry::never, A::give_up, "blank medium"},
    {0xb, kAny, kAny, Code::unavailable, Scope::drive, Retry::same_place, A::retry, "command aborted"},
    {0xd, kAny, kAny, Code::no_space, Scope::cartridge, Retry::elsewhere, A::close_volume,
     "volume full, data not written"},
});

constexpr SenseRow kUnknown{
    0xff, kAny, kAny, Code::unavailable, Scope::drive, Retry::elsewhere, A::drive_down, "unknown sense key"};

bool fits(const SenseRow& row, const Sense& sense) {
  return row.key == sense.key && (row.asc == kAny || row.asc == sense.asc) &&
         (row.ascq == kAny || row.ascq == sense.ascq);
}

}  // namespace

const SenseRow& classify(const Sense& sense) {
  for (const SenseRow& row : kRows) {
    if (fits(row, sense)) return row;
  }
  return kUnknown;
}

std::string_view to_string(SenseAction action) {
  switch (action) {
    case A::none:
      return "none";
    case A::log:
      return "log";
    case A::poll:
      return "poll";
    case A::load:
      return "load";
    case A::insert:
      return "insert";
    case A::check_position:
      return "check_position";
    case A::retry:
      return "retry";
    case A::take_inventory:
      return "take_inventory";
    case A::other_drive:
      return "other_drive";
    case A::close_volume:
      return "close_volume";
    case A::drop_volume:
      return "drop_volume";
    case A::drive_down:
      return "drive_down";
    case A::give_up:
      return "give_up";
  }
  return "unknown";
}

}  // namespace reelway::scsi
