#pragma once
// The threads that coroutines run on: one io_context and one thread each, so that whatever runs on one needs
// no lock against its kin.

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "async/task.h"

namespace reelway::app {

class Reactors {
 public:
  Reactors(std::string name, std::size_t count);
  ~Reactors();  ///< stop()
  Reactors(const Reactors&) = delete;
  Reactors& operator=(const Reactors&) = delete;

  std::vector<async::Executor> executors() const;
  async::Executor first() const { return executors().front(); }
  /// Everything that was spawned has ended before; joins the threads.
  void stop();

 private:
  struct Reactor;
  std::vector<std::unique_ptr<Reactor>> reactors_;
};

}  // namespace reelway::app
