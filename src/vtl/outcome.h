#pragma once
// What a device model answers to a command: the reply, and what the work cost in modelled time. Helpers for
// the replies that models share.

#include <algorithm>
#include <cstring>

#include "scsi/device.h"
#include "scsi/sense.h"
#include "vtl/library.h"

namespace reelway::vtl {

struct Charge {
  enum class Kind : std::uint8_t { none, motion, read, write, flush } kind = Kind::none;
  Seconds seconds = {};
  bool immediate = false;  ///< the reply does not wait for the motion's end
};

struct Outcome {
  scsi::Reply reply = {};
  Charge charge = {};
};

/// All 16 bytes, so that a CDB of the wrong length reads as zeros.
inline base::ByteView cdb_of(const scsi::Command& command) {
  return std::as_bytes(std::span(command.cdb.bytes));
}

inline scsi::Reply check_condition(const scsi::Sense& sense) {
  return {.status = scsi::Status::check_condition,
          .sense = sense,
          .raw_sense = scsi::encode_descriptor_sense(sense)};
}

inline scsi::Sense sense(std::uint8_t key, std::uint8_t asc, std::uint8_t ascq) {
  return {.key = key, .asc = asc, .ascq = ascq};
}

inline Outcome failed(const scsi::Sense& why) { return {.reply = check_condition(why)}; }
inline Outcome illegal(std::uint8_t asc, std::uint8_t ascq) {
  return failed(sense(scsi::key::illegal_request, asc, ascq));
}
inline Outcome invalid_field() { return illegal(0x24, 0x00); }

/// As much of `bytes` as the allocation length and the initiator's memory take.
inline Outcome data_reply(const scsi::Command& command, base::ByteView bytes, std::size_t allocation) {
  const std::size_t count = std::min({bytes.size(), allocation, command.data_in.size()});
  if (count > 0) std::memcpy(command.data_in.data(), bytes.data(), count);
  return {.reply = {.data_in_bytes = count, .residual = command.data_in.size() - count}};
}

/// Unit attentions, oldest first, each told once; the identity and the state of the logical unit are always
/// told.
class Attentions {
 public:
  void add(const scsi::Sense& attention) {
    if (std::ranges::find(waiting_, attention) == waiting_.end()) waiting_.push_back(attention);
  }
  void clear() { waiting_.clear(); }
  bool empty() const { return waiting_.empty(); }
  scsi::Sense take() {
    const scsi::Sense first = waiting_.front();
    waiting_.erase(waiting_.begin());
    return first;
  }

 private:
  std::vector<scsi::Sense> waiting_;
};

}  // namespace reelway::vtl
