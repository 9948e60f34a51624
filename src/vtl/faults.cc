#include "vtl/faults.h"

#include <mutex>
#include <vector>

namespace reelway::vtl {

struct Faults::State {
  std::mutex mutex;
  std::vector<Fault> planned;
};

Faults::Faults() : state_(std::make_unique<State>()) {}
Faults::~Faults() = default;

void Faults::add(const Fault& fault) {
  const std::lock_guard lock(state_->mutex);
  state_->planned.push_back(fault);
}

void Faults::clear() {
  const std::lock_guard lock(state_->mutex);
  state_->planned.clear();
}

std::size_t Faults::pending() const {
  const std::lock_guard lock(state_->mutex);
  return state_->planned.size();
}

std::optional<Fault> Faults::strike(DeviceId device, std::uint8_t opcode) {
  const std::lock_guard lock(state_->mutex);
  std::optional<Fault> struck;
  for (auto at = state_->planned.begin(); at != state_->planned.end();) {
    const bool matches = at->device == device && at->opcode.value_or(opcode) == opcode;
    if (matches && at->nth > 1) {
      --at->nth;
    } else if (matches && !struck) {  // one fault a command; a second one strikes the next
      struck = *at;
      at = state_->planned.erase(at);
      continue;
    }
    ++at;
  }
  return struck;
}

}  // namespace reelway::vtl
