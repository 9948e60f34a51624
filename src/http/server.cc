#include "http/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <unordered_set>

#include "async/gate.h"
#include "async/spawn.h"
#include "http/connection.h"
#include "http/deadlines.h"
#include "http/tls.h"
#include "http/transport.h"

namespace reelway::http {

namespace {

namespace net = async::net;
using base::Code;
using base::Result;
using tcp = net::ip::tcp;

constexpr int kBacklog = 4096;
/// Connections over the limit that may wait for their 503 at a time.
constexpr std::size_t kRefusalsMax = 64;
constexpr base::Duration kAcceptPause = std::chrono::milliseconds{100};

struct AddressText {
  std::string address;
  std::uint16_t port = 0;
};

AddressText text_of(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    return {.address = text.data(), .port = ntohs(v6.sin6_port)};
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
  ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  return {.address = text.data(), .port = ntohs(v4.sin_port)};
}

base::HttpPeer peer_of(int descriptor, const sockaddr_storage& address, bool tls) {
  AddressText remote = text_of(address);
  sockaddr_storage local_address{};
  socklen_t size = sizeof local_address;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&local_address), &size);
  AddressText local = text_of(local_address);
  return {.address = std::move(remote.address),
          .port = remote.port,
          .tls = tls,
          .local_address = std::move(local.address),
          .local_port = local.port};
}

/// What belongs to one reactor and is touched there only.
struct Reactor {
  async::Executor executor;
  async::Executor work;  ///< keeps the reactor running until the server is down
  std::shared_ptr<Deadlines> deadlines;
  std::unordered_set<Connection*> connections;
};

class ServerImpl final : public Server {
 public:
  ServerImpl(std::vector<async::Executor> executors, ServerOptions options, Handler handler, base::Log& log);
  Result<void> listen();
  void start();

  std::uint16_t port() const override { return port_; }
  std::size_t connection_count() const override { return connection_count_.load(); }
  async::Task<void> shut_down(base::Duration patience) override;

 private:
  struct Accepted {
    int descriptor;
    base::HttpPeer peer;
    bool v6;
    bool refused;
  };

  async::Task<void> accept_loop();
  bool accept_ready();
  void hand_over(Accepted accepted);
  async::Task<void> serve(Reactor& reactor, Accepted accepted);
  static void on_each_connection(const std::vector<std::shared_ptr<Reactor>>& reactors,
                                 void (Connection::*action)());
  async::Task<void> close_acceptor();

  ServerOptions options_;
  Handler handler_;
  base::Log& log_;
  std::atomic<bool> stopping_ = false;
  ConnectionContext context_{options_, handler_, log_, stopping_};
  std::vector<std::shared_ptr<Reactor>> reactors_;
  std::shared_ptr<TlsContext> tls_;
  tcp::acceptor acceptor_;
  net::steady_timer accept_pause_;
  std::uint16_t port_ = 0;
  std::size_t next_reactor_ = 0;
  std::atomic<std::size_t> connection_count_ = 0;
  async::Gate gate_;
};

ServerImpl::ServerImpl(std::vector<async::Executor> executors, ServerOptions options, Handler handler,
                       base::Log& log)
    : options_(std::move(options)),
      handler_(std::move(handler)),
      log_(log),
      acceptor_(executors.front()),
      accept_pause_(executors.front()) {
  const base::Duration shortest =
      std::min({options_.idle_timeout, options_.head_timeout, options_.progress_timeout});
  for (async::Executor& executor : executors) {
    auto reactor = std::make_shared<Reactor>();
    reactor->deadlines = std::make_shared<Deadlines>(executor, shortest);
    reactor->work = net::prefer(executor, net::execution::outstanding_work.tracked);
    reactor->executor = std::move(executor);
    reactors_.push_back(std::move(reactor));
  }
}

Result<void> ServerImpl::listen() {
  if (!options_.tls_certificate_file.empty()) {
    TRY(tls_, TlsContext::server(options_.tls_certificate_file, options_.tls_key_file));
  }
  boost::system::error_code error;
  const auto address = net::ip::make_address(options_.address, error);
  if (error) {
    return base::fail(
        Code::invalid_argument,
        fmt::format("{} is no address to listen on; give digits such as 127.0.0.1 or ::", options_.address));
  }
  const tcp::endpoint endpoint(address, options_.port);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(kBacklog, error);
  if (!error) acceptor_.non_blocking(true, error);
  if (error) {
    return base::fail(Code::unavailable,
                      fmt::format("cannot listen on {}:{}: {}; choose another address or stop what uses it",
                                  options_.address, options_.port, error.message()),
                      base::Scope::node);
  }
  port_ = acceptor_.local_endpoint().port();
  return {};
}

void ServerImpl::start() {
  async::spawn(reactors_.front()->executor, gate_.hold().value(), "http", log_, accept_loop());
}

// ---- Accepting, on the first reactor

async::Task<void> ServerImpl::accept_loop() {
  while (!stopping_) {
    boost::system::error_code error;
    co_await acceptor_.async_wait(net::socket_base::wait_read,
                                  net::redirect_error(net::use_awaitable, error));
    if (stopping_ || error) break;
    if (accept_ready()) continue;
    // Out of descriptors or memory: what is open must close first.
    accept_pause_.expires_after(kAcceptPause);
    co_await accept_pause_.async_wait(net::redirect_error(net::use_awaitable, error));
  }
  co_return Result<void>{};
}

/// Takes all that wait. False when the system has no more to give.
bool ServerImpl::accept_ready() {
  for (;;) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    const int descriptor = ::accept4(acceptor_.native_handle(), reinterpret_cast<sockaddr*>(&address), &size,
                                     SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) return true;
      log_.write(base::LogLevel::warning, "http", base::from_errno(errno, "accept").detail);
      return false;
    }
    const std::size_t count = ++connection_count_;
    if (count > options_.connections_max + kRefusalsMax) {
      --connection_count_;
      ::close(descriptor);
      continue;
    }
    const int on = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    hand_over({.descriptor = descriptor,
               .peer = peer_of(descriptor, address, tls_ != nullptr),
               .v6 = address.ss_family == AF_INET6,
               .refused = count > options_.connections_max});
  }
}

void ServerImpl::hand_over(Accepted accepted) {
  Reactor& reactor = *reactors_[next_reactor_];
  next_reactor_ = (next_reactor_ + 1) % reactors_.size();
  auto holder = gate_.hold();
  if (!holder.has_value()) {
    --connection_count_;
    ::close(accepted.descriptor);
    return;
  }
  async::spawn(reactor.executor, std::move(*holder), "http", log_, serve(reactor, std::move(accepted)));
}

async::Task<void> ServerImpl::serve(Reactor& reactor, Accepted accepted) {
  {
    tcp::socket socket(reactor.executor);
    boost::system::error_code error;
    socket.assign(accepted.v6 ? tcp::v6() : tcp::v4(), accepted.descriptor, error);
    if (error) {
      ::close(accepted.descriptor);
    } else {
      socket.non_blocking(true, error);
      TlsSession session = tls_ ? tls_->accept(accepted.descriptor) : TlsSession();
      auto transport = std::make_unique<Transport>(std::move(socket), std::move(session), reactor.deadlines);
      Connection connection(context_, std::move(transport), std::move(accepted.peer), accepted.refused);
      reactor.connections.insert(&connection);
      (void)co_await connection.serve();
      reactor.connections.erase(&connection);
    }
  }
  --connection_count_;
  co_return Result<void>{};
}

// ---- Stopping

/// What is posted may run after the server has gone: it holds the reactors, whose last connection has gone
/// then.
void ServerImpl::on_each_connection(const std::vector<std::shared_ptr<Reactor>>& reactors,
                                    void (Connection::*action)()) {
  for (const auto& reactor : reactors) {
    net::post(reactor->executor, [reactor, action] {
      for (Connection* connection : reactor->connections) (connection->*action)();
    });
  }
}

async::Task<void> ServerImpl::close_acceptor() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  accept_pause_.cancel();
  co_return Result<void>{};
}

async::Task<void> ServerImpl::shut_down(base::Duration patience) {
  const async::Executor executor = co_await net::this_coro::executor;
  stopping_ = true;
  CO_TRY_VOID(co_await async::run_on(reactors_.front()->executor, close_acceptor()));
  on_each_connection(reactors_, &Connection::stop_when_idle);
  net::steady_timer patience_timer(executor, patience);
  patience_timer.async_wait([reactors = reactors_](boost::system::error_code error) {
    if (!error) on_each_connection(reactors, &Connection::abort);
  });
  CO_TRY_VOID(co_await gate_.close());
  patience_timer.cancel();
  for (const auto& reactor : reactors_) reactor->work = async::Executor();
  co_return Result<void>{};
}

}  // namespace

base::Result<std::unique_ptr<Server>> Server::create(std::vector<async::Executor> reactors,
                                                     ServerOptions options, Handler handler, base::Log& log) {
  if (reactors.empty()) return base::fail(Code::invalid_argument, "a server needs a reactor");
  // sendfile(2) and OpenSSL have no way to ask for an error instead of the signal.
  std::signal(SIGPIPE, SIG_IGN);
  auto server =
      std::make_unique<ServerImpl>(std::move(reactors), std::move(options), std::move(handler), log);
  TRY_VOID(server->listen());
  server->start();
  return server;
}

}  // namespace reelway::http
