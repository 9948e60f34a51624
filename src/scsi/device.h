#pragma once
// A SCSI logical unit: a value goes in (the command), a value comes out (the reply). The transport interprets
// nothing: CHECK CONDITION is a reply, not an error. Error means that the device could not be asked at all
// (unavailable, scope drive or library; deadline_exceeded with an unknown outcome). One command at a time per
// device; a second execute waits for the first.

#include <array>
#include <cstdint>
#include <string>

#include "async/task.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/encoding.h"

namespace reelway::scsi {

struct Cdb {
  std::array<std::uint8_t, 16> bytes{};
  std::uint8_t length = 6;
};

struct Command {
  Cdb cdb;
  base::ByteView data_out = {};     ///< to the device; empty: none. The memory stays valid until the reply.
  base::MutableBytes data_in = {};  ///< from the device; its size is the allocation
  base::Duration timeout = std::chrono::minutes{5};
};

enum class Status : std::uint8_t {
  good = 0x00,
  check_condition = 0x02,
  busy = 0x08,
  reservation_conflict = 0x18,
  task_aborted = 0x40
};

struct Sense {
  std::uint8_t key = 0;
  std::uint8_t asc = 0;
  std::uint8_t ascq = 0;
  bool filemark = false;
  bool end_of_medium = false;
  bool incorrect_length = false;
  bool information_valid = false;
  std::int64_t information = 0;  ///< residual of the requested count; negative for an overlength block
  friend bool operator==(const Sense&, const Sense&) = default;
};

struct Reply {
  Status status = Status::good;
  Sense sense = {};
  base::Bytes raw_sense = {};
  std::size_t data_in_bytes = 0;  ///< bytes placed in data_in
  std::size_t residual = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  /// For people and logs: "vtl:drive0", "/dev/sg3".
  virtual std::string name() const = 0;
  virtual async::Task<Reply> execute(Command command) = 0;
};

}  // namespace reelway::scsi
