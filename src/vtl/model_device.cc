#include "vtl/model_device.h"

namespace reelway::vtl {
namespace {

constexpr std::size_t kCommandsWaitingMax = 64;

}  // namespace

ModelDevice::ModelDevice(Parts parts, std::unique_ptr<Pacer> pacer)
    : parts_(std::move(parts)),
      pacer_(std::move(pacer)),
      pool_(parts_.inline_io ? nullptr
                             : std::make_unique<async::BlockingPool>(parts_.name, 1, kCommandsWaitingMax)) {}

async::Task<Outcome> ModelDevice::run(const scsi::Command& command) {
  if (pool_ == nullptr) co_return parts_.run(command, pacer_->now_s());
  // The references are good: offload ends only when the call has.
  auto call = [this, &command]() -> base::Result<Outcome> { return parts_.run(command, pacer_->now_s()); };
  co_return co_await async::offload(*pool_, call);
}

async::Task<scsi::Reply> ModelDevice::suffer(const Fault& fault, base::Duration timeout) {
  if (!fault.hang)
    co_return check_condition(fault.sense.value_or(sense(scsi::key::hardware_error, 0x44, 0x00)));
  if (async::Timer* timer = pacer_->timer(); timer != nullptr)
    CO_TRY_VOID(co_await timer->sleep_for(timeout));
  const base::Scope scope =
      parts_.id.kind == DeviceId::Kind::drive ? base::Scope::drive : base::Scope::library;
  co_return base::fail(base::Code::deadline_exceeded, parts_.name + " did not answer", scope,
                       base::Retry::elsewhere);
}

async::Task<scsi::Reply> ModelDevice::execute(scsi::Command command) {
  const std::optional<Fault> fault = parts_.faults->strike(parts_.id, command.cdb.bytes[0]);
  if (fault && fault->when == Fault::When::instead) co_return co_await suffer(*fault, command.timeout);
  CO_TRY(const Outcome outcome, co_await run(command));
  CO_TRY_VOID(co_await pacer_->pass(outcome.charge));
  if (fault) co_return co_await suffer(*fault, command.timeout);
  co_return outcome.reply;
}

}  // namespace reelway::vtl
