#include "http/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <csignal>

#include "async/limiter.h"
#include "async/spawn.h"
#include "async/timer.h"
#include "http/chunked.h"
#include "http/head_parser.h"
#include "http/tls.h"
#include "http/transport.h"

namespace reelway::http {

namespace {

namespace net = async::net;
using base::Code;
using base::Result;
using tcp = net::ip::tcp;

constexpr std::size_t kBodyStep = 128 * base::kKiB;
constexpr std::size_t kChunkFramingBuffer = 4096;
constexpr base::Duration kContinuePatience = std::chrono::seconds{1};

bool is_idempotent(std::string_view method) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"GET", "HEAD", "PUT", "DELETE", "OPTIONS"},
      [&](std::string_view other) { return method == other; });
}

bool is_clean(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

/// What the client and its answers share. The connections belong to the executor.
struct Pool {
  Pool(async::Executor on, ClientOptions from)
      : executor(std::move(on)),
        options(std::move(from)),
        deadlines(std::make_shared<Deadlines>(executor,
                                              std::min(options.connect_timeout, options.progress_timeout))),
        limiter(options.connections_max) {}
  async::Executor executor;
  ClientOptions options;
  std::shared_ptr<TlsContext> tls;
  std::shared_ptr<Deadlines> deadlines;
  async::Limiter limiter;
  std::vector<std::unique_ptr<Transport>> idle;
};

/// A connection that a request holds. Whatever thread drops it, it is closed on its executor.
struct Lease {
  Lease(std::shared_ptr<Pool> of, async::Limiter::Permit with)
      : pool(std::move(of)), permit(std::move(with)) {}
  Lease(Lease&&) = default;
  Lease& operator=(Lease&&) = delete;
  ~Lease() {
    if (transport)
      net::post(pool->executor, [transport = std::move(transport), permit = std::move(permit)] {});
  }
  /// On the executor.
  void keep() {
    pool->idle.push_back(std::move(transport));
    permit = async::Limiter::Permit();
  }
  std::shared_ptr<Pool> pool;
  async::Limiter::Permit permit;
  std::unique_ptr<Transport> transport;
};

template <class T>
async::Task<T> on_executor(async::Executor executor, async::Task<T> task) {
  const async::Executor here = co_await net::this_coro::executor;
  Result<T> result =
      here == executor ? co_await std::move(task) : co_await async::run_on(executor, std::move(task));
  co_return result;
}

class ResponseImpl final : public ClientResponse {
 public:
  ResponseImpl(Lease lease, ResponseHead head, bool head_request, bool reusable)
      : lease_(std::move(lease)), head_(std::move(head)), reusable_(reusable && head_.keep_alive) {
    const int status = head_.head.status;
    if (head_request || status == 204 || status == 304) {
      form_ = Form::sized;
    } else if (head_.chunked) {
      form_ = Form::chunked;
    } else if (head_.head.content_length) {
      form_ = Form::sized;
      left_ = *head_.head.content_length;
    } else {
      form_ = Form::to_end;
    }
    if (form_ == Form::sized && left_ == 0) finish();
  }

  const base::HttpResponseHead& head() const override { return head_.head; }
  async::Task<std::size_t> read_body(base::MutableBytes into) override {
    return on_executor(lease_.pool->executor, read_here(into));
  }
  async::Task<base::Bytes> read_all(std::size_t bytes_max) override {
    return on_executor(lease_.pool->executor, read_all_here(bytes_max));
  }

 private:
  enum class Form : std::uint8_t { sized, chunked, to_end };

  async::Task<std::size_t> read_here(base::MutableBytes into);
  async::Task<std::size_t> read_chunked(base::MutableBytes into, base::SteadyPoint deadline);
  async::Task<base::Bytes> read_all_here(std::size_t bytes_max);
  void finish() {
    done_ = true;
    // Bytes after the answer's end would be taken for the next one.
    if (reusable_ && form_ != Form::to_end && lease_.transport->buffered().empty()) lease_.keep();
  }
  static base::Error broke_off() {
    return base::fail(Code::closed, "the server went away in the middle of an answer",
                      base::Scope::connection);
  }

  Lease lease_;
  ResponseHead head_;
  bool reusable_;
  bool done_ = false;
  Form form_ = Form::sized;
  std::uint64_t left_ = 0;
  ChunkedDecoder decoder_;
};

async::Task<std::size_t> ResponseImpl::read_here(base::MutableBytes into) {
  if (done_ || into.empty()) co_return 0U;
  Transport& transport = *lease_.transport;
  const base::SteadyPoint deadline = Deadlines::after(lease_.pool->options.progress_timeout);
  if (form_ == Form::chunked) co_return co_await read_chunked(into, deadline);
  const std::uint64_t wanted =
      form_ == Form::sized ? std::min<std::uint64_t>(into.size(), left_) : into.size();
  CO_TRY(const std::size_t count,
         co_await transport.read(into.first(static_cast<std::size_t>(wanted)), deadline));
  if (count == 0 && form_ == Form::sized) co_return broke_off();
  if (form_ == Form::sized) left_ -= count;
  if (count == 0 || (form_ == Form::sized && left_ == 0)) finish();
  co_return count;
}

async::Task<std::size_t> ResponseImpl::read_chunked(base::MutableBytes into, base::SteadyPoint deadline) {
  Transport& transport = *lease_.transport;
  while (!decoder_.done()) {
    if (const std::uint64_t left = decoder_.data_left(); left > 0) {
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left));
      CO_TRY(const std::size_t count, co_await transport.read(into.first(wanted), deadline));
      if (count == 0) co_return broke_off();
      decoder_.take(count);
      co_return count;
    }
    if (transport.buffered().empty()) CO_TRY_VOID(co_await transport.fill(kChunkFramingBuffer, deadline));
    CO_TRY(const std::size_t used, decoder_.advance(transport.buffered()));
    transport.consume(used);
  }
  finish();
  co_return 0U;
}

async::Task<base::Bytes> ResponseImpl::read_all_here(std::size_t bytes_max) {
  base::Bytes body;
  for (;;) {
    const std::size_t before = body.size();
    // One byte more than allowed, to tell a body of exactly that size from a longer one.
    body.resize(std::min(bytes_max + 1, before + std::clamp<std::size_t>(before, 4096, kBodyStep)));
    CO_TRY(const std::size_t count, co_await read_here(std::span(body).subspan(before)));
    body.resize(before + count);
    if (count == 0) co_return body;
    if (body.size() > bytes_max)
      co_return base::fail(Code::too_large, "an answer over the limit", base::Scope::request);
  }
}

class ClientImpl final : public Client {
 public:
  explicit ClientImpl(std::shared_ptr<Pool> pool) : pool_(std::move(pool)) {}
  ~ClientImpl() override {
    net::post(pool_->executor, [pool = pool_] { pool->idle.clear(); });
  }
  async::Task<std::unique_ptr<ClientResponse>> send(base::HttpRequestHead head, BodyProducer* body) override {
    return on_executor(pool_->executor, send_here(std::move(head), body));
  }

 private:
  using Response = std::unique_ptr<ClientResponse>;

  /// How far an attempt came, to know whether another one may follow.
  struct Attempt {
    bool body_touched = false;
    bool answer_began = false;
    bool body_sent = false;
  };

  async::Task<Response> send_here(base::HttpRequestHead head, BodyProducer* body);
  async::Task<Response> try_once(Lease& lease, const base::HttpRequestHead& head, BodyProducer* body,
                                 Attempt& attempt);
  async::Task<void> send_body(Transport& transport, const base::HttpRequestHead& head, BodyProducer& body,
                              Attempt& attempt);
  async::Task<ResponseHead> read_head(Transport& transport, base::SteadyPoint deadline, Attempt& attempt);
  async::Task<bool> wait_for_continue(Transport& transport);
  async::Task<std::unique_ptr<Transport>> connect();
  async::Task<std::unique_ptr<Transport>> connect_now();
  std::unique_ptr<Transport> take_idle();
  Result<std::string> head_text(const base::HttpRequestHead& head, bool has_body) const;

  std::shared_ptr<Pool> pool_;
};

// ---- Connections

std::unique_ptr<Transport> ClientImpl::take_idle() {
  while (!pool_->idle.empty()) {
    auto transport = std::move(pool_->idle.back());
    pool_->idle.pop_back();
    // Anything that an idle connection says means that it ends.
    if (!transport->input_waits()) return transport;
  }
  return nullptr;
}

async::Task<std::unique_ptr<Transport>> ClientImpl::connect() {
  Result<std::unique_ptr<Transport>> connected =
      co_await async::with_deadline(connect_now(), pool_->options.connect_timeout);
  if (connected.has_value() || connected.error().code == Code::cancelled) co_return connected;
  co_return base::fail(
      Code::unavailable,
      fmt::format("{}:{}: {}", pool_->options.host, pool_->options.port, connected.error().detail),
      base::Scope::peer, base::Retry::later);
}

async::Task<std::unique_ptr<Transport>> ClientImpl::connect_now() {
  const ClientOptions& options = pool_->options;
  boost::system::error_code error;
  std::vector<tcp::endpoint> endpoints;
  if (const auto address = net::ip::make_address(options.host, error); !error) {
    endpoints.emplace_back(address, options.port);
  } else {
    tcp::resolver resolver(pool_->executor);
    const auto found = co_await resolver.async_resolve(options.host, std::to_string(options.port),
                                                       net::redirect_error(net::use_awaitable, error));
    for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  }
  tcp::socket socket(pool_->executor);
  if (!error) co_await net::async_connect(socket, endpoints, net::redirect_error(net::use_awaitable, error));
  if (!error) socket.non_blocking(true, error);
  if (!error) socket.set_option(tcp::no_delay(true), error);
  if (error) co_return base::fail(Code::unavailable, error.message(), base::Scope::peer, base::Retry::later);
  TlsSession session = pool_->tls ? pool_->tls->connect(socket.native_handle(), options.host) : TlsSession();
  auto transport = std::make_unique<Transport>(std::move(socket), std::move(session), pool_->deadlines);
  CO_TRY_VOID(co_await transport->handshake(Deadlines::after(options.connect_timeout)));
  co_return transport;
}

// ---- Requests

Result<std::string> ClientImpl::head_text(const base::HttpRequestHead& head, bool has_body) const {
  bool clean = is_clean(head.method) && is_clean(head.target) && head.target.find(' ') == std::string::npos &&
               !head.target.empty();
  std::string text = head.method + " " + head.target + " HTTP/1.1\r\n";
  if (!head.fields.contains("Host")) {
    const bool standard = pool_->options.port == (pool_->options.tls ? 443 : 80);
    text +=
        "Host: " + pool_->options.host + (standard ? "" : ":" + std::to_string(pool_->options.port)) + "\r\n";
  }
  for (const auto& field : head.fields) {
    clean = clean && is_clean(field.name) && is_clean(field.value);
    const bool ours = base::equals_ignoring_case(field.name, "Content-Length") ||
                      base::equals_ignoring_case(field.name, "Transfer-Encoding") ||
                      base::equals_ignoring_case(field.name, "Expect");
    if (!ours) text += field.name + ": " + field.value + "\r\n";
  }
  if (!clean)
    return base::fail(Code::invalid_argument, "a request head with a line break or space where none may be");
  if (head.content_length) text += fmt::format("Content-Length: {}\r\n", *head.content_length);
  if (!head.content_length && has_body) text += "Transfer-Encoding: chunked\r\n";
  if (head.expects_continue && has_body) text += "Expect: 100-continue\r\n";
  text += "\r\n";
  return text;
}

async::Task<ClientImpl::Response> ClientImpl::send_here(base::HttpRequestHead head, BodyProducer* body) {
  if (body == nullptr && head.content_length.value_or(0) > 0) {
    co_return base::fail(Code::invalid_argument, "a length without a body");
  }
  CO_TRY(auto permit, co_await pool_->limiter.acquire(1, pool_->options.progress_timeout));
  Lease lease(pool_, std::move(permit));
  Attempt attempt;
  lease.transport = take_idle();
  if (lease.transport) {
    Result<Response> first = co_await try_once(lease, head, body, attempt);
    const bool again = !first.has_value() && first.error().code == Code::closed && !attempt.answer_began &&
                       is_idempotent(head.method) && (!attempt.body_touched || body->rewind());
    if (!again) co_return first;
    attempt = Attempt();
  }
  CO_TRY(lease.transport, co_await connect());
  co_return co_await try_once(lease, head, body, attempt);
}

async::Task<ClientImpl::Response> ClientImpl::try_once(Lease& lease, const base::HttpRequestHead& head,
                                                       BodyProducer* body, Attempt& attempt) {
  Transport& transport = *lease.transport;
  CO_TRY(const std::string text, head_text(head, body != nullptr));
  const base::ByteView part = base::as_bytes(text);
  CO_TRY_VOID(co_await transport.write(std::span(&part, 1), false, pool_->options.progress_timeout));
  attempt.body_sent = body == nullptr;
  if (body != nullptr) {
    bool wanted = true;
    if (head.expects_continue) {
      CO_TRY(wanted, co_await wait_for_continue(transport));
    }
    if (wanted) {
      const Result<void> sent = co_await send_body(transport, head, *body, attempt);
      // A server that has answered already may close while we send: the answer says why.
      if (!sent.has_value() && (sent.error().code != Code::closed || !transport.input_waits()))
        co_return sent.error();
    }
  }
  CO_TRY(ResponseHead answer,
         co_await read_head(transport, Deadlines::after(pool_->options.progress_timeout), attempt));
  co_return std::make_unique<ResponseImpl>(std::move(lease), std::move(answer), head.method == "HEAD",
                                           attempt.body_sent);
}

/// False when the server has answered instead.
async::Task<bool> ClientImpl::wait_for_continue(Transport& transport) {
  HeadScan scan;
  const base::SteadyPoint deadline = Deadlines::after(kContinuePatience);
  for (;;) {
    const auto size = find_head_end(transport.buffered(), scan);
    if (!size.has_value()) co_return false;
    if (*size > 0) {
      const bool is_continue =
          transport.buffered().substr(0, *size).find(" 100") == std::string_view("HTTP/1.1").size();
      if (is_continue) transport.consume(*size);
      co_return is_continue;
    }
    const Result<void> came = co_await transport.fill(pool_->options.head_bytes_max, deadline);
    if (!came.has_value() && came.error().code == Code::deadline_exceeded) co_return true;
    if (!came.has_value()) co_return came.error();
  }
}

async::Task<void> ClientImpl::send_body(Transport& transport, const base::HttpRequestHead& head,
                                        BodyProducer& body, Attempt& attempt) {
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(kBodyStep);
  std::uint64_t left = head.content_length.value_or(UINT64_MAX);
  const bool chunked = !head.content_length;
  while (left > 0) {
    if (transport.input_waits()) co_return Result<void>{};
    attempt.body_touched = true;
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(kBodyStep, left));
    const base::MutableBytes into(memory.get(), wanted);
    CO_TRY(const std::size_t count, co_await body.read(into));
    if (count == 0 && !chunked)
      co_return base::fail(Code::invalid_argument, "a body shorter than its length");
    const std::string line = chunked ? fmt::format("{:x}\r\n", count) : "";
    const std::array<base::ByteView, 3> parts{base::as_bytes(line), into.first(count),
                                              base::as_bytes(chunked ? "\r\n" : "")};
    CO_TRY_VOID(co_await transport.write(parts, false, pool_->options.progress_timeout));
    if (count == 0) break;
    left -= count;
  }
  attempt.body_sent = true;
  co_return Result<void>{};
}

async::Task<ResponseHead> ClientImpl::read_head(Transport& transport, base::SteadyPoint deadline,
                                                Attempt& attempt) {
  HeadScan scan;
  for (;;) {
    attempt.answer_began = attempt.answer_began || !transport.buffered().empty();
    const auto size = find_head_end(transport.buffered(), scan);
    if (!size.has_value())
      co_return base::fail(Code::unavailable, std::string(size.error().reason), base::Scope::peer);
    if (*size == 0) {
      CO_TRY_VOID(co_await transport.fill(pool_->options.head_bytes_max, deadline));
      continue;
    }
    auto parsed = parse_response_head(transport.buffered().substr(0, *size));
    if (!parsed.has_value())
      co_return base::fail(Code::unavailable, std::string(parsed.error().reason), base::Scope::peer);
    transport.consume(*size);
    if (parsed->head.status >= 200) co_return std::move(*parsed);
    scan = HeadScan();
  }
}

}  // namespace

Result<std::unique_ptr<Client>> Client::create(async::Executor executor, ClientOptions options) {
  std::signal(SIGPIPE, SIG_IGN);  // see Server::create
  auto pool = std::make_shared<Pool>(std::move(executor), std::move(options));
  if (pool->options.tls) {
    TRY(pool->tls, TlsContext::client(pool->options.tls_ca_file, pool->options.tls_verify));
  }
  return std::make_unique<ClientImpl>(std::move(pool));
}

}  // namespace reelway::http
