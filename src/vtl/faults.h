#pragma once
// A plan of faults for a virtual library. Each fault strikes once, at the n-th matching command after it was
// planned, and is then spent. Safe for several threads.

#include <cstdint>
#include <memory>
#include <optional>

#include "scsi/device.h"

namespace reelway::vtl {

struct DeviceId {
  enum class Kind : std::uint8_t { drive, changer } kind = Kind::drive;
  std::uint32_t index = 0;
  static DeviceId drive(std::uint32_t index) { return {Kind::drive, index}; }
  static DeviceId changer() { return {Kind::changer, 0}; }
  friend bool operator==(const DeviceId&, const DeviceId&) = default;
};

struct Fault {
  DeviceId device;
  std::optional<std::uint8_t> opcode = {};  ///< none: any command
  std::uint64_t nth = 1;                    ///< of the matching commands from now on
  /// When: before the command has an effect, or after it (the reply is lost or spoilt, the effect stays).
  enum class When : std::uint8_t { instead, after } when = When::instead;
  /// What the initiator gets: this sense, or nothing until the command's timeout (deadline_exceeded; at once
  /// where there is no timer).
  std::optional<scsi::Sense> sense = {};
  bool hang = false;
};

class Faults {
 public:
  Faults();
  ~Faults();
  void add(const Fault& fault);
  void clear();
  /// Planned and not struck yet.
  std::size_t pending() const;
  /// The fault that strikes this command, if any; counts it.
  std::optional<Fault> strike(DeviceId device, std::uint8_t opcode);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reelway::vtl
