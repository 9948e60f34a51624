#pragma once
// HTTP/1.1 server: accepts on any number of reactors, keeps connections alive, enforces limits on heads, idle
// time and slow clients, and hands each request to the handler as an Exchange. It knows nothing of S3. TLS
// from a certificate and key.
//
// A handler answers exactly once. When it returns without having read the whole body, the server drains a
// bounded rest (drain_bytes_max) or closes the connection after the answer, so that a client always gets to
// read it. A handler that returns an error after the head was sent closes the connection short of
// Content-Length; before, it answers 500 without a body.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/http_head.h"
#include "base/log.h"

namespace reelway::http {

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;            ///< 0: any free one
  std::string tls_certificate_file;  ///< PEM chain; empty: plain
  std::string tls_key_file;
  std::size_t head_bytes_max = 32 * base::kKiB;            ///< request line and fields; 431 above
  std::size_t connections_max = 20'000;                    ///< one more is answered 503 and closed
  base::Duration idle_timeout = std::chrono::seconds{60};  ///< between requests
  base::Duration head_timeout = std::chrono::seconds{20};  ///< from the first byte of a head to its last
  base::Duration progress_timeout =
      std::chrono::seconds{30};  ///< any single read or write of a body must move something
  /// Over the whole time that the server waits for a body, which may be progress_timeout longer than that.
  std::uint64_t body_bytes_per_second_min = base::kKiB;
  std::size_t drain_bytes_max = 256 * base::kKiB;
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const base::HttpRequestHead& head() const = 0;
  virtual const base::HttpPeer& peer() const = 0;

  /// The body as it comes (Transfer-Encoding removed, aws-chunked not): fills a prefix of `into`; 0 at its
  /// end. The first call sends "100 Continue" when the client waits for it, so call it only after
  /// authorization. closed: the client went away in the middle.
  virtual async::Task<std::size_t> read_body(base::MutableBytes into) = 0;

  /// Head and whole body at once; the body is left out where HTTP has none (HEAD, 204, 304). For HEAD
  /// requests give content_length in the head.
  virtual async::Task<void> respond(base::HttpResponseHead head, base::ByteView body) = 0;
  /// Head first, then write_body or send_file until content_length bytes are out (or, without one, end_body
  /// for chunked coding).
  virtual async::Task<void> start_response(base::HttpResponseHead head) = 0;
  virtual async::Task<void> write_body(base::ByteView bytes) = 0;
  /// sendfile(2) on plain connections, read and write on TLS.
  virtual async::Task<void> send_file(int descriptor, std::uint64_t offset, std::uint64_t length) = 0;
  virtual async::Task<void> end_body() = 0;

  /// Bytes of response body sent so far, and the status, for the access log; 0 before an answer.
  virtual std::uint64_t bytes_sent() const = 0;
  virtual int status_sent() const = 0;
  /// True once the peer has closed its connection: long waits poll it.
  virtual bool peer_gone() = 0;
};

using Handler = std::function<async::Task<void>(Exchange&)>;

class Server {
 public:
  /// Binds at once; `reactors` share the accepting (a connection stays on its reactor). invalid_argument for
  /// a bad address or certificate, unavailable when the port is taken: the detail names the address and the
  /// cure.
  static base::Result<std::unique_ptr<Server>> create(std::vector<async::Executor> reactors,
                                                      ServerOptions options, Handler handler, base::Log& log);
  virtual ~Server() = default;
  virtual std::uint16_t port() const = 0;
  virtual std::size_t connection_count() const = 0;
  /// Stops accepting, lets running exchanges end until `patience` is over, then closes what is left.
  /// Returns when all handlers have; call it once, before destroying the server and while the reactors still
  /// run.
  virtual async::Task<void> shut_down(base::Duration patience) = 0;
};

}  // namespace reelway::http
