#pragma once
// Turns a device's charges into time. Without a timer (the fast clock) it only adds them up. With one, the
// device is busy until each charge is worked off and replies wait for that moment, scaled. A drive has a
// buffer: writes return while it has room, so the host runs ahead of the tape by at most the buffer, and a
// host that is late is forgiven as far as the lower speed steps reach, then costs a back-hitch; reads find
// what the drive read ahead since the last one. A flush stops the stream only when no write follows within 50
// ms. Safe for several threads.

#include <mutex>
#include <optional>

#include "async/timer.h"
#include "media/personality.h"
#include "vtl/outcome.h"

namespace reelway::vtl {

class Pacer {
 public:
  Pacer(const media::Personality& personality, async::Timer* timer, double scale);

  bool waits() const { return timer_ != nullptr; }
  async::Timer* timer() const { return timer_; }
  /// Modelled seconds since the start; 0 on the fast clock.
  double now_s() const;
  async::Task<void> pass(const Charge& charge);
  /// Time that passes without a command of this device (a cartridge loads itself).
  void add_load(double seconds);
  Seconds seconds() const;

 private:
  /// The modelled moment of the reply.
  std::optional<double> account(Charge charge);
  double write_until(double now, double transfer_s);

  const media::Personality& personality_;
  async::Timer* const timer_;
  const double scale_;
  const double buffer_s_;
  const base::SteadyPoint start_;

  mutable std::mutex mutex_;
  Seconds total_;
  double busy_until_ = 0;
  double forgiven_s_ = 0;  ///< what the lower speed steps can stretch
  bool writing_ = false;
  std::optional<double> flushed_at_;
};

}  // namespace reelway::vtl
