#pragma once
// One client's connection: reads heads, runs the handler for each request, answers, and decides what becomes
// of the connection afterwards. Runs on one reactor. Only server.cc makes these.

#include <atomic>
#include <string>

#include "http/chunked.h"
#include "http/head_parser.h"
#include "http/server.h"
#include "http/transport.h"

namespace reelway::http {

/// What all connections of a server share.
struct ConnectionContext {
  const ServerOptions& options;
  const Handler& handler;
  base::Log& log;
  const std::atomic<bool>& stopping;
};

class Connection final : public Exchange {
 public:
  /// `refused`: one connection too many; it gets 503.
  Connection(const ConnectionContext& context, std::unique_ptr<Transport> transport, base::HttpPeer peer,
             bool refused);

  /// Until the connection's end. Never an error: whoever misbehaves only loses the connection.
  async::Task<void> serve();
  /// The server stops: an idle connection ends now, a busy one after its answer.
  void stop_when_idle() {
    if (idle_) transport_->abort();
  }
  void abort() { transport_->abort(); }

  const base::HttpRequestHead& head() const override { return request_.head; }
  const base::HttpPeer& peer() const override { return peer_; }
  async::Task<std::size_t> read_body(base::MutableBytes into) override;
  async::Task<void> respond(base::HttpResponseHead head, base::ByteView body) override;
  async::Task<void> start_response(base::HttpResponseHead head) override;
  async::Task<void> write_body(base::ByteView bytes) override;
  async::Task<void> send_file(int descriptor, std::uint64_t offset, std::uint64_t length) override;
  async::Task<void> end_body() override;
  std::uint64_t bytes_sent() const override { return bytes_sent_; }
  int status_sent() const override { return status_sent_; }
  bool peer_gone() override { return transport_->peer_gone(); }

 private:
  enum class Next : std::uint8_t { another, close, linger };

  async::Task<Next> serve_one();
  /// True with request_ filled; false when the connection is over (an answer may have been sent).
  async::Task<Next> read_head();
  async::Task<Next> refuse(int status, std::string_view reason);
  async::Task<Next> finish(base::Result<void> handled);
  async::Task<Next> drain();

  void begin_request(RequestHead request);
  bool body_is_read() const;
  /// Whether a head sent now must announce the end of the connection.
  bool must_close() const;
  bool is_bodiless(const base::HttpResponseHead& head) const;
  base::Result<void> make_head(const base::HttpResponseHead& head);
  /// When a read of the body must have moved something, by both of the options' limits.
  base::SteadyPoint body_deadline() const;
  async::Task<std::size_t> read_some_body(base::MutableBytes into);
  async::Task<std::size_t> read_sized_body(base::MutableBytes into);
  async::Task<std::size_t> read_chunked_body(base::MutableBytes into);
  base::Result<void> account(std::uint64_t bytes);

  const ConnectionContext& context_;
  std::unique_ptr<Transport> transport_;
  base::HttpPeer peer_;
  bool refused_;
  bool idle_ = false;

  // Of the request at hand.
  RequestHead request_;
  std::uint64_t body_left_ = 0;
  ChunkedDecoder decoder_;
  bool continue_pending_ = false;
  bool body_broken_ = false;
  std::uint64_t body_received_ = 0;
  base::Duration body_waited_{};

  // Of its answer.
  std::string head_text_;
  int status_sent_ = 0;
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t answer_left_ = 0;  ///< of Content-Length
  bool answer_chunked_ = false;
  bool answer_to_close_ = false;  ///< no framing: the end of the connection ends the body
  bool answer_complete_ = false;
  bool closing_ = false;
};

}  // namespace reelway::http
