#include "http/transport.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>

namespace reelway::http {

namespace {

namespace net = async::net;
using base::Code;
using base::Result;

constexpr std::size_t kFirstBuffer = 4096;
constexpr std::size_t kTlsRecord = 16384;
/// One call's worth, so that a fast reader does not keep the reactor to itself.
constexpr std::uint64_t kSendFileStep = 4 * base::kMiB;
constexpr std::size_t kTlsFileStep = 256 * base::kKiB;

base::Error gone() {
  return base::fail(Code::closed, "the peer closed the connection", base::Scope::connection);
}

base::Error cancelled() { return base::fail(Code::cancelled, "the wait for a peer was cancelled"); }

}  // namespace

Transport::Transport(net::ip::tcp::socket socket, TlsSession tls, std::shared_ptr<Deadlines> deadlines)
    : Entry(std::move(deadlines)), socket_(std::move(socket)), tls_(std::move(tls)) {}

Transport::~Transport() {
  // Best effort and one way: the peer learns that the stream ends here on purpose.
  if (tls_ && !aborted_) {
    ERR_clear_error();
    SSL_shutdown(tls_.get());
  }
}

void Transport::on_deadline() {
  expired_ = true;
  boost::system::error_code ignored;
  socket_.cancel(ignored);
}

void Transport::abort() {
  aborted_ = true;
  ::shutdown(socket_.native_handle(), SHUT_RDWR);
  boost::system::error_code ignored;
  socket_.cancel(ignored);
}

bool Transport::peer_gone() const {
  pollfd descriptor{
      .fd = const_cast<net::ip::tcp::socket&>(socket_).native_handle(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&descriptor, 1, 0) > 0 && (descriptor.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

bool Transport::input_waits() {
  if (begin_ < end_) return true;
  if (tls_) {
    // Records that carry nothing for us (session tickets) are no input.
    std::byte one{};
    std::size_t count = 0;
    ERR_clear_error();
    const Io io = tls_outcome(SSL_peek_ex(tls_.get(), &one, 1, &count), count).io;
    return io != Io::want_read && io != Io::want_write;
  }
  pollfd descriptor{
      .fd = const_cast<net::ip::tcp::socket&>(socket_).native_handle(), .events = POLLIN, .revents = 0};
  return ::poll(&descriptor, 1, 0) > 0;
}

async::Task<void> Transport::wait(Io want, base::SteadyPoint deadline) {
  if (aborted_) co_return gone();
  const auto cancellation = co_await net::this_coro::cancellation_state;
  if (cancellation.cancelled() != net::cancellation_type::none) co_return cancelled();
  expired_ = false;
  set_deadline(deadline);
  boost::system::error_code error;
  const auto direction = want == Io::want_write ? net::socket_base::wait_write : net::socket_base::wait_read;
  co_await socket_.async_wait(direction, net::redirect_error(net::use_awaitable, error));
  clear_deadline();
  drained_ = false;
  if (!error) co_return Result<void>{};
  if (expired_)
    co_return base::fail(Code::deadline_exceeded, "the peer is too slow", base::Scope::connection);
  if (cancellation.cancelled() != net::cancellation_type::none) co_return cancelled();
  co_return gone();
}

// ---- Reading

Transport::Outcome Transport::tls_outcome(int result, std::size_t count) {
  if (result == 1) return {Io::done, count};
  switch (SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return {Io::want_read};
    case SSL_ERROR_WANT_WRITE:
      return {Io::want_write};
    case SSL_ERROR_ZERO_RETURN:
      return {Io::end};
    default:
      return {Io::failed};
  }
}

Transport::Outcome Transport::try_read(base::MutableBytes into) {
  if (tls_) {
    ERR_clear_error();
    std::size_t count = 0;
    const int result = SSL_read_ex(tls_.get(), into.data(), into.size(), &count);
    return tls_outcome(result, count);
  }
  for (;;) {
    const ssize_t count = ::recv(socket_.native_handle(), into.data(), into.size(), 0);
    if (count > 0) {
      drained_ = static_cast<std::size_t>(count) < into.size();
      return {Io::done, static_cast<std::size_t>(count)};
    }
    if (count == 0) return {Io::end};
    if (errno == EINTR) continue;
    return {errno == EAGAIN ? Io::want_read : Io::failed};
  }
}

void Transport::consume(std::size_t count) {
  begin_ += count;
  if (begin_ == end_) begin_ = end_ = 0;
}

/// Makes place behind end_ for at least one byte; there are fewer than `capacity` in it.
void Transport::make_room(std::size_t capacity) {
  if (end_ < capacity_) return;
  const std::size_t used = end_ - begin_;
  if (begin_ > 0 && used < capacity_) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, used);
  } else {
    capacity_ = std::min(std::max(kFirstBuffer, capacity_ * 2), capacity);
    auto larger = std::make_unique_for_overwrite<char[]>(capacity_);
    if (used > 0) std::memcpy(larger.get(), buffer_.get() + begin_, used);
    buffer_ = std::move(larger);
  }
  begin_ = 0;
  end_ = used;
}

async::Task<void> Transport::fill(std::size_t capacity, base::SteadyPoint deadline) {
  if (end_ - begin_ >= capacity)
    co_return base::fail(Code::too_large, "more than fits the buffer", base::Scope::connection);
  for (Outcome outcome{drained_ ? Io::want_read : Io::done};;) {
    if (outcome.io == Io::want_read || outcome.io == Io::want_write) {
      // A connection that only waits needs no memory.
      if (begin_ == end_) {
        buffer_.reset();
        capacity_ = begin_ = end_ = 0;
      }
      CO_TRY_VOID(co_await wait(outcome.io, deadline));
    }
    make_room(capacity);
    outcome = try_read(std::as_writable_bytes(std::span(buffer_.get() + end_, capacity_ - end_)));
    if (outcome.io == Io::end || outcome.io == Io::failed) co_return gone();
    if (outcome.io != Io::done) continue;
    end_ += outcome.count;
    co_return Result<void>{};
  }
}

async::Task<std::size_t> Transport::read(base::MutableBytes into, base::SteadyPoint deadline) {
  if (begin_ < end_) {
    const std::size_t count = std::min(into.size(), end_ - begin_);
    std::memcpy(into.data(), buffer_.get() + begin_, count);
    consume(count);
    co_return count;
  }
  if (into.empty()) co_return 0U;
  for (Outcome outcome{drained_ ? Io::want_read : Io::done};;) {
    if (outcome.io == Io::want_read || outcome.io == Io::want_write)
      CO_TRY_VOID(co_await wait(outcome.io, deadline));
    outcome = try_read(into);
    if (outcome.io == Io::done) co_return outcome.count;
    if (outcome.io == Io::end) co_return 0U;
    if (outcome.io == Io::failed) co_return gone();
  }
}

// ---- Writing

Transport::Outcome Transport::try_write_tls(std::span<const base::ByteView> parts) {
  // Small parts share a record: a head of its own would cost a packet and a wake-up of the peer.
  std::array<std::byte, kTlsRecord> record;
  std::size_t filled = 0;
  base::ByteView out = parts.front();
  if (parts.front().size() < record.size() && parts.size() > 1) {
    for (const base::ByteView part : parts) {
      const std::size_t count = std::min(part.size(), record.size() - filled);
      std::ranges::copy(part.first(count), record.begin() + static_cast<std::ptrdiff_t>(filled));
      filled += count;
    }
    out = base::ByteView(record).first(filled);
  }
  ERR_clear_error();
  std::size_t count = 0;
  const int result = SSL_write_ex(tls_.get(), out.data(), out.size(), &count);
  return tls_outcome(result, count);
}

Transport::Outcome Transport::try_write(std::span<const base::ByteView> parts, bool more) {
  if (tls_) return try_write_tls(parts);
  std::array<iovec, kPartsMax> vectors;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    vectors[i] = {.iov_base = const_cast<std::byte*>(parts[i].data()), .iov_len = parts[i].size()};
  }
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = parts.size();
  for (;;) {
    const ssize_t count = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    if (count >= 0) return {Io::done, static_cast<std::size_t>(count)};
    if (errno == EINTR) continue;
    return {errno == EAGAIN ? Io::want_write : Io::failed};
  }
}

async::Task<void> Transport::write(std::span<const base::ByteView> parts, bool more, base::Duration limit) {
  std::array<base::ByteView, kPartsMax> rest_memory;
  std::size_t rest_count = 0;
  for (const base::ByteView part : parts) {
    if (!part.empty()) rest_memory[rest_count++] = part;
  }
  std::span<base::ByteView> rest(rest_memory.data(), rest_count);
  while (!rest.empty()) {
    const Outcome outcome = try_write(rest, more);
    if (outcome.io == Io::failed || outcome.io == Io::end) co_return gone();
    if (outcome.io != Io::done) {
      CO_TRY_VOID(co_await wait(outcome.io, Deadlines::after(limit)));
      continue;
    }
    std::size_t written = outcome.count;
    while (!rest.empty() && written >= rest.front().size()) {
      written -= rest.front().size();
      rest = rest.subspan(1);
    }
    if (written > 0) rest.front() = rest.front().subspan(written);
  }
  co_return Result<void>{};
}

Transport::Outcome Transport::try_send_file(int file, std::uint64_t offset, std::uint64_t length) {
  auto position = static_cast<off_t>(offset);
  for (;;) {
    const ssize_t count = ::sendfile(socket_.native_handle(), file, &position,
                                     static_cast<std::size_t>(std::min(length, kSendFileStep)));
    if (count > 0) return {Io::done, static_cast<std::size_t>(count)};
    if (count == 0) return {Io::end};
    if (errno == EINTR) continue;
    return {errno == EAGAIN ? Io::want_write : Io::failed};
  }
}

async::Task<void> Transport::send_file(int file, std::uint64_t offset, std::uint64_t length,
                                       base::Duration limit, std::uint64_t& sent) {
  if (tls_) {
    const Result<void> written = co_await send_file_tls(file, offset, length, limit, sent);
    co_return written;
  }
  while (length > 0) {
    const Outcome outcome = try_send_file(file, offset, length);
    if (outcome.io == Io::failed) co_return gone();
    if (outcome.io == Io::end)
      co_return base::fail(Code::data_loss, "the file ends before the answer", base::Scope::object);
    if (outcome.io != Io::done) {
      CO_TRY_VOID(co_await wait(outcome.io, Deadlines::after(limit)));
      continue;
    }
    offset += outcome.count;
    length -= outcome.count;
    sent += outcome.count;
    if (outcome.count == kSendFileStep) CO_TRY_VOID(co_await wait(Io::want_write, Deadlines::after(limit)));
  }
  co_return Result<void>{};
}

async::Task<void> Transport::send_file_tls(int file, std::uint64_t offset, std::uint64_t length,
                                           base::Duration limit, std::uint64_t& sent) {
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(kTlsFileStep);
  while (length > 0) {
    const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(length, kTlsFileStep));
    const ssize_t count = ::pread(file, memory.get(), wanted, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) co_return base::from_errno(errno, "read of the file to send");
    if (count == 0)
      co_return base::fail(Code::data_loss, "the file ends before the answer", base::Scope::object);
    const base::ByteView part(memory.get(), static_cast<std::size_t>(count));
    CO_TRY_VOID(co_await write(std::span(&part, 1), false, limit));
    offset += part.size();
    length -= part.size();
    sent += part.size();
  }
  co_return Result<void>{};
}

// ---- The rest

async::Task<void> Transport::handshake(base::SteadyPoint deadline) {
  while (tls_) {
    ERR_clear_error();
    const Outcome outcome = tls_outcome(SSL_do_handshake(tls_.get()), 0);
    if (outcome.io == Io::done) break;
    if (outcome.io == Io::end || outcome.io == Io::failed) {
      co_return base::fail(Code::unavailable, "TLS handshake: " + take_tls_error(), base::Scope::connection);
    }
    CO_TRY_VOID(co_await wait(outcome.io, deadline));
  }
  co_return Result<void>{};
}

async::Task<void> Transport::linger(base::SteadyPoint deadline) {
  if (tls_) {
    ERR_clear_error();
    SSL_shutdown(tls_.get());
  }
  ::shutdown(socket_.native_handle(), SHUT_WR);
  begin_ = end_ = 0;
  // What comes is thrown away undecrypted; nobody ever looks at this memory.
  static thread_local std::array<std::byte, 65536> scrap;
  for (;;) {
    const ssize_t count = ::recv(socket_.native_handle(), scrap.data(), scrap.size(), 0);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) co_return Result<void>{};
    if (Deadlines::after({}) >= deadline)
      co_return base::fail(Code::deadline_exceeded, "the peer sends on and on", base::Scope::connection);
    // Also when there is more: others want the reactor too.
    CO_TRY_VOID(co_await wait(Io::want_read, deadline));
  }
}

}  // namespace reelway::http
