#pragma once
// A model as a scsi::Device: faults strike, the model runs on the device's own thread (or inline), and the
// reply comes when its time has passed.

#include <functional>
#include <memory>
#include <string>

#include "async/offload.h"
#include "vtl/faults.h"
#include "vtl/outcome.h"
#include "vtl/pacer.h"

namespace reelway::vtl {

class ModelDevice final : public scsi::Device {
 public:
  using Run = std::function<Outcome(const scsi::Command& command, double now_s)>;
  struct Parts {
    std::string name;
    DeviceId id;
    Run run;
    Faults* faults;
    bool inline_io;
  };
  ModelDevice(Parts parts, std::unique_ptr<Pacer> pacer);

  std::string name() const override { return parts_.name; }
  async::Task<scsi::Reply> execute(scsi::Command command) override;
  Pacer& pacer() { return *pacer_; }

 private:
  async::Task<Outcome> run(const scsi::Command& command);
  async::Task<scsi::Reply> suffer(const Fault& fault, base::Duration timeout);

  const Parts parts_;
  const std::unique_ptr<Pacer> pacer_;
  const std::unique_ptr<async::BlockingPool> pool_;  ///< none: inline
};

}  // namespace reelway::vtl
