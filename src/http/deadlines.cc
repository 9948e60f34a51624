#include "http/deadlines.h"

namespace reelway::http {

Deadlines::Entry::Entry(std::shared_ptr<Deadlines> list)
    : list_(std::move(list)), place_(list_->entries_.insert(list_->entries_.end(), this)) {}

Deadlines::Entry::~Entry() { list_->entries_.erase(place_); }

Deadlines::Deadlines(async::Executor executor, base::Duration period)
    : timer_(std::move(executor)), period_(period) {}

base::SteadyPoint Deadlines::after(base::Duration duration) {
  return std::chrono::steady_clock::now() + duration;
}

void Deadlines::start() {
  if (stopped_) return;
  timer_.expires_after(period_);
  timer_.async_wait([self = shared_from_this()](boost::system::error_code) { self->tick(); });
}

void Deadlines::stop() {
  stopped_ = true;
  timer_.cancel();
}

void Deadlines::tick() {
  if (stopped_) return;
  const base::SteadyPoint now = after({});
  for (Entry* entry : entries_) {
    if (entry->deadline_ > now) continue;
    entry->clear_deadline();
    entry->on_deadline();
  }
  start();
}

}  // namespace reelway::http
