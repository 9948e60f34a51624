#pragma once
// A connected socket, plain or TLS, as both server and client use it: system calls are tried at once, and
// only when the kernel says "not now" the coroutine waits, with a deadline. Runs on one executor. After
// closed or deadline_exceeded the connection is of no further use, except that an answer may be tried after a
// read's deadline.

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "async/task.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "http/deadlines.h"
#include "http/tls.h"

namespace reelway::http {

class Transport final : public Deadlines::Entry {
 public:
  /// The socket is connected and non-blocking. `tls` empty: plain.
  Transport(async::net::ip::tcp::socket socket, TlsSession tls, std::shared_ptr<Deadlines> deadlines);
  ~Transport() override;

  async::Task<void> handshake(base::SteadyPoint deadline);

  /// Bytes that have come and were not taken; valid until the next read or fill.
  std::string_view buffered() const { return {buffer_.get() + begin_, end_ - begin_}; }
  void consume(std::size_t count);
  /// Reads at least one byte more into the buffer; too_large when `capacity` bytes are in it already; closed
  /// at the end of the stream.
  async::Task<void> fill(std::size_t capacity, base::SteadyPoint deadline);
  /// Fills a prefix of `into`: buffered bytes first, else from the socket; 0 at the end of the stream.
  async::Task<std::size_t> read(base::MutableBytes into, base::SteadyPoint deadline);

  /// At most this many parts go out in one call.
  static constexpr std::size_t kPartsMax = 4;
  /// All of the parts. `limit` is for each step that moves something. `more`: other bytes follow at once, so
  /// the kernel may wait for them.
  async::Task<void> write(std::span<const base::ByteView> parts, bool more, base::Duration limit);
  /// By sendfile(2), or read and write on TLS. `sent` counts along. data_loss when the file ends before
  /// `length`.
  async::Task<void> send_file(int file, std::uint64_t offset, std::uint64_t length, base::Duration limit,
                              std::uint64_t& sent);

  /// Ends our direction, then throws away what the peer still sends until it closes or the deadline comes.
  /// Closing at once while the peer sends would reset the connection, and the peer could lose the answer
  /// before it has read it.
  async::Task<void> linger(base::SteadyPoint deadline);
  /// Ends whatever waits here, and the connection.
  void abort();
  bool peer_gone() const;
  /// Bytes, or the end, can be read without waiting.
  bool input_waits();
  bool is_tls() const { return tls_ != nullptr; }

 private:
  enum class Io : std::uint8_t { done, end, want_read, want_write, failed };
  struct Outcome {
    Io io = Io::failed;
    std::size_t count = 0;
  };

  void on_deadline() override;
  Outcome try_read(base::MutableBytes into);
  Outcome try_write(std::span<const base::ByteView> parts, bool more);
  Outcome try_write_tls(std::span<const base::ByteView> parts);
  Outcome try_send_file(int file, std::uint64_t offset, std::uint64_t length);
  Outcome tls_outcome(int result, std::size_t count);
  async::Task<void> wait(Io want, base::SteadyPoint deadline);
  async::Task<void> send_file_tls(int file, std::uint64_t offset, std::uint64_t length, base::Duration limit,
                                  std::uint64_t& sent);
  void make_room(std::size_t capacity);

  async::net::ip::tcp::socket socket_;
  TlsSession tls_;
  bool expired_ = false;
  bool aborted_ = false;
  bool drained_ = false;  ///< the last read took all there was: do not try the next one before waiting
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace reelway::http
