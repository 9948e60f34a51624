#include "http/deadlines.h"

#include <algorithm>

namespace reelway::http {

namespace {

constexpr base::Duration kPeriodMin = std::chrono::milliseconds{5};
constexpr base::Duration kPeriodMax = std::chrono::milliseconds{500};

}  // namespace

Deadlines::Entry::Entry(std::shared_ptr<Deadlines> list)
    : list_(std::move(list)), place_(list_->entries_.insert(list_->entries_.end(), this)) {}

Deadlines::Entry::~Entry() {
  list_->entries_.erase(place_);
  if (list_->entries_.empty()) list_->timer_.cancel();
}

Deadlines::Deadlines(async::Executor executor, base::Duration shortest_limit)
    : timer_(std::move(executor)), period_(std::clamp(shortest_limit / 8, kPeriodMin, kPeriodMax)) {}

base::SteadyPoint Deadlines::after(base::Duration duration) {
  return std::chrono::steady_clock::now() + duration;
}

void Deadlines::start() {
  running_ = true;
  timer_.expires_after(period_);
  timer_.async_wait([self = shared_from_this()](boost::system::error_code) { self->tick(); });
}

void Deadlines::tick() {
  running_ = false;
  const base::SteadyPoint now = after({});
  bool any_left = false;
  for (Entry* entry : entries_) {
    if (entry->deadline_ > now) {
      any_left = any_left || entry->deadline_ != base::SteadyPoint::max();
      continue;
    }
    entry->clear_deadline();
    entry->on_deadline();
  }
  if (any_left) start();
}

}  // namespace reelway::http
