#include "vtl/pacer.h"

#include <algorithm>

namespace reelway::vtl {
namespace {

constexpr double kBytesPerMb = 1e6;
constexpr double kFlushGrace_s = 0.05;
// Shorter waits are left to the next command: moments are absolute, so nothing is lost.
constexpr double kShortestWait_s = 0.0005;

double seconds_between(base::SteadyPoint from, base::SteadyPoint to) {
  return std::chrono::duration<double>(to - from).count();
}

void add(Seconds& total, const Seconds& more) {
  total.load += more.load;
  total.unload += more.unload;
  total.rewind += more.rewind;
  total.locate += more.locate;
  total.transfer += more.transfer;
  total.flush += more.flush;
  total.robot += more.robot;
}

}  // namespace

Pacer::Pacer(const media::Personality& personality, async::Timer* timer, double scale)
    : personality_(personality),
      timer_(timer),
      scale_(scale),
      buffer_s_(static_cast<double>(personality.buffer_bytes) / (personality.nominal_mb_per_s * kBytesPerMb)),
      start_(timer != nullptr ? timer->clock().steady_now() : base::SteadyPoint{}) {}

double Pacer::now_s() const {
  return timer_ == nullptr ? 0 : seconds_between(start_, timer_->clock().steady_now()) * scale_;
}

void Pacer::add_load(double seconds) {
  const std::lock_guard lock(mutex_);
  total_.load += seconds;
}

Seconds Pacer::seconds() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

double Pacer::write_until(double now, double transfer_s) {
  const double gap = now - busy_until_;
  if (writing_ && waits() && gap > 0) {
    if (gap <= forgiven_s_) {
      forgiven_s_ -= gap;
    } else {
      total_.transfer += personality_.back_hitch_s;
      busy_until_ = now + personality_.back_hitch_s;
      forgiven_s_ = 0;
    }
  }
  busy_until_ = std::max(busy_until_, now) + transfer_s;
  const double slowest = personality_.rate_steps_mb_per_s.back();
  forgiven_s_ = std::min(buffer_s_, forgiven_s_ + transfer_s * (personality_.nominal_mb_per_s / slowest - 1));
  writing_ = true;
  return busy_until_ - buffer_s_;
}

std::optional<double> Pacer::account(Charge charge) {
  if (charge.kind == Charge::Kind::none) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const double now = now_s();
  if (flushed_at_) {
    const bool goes_on = charge.kind == Charge::Kind::write && now <= *flushed_at_ + kFlushGrace_s;
    if (!goes_on) {
      total_.flush += personality_.flush_s;
      busy_until_ = std::max(busy_until_, *flushed_at_ + personality_.flush_s);
      writing_ = false;  // the tape stands in position again: no back-hitch besides
    }
    flushed_at_.reset();
  }
  add(total_, charge.seconds);
  switch (charge.kind) {
    case Charge::Kind::write:
      return write_until(now, charge.seconds.transfer);
    case Charge::Kind::read:
      writing_ = false;
      busy_until_ = std::max(busy_until_, now - buffer_s_) + charge.seconds.transfer;
      return busy_until_;
    case Charge::Kind::flush:
      busy_until_ = std::max(busy_until_, now);
      flushed_at_ = busy_until_;
      return busy_until_;
    case Charge::Kind::motion:
    case Charge::Kind::none:
      break;
  }
  writing_ = false;
  forgiven_s_ = 0;
  busy_until_ = std::max(busy_until_, now) + charge.seconds.total();
  if (charge.immediate) return std::nullopt;
  return busy_until_;
}

async::Task<void> Pacer::pass(const Charge& charge) {
  const std::optional<double> until = account(charge);
  if (!until || timer_ == nullptr) co_return base::Result<void>{};
  const double wait_s = *until / scale_ - seconds_between(start_, timer_->clock().steady_now());
  if (wait_s < kShortestWait_s) co_return base::Result<void>{};
  const auto moment =
      start_ + std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(*until / scale_));
  co_return co_await timer_->sleep_until(moment);
}

}  // namespace reelway::vtl
