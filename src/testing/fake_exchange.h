#pragma once
// An HTTP exchange without a socket: a request made of values, and the answer as it would go out. Bodies come
// in pieces of a chosen size, and may break off.

#include <algorithm>
#include <string>

#include "http/server.h"

namespace reelway::testing {

class FakeExchange final : public http::Exchange {
 public:
  FakeExchange(base::HttpRequestHead head, std::string body)
      : head_(std::move(head)), body_(std::move(body)) {
    if (!head_.chunked && !head_.content_length && !body_.empty()) head_.content_length = body_.size();
  }

  std::size_t piece_bytes = 1 << 20;           ///< most that one read gives
  std::size_t breaks_after = ~std::size_t{0};  ///< the client goes away after so many bytes
  std::size_t reads = 0;
  base::HttpResponseHead sent_head;
  std::string sent_body;
  bool ended = false;

  const base::HttpRequestHead& head() const override { return head_; }
  const base::HttpPeer& peer() const override { return peer_; }
  async::Task<std::size_t> read_body(base::MutableBytes into) override {
    ++reads;
    if (offset_ >= breaks_after)
      co_return base::fail(base::Code::closed, "the client went away", base::Scope::connection);
    const std::size_t count =
        std::min({into.size(), piece_bytes, body_.size() - offset_, breaks_after - offset_});
    std::ranges::copy(base::as_bytes(std::string_view(body_).substr(offset_, count)), into.begin());
    offset_ += count;
    co_return count;
  }
  async::Task<void> respond(base::HttpResponseHead head, base::ByteView body) override {
    CO_TRY_VOID(co_await start_response(std::move(head)));
    CO_TRY_VOID(co_await write_body(body));
    ended = true;
    co_return base::Result<void>{};
  }
  async::Task<void> start_response(base::HttpResponseHead head) override {
    if (sent_status_ != 0) co_return base::fail(base::Code::internal, "answered twice");
    sent_status_ = head.status;
    sent_head = std::move(head);
    co_return base::Result<void>{};
  }
  async::Task<void> write_body(base::ByteView bytes) override {
    sent_body += base::as_text(bytes);
    co_return base::Result<void>{};
  }
  async::Task<void> send_file(int, std::uint64_t, std::uint64_t) override {
    co_return base::fail(base::Code::unsupported, "no files here");
  }
  async::Task<void> end_body() override {
    ended = true;
    co_return base::Result<void>{};
  }
  std::uint64_t bytes_sent() const override { return sent_body.size(); }
  int status_sent() const override { return sent_status_; }
  bool peer_gone() override { return false; }

 private:
  base::HttpRequestHead head_;
  base::HttpPeer peer_{.address = "127.0.0.1", .port = 1, .tls = false, .local_address = {}, .local_port = 0};
  std::string body_;
  std::size_t offset_ = 0;
  int sent_status_ = 0;
};

}  // namespace reelway::testing
