#pragma once
// The deadlines of all connections of one reactor, looked at by one timer: setting one is a store, not a
// timer operation. A deadline fires up to one period late. The timer runs while any deadline is set.
// Everything here runs on the reactor.

#include <boost/asio/steady_timer.hpp>
#include <list>
#include <memory>

#include "async/task.h"
#include "base/clock.h"

namespace reelway::http {

class Deadlines : public std::enable_shared_from_this<Deadlines> {
 public:
  class Entry {
   public:
    explicit Entry(std::shared_ptr<Deadlines> list);
    virtual ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    void set_deadline(base::SteadyPoint deadline) {
      deadline_ = deadline;
      if (!list_->running_) list_->start();
    }
    void clear_deadline() { deadline_ = base::SteadyPoint::max(); }

   protected:
    /// Called once the deadline has passed, after it was cleared. Must not destroy entries.
    virtual void on_deadline() = 0;

   private:
    friend class Deadlines;
    std::shared_ptr<Deadlines> list_;
    std::list<Entry*>::iterator place_;
    base::SteadyPoint deadline_ = base::SteadyPoint::max();
  };

  /// The period is an eighth of the shortest limit in use, within bounds.
  Deadlines(async::Executor executor, base::Duration shortest_limit);
  static base::SteadyPoint after(base::Duration duration);

 private:
  void start();
  void tick();
  async::net::steady_timer timer_;
  base::Duration period_;
  bool running_ = false;
  std::list<Entry*> entries_;
};

}  // namespace reelway::http
