#pragma once
// A server with its reactors on threads, for the tests of this room.

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "async/spawn.h"
#include "http/server.h"

namespace reelway::http {

class TestServer {
 public:
  explicit TestServer(Handler handler, ServerOptions options = {}, std::size_t reactors = 1) {
    std::vector<async::Executor> executors;
    for (std::size_t i = 0; i < reactors; ++i) {
      contexts_.push_back(std::make_unique<async::net::io_context>(1));
      executors.push_back(contexts_.back()->get_executor());
    }
    auto created =
        Server::create(std::move(executors), std::move(options), std::move(handler), base::null_log());
    if (!created.has_value()) throw std::runtime_error(created.error().detail);
    server_ = std::move(*created);
    for (const auto& context : contexts_)
      threads_.emplace_back([context = context.get()] { context->run(); });
  }
  ~TestServer() {
    shut_down(std::chrono::seconds{10});
    for (auto& thread : threads_) thread.join();
  }
  void shut_down(base::Duration patience) {
    if (!std::exchange(down_, true))
      EXPECT_TRUE(async::run_until_done(server_->shut_down(patience)).has_value());
  }
  std::uint16_t port() const { return server_->port(); }
  Server& server() { return *server_; }

 private:
  std::vector<std::unique_ptr<async::net::io_context>> contexts_;
  std::unique_ptr<Server> server_;
  std::vector<std::thread> threads_;
  bool down_ = false;
};

}  // namespace reelway::http
