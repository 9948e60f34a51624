#pragma once
// HTTP/1.1 client: a bounded pool of kept-alive connections to one endpoint, plain or TLS. One request at a
// time per connection. A request that fails on a kept-alive connection before any answer came is sent again
// once on a new one if its method is idempotent and its body can start over.

#include <memory>
#include <string>

#include "async/task.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "base/http_head.h"

namespace reelway::http {

struct ClientOptions {
  std::string host;
  std::uint16_t port = 80;
  bool tls = false;
  std::string tls_ca_file;  ///< empty: the system's
  bool tls_verify = true;
  std::size_t connections_max = 64;
  base::Duration connect_timeout = std::chrono::seconds{5};
  base::Duration progress_timeout = std::chrono::seconds{60};
  std::size_t head_bytes_max = 64 * base::kKiB;
};

/// Gives request bodies: fills a prefix of the buffer, 0 at the end.
class BodyProducer {
 public:
  virtual ~BodyProducer() = default;
  virtual async::Task<std::size_t> read(base::MutableBytes into) = 0;
  /// Goes back to the first byte; false when that cannot be.
  virtual bool rewind() { return false; }
};

/// An answer whose head has arrived. Destroying it before the body's end closes the connection.
class ClientResponse {
 public:
  virtual ~ClientResponse() = default;
  virtual const base::HttpResponseHead& head() const = 0;
  /// Fills a prefix of `into`; 0 at the body's end. closed: the server went away in the middle.
  virtual async::Task<std::size_t> read_body(base::MutableBytes into) = 0;
  /// The whole body; too_large above `bytes_max`.
  virtual async::Task<base::Bytes> read_all(std::size_t bytes_max) = 0;
};

class Client {
 public:
  static base::Result<std::unique_ptr<Client>> create(async::Executor executor, ClientOptions options);
  virtual ~Client() = default;
  /// `head.content_length` bytes are taken from `body` (null: none); without a length they go out chunked
  /// until the producer's end. Host and the framing fields are added here. With `head.expects_continue` the
  /// body is held back for up to a second. An answer may come before the body's end; the rest is not sent
  /// then. unavailable: no connection; busy: all are in use; deadline_exceeded; closed; invalid_argument for
  /// a head that would break apart.
  virtual async::Task<std::unique_ptr<ClientResponse>> send(base::HttpRequestHead head,
                                                            BodyProducer* body) = 0;
};

}  // namespace reelway::http
