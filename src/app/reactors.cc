#include "app/reactors.h"

#include <pthread.h>

namespace reelway::app {

struct Reactors::Reactor {
  boost::asio::io_context context{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work =
      boost::asio::make_work_guard(context);
  std::jthread thread;
};

Reactors::Reactors(std::string name, std::size_t count) {
  for (std::size_t index = 0; index < count; ++index) {
    auto& reactor = *reactors_.emplace_back(std::make_unique<Reactor>());
    reactor.thread = std::jthread([&reactor] { reactor.context.run(); });
    const std::string title = (name + std::to_string(index)).substr(0, 15);  // the kernel's limit
    pthread_setname_np(reactor.thread.native_handle(), title.c_str());
  }
}

Reactors::~Reactors() { stop(); }

std::vector<async::Executor> Reactors::executors() const {
  std::vector<async::Executor> out;
  for (const auto& reactor : reactors_) out.emplace_back(reactor->context.get_executor());
  return out;
}

void Reactors::stop() {
  for (auto& reactor : reactors_) reactor->work.reset();
  for (auto& reactor : reactors_) {
    if (reactor->thread.joinable()) reactor->thread.join();
  }
}

}  // namespace reelway::app
