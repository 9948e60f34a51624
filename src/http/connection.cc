#include "http/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "http/response_writer.h"

namespace reelway::http {

namespace {

using base::Code;
using base::Result;

constexpr std::size_t kChunkFramingBuffer = 4096;
constexpr std::size_t kDrainStep = 16384;

base::Error misuse(std::string detail) { return base::fail(Code::internal, "http exchange: " + detail); }

}  // namespace

Connection::Connection(const ConnectionContext& context, std::unique_ptr<Transport> transport,
                       base::HttpPeer peer, bool refused)
    : context_(context), transport_(std::move(transport)), peer_(std::move(peer)), refused_(refused) {}

async::Task<void> Connection::serve() {
  const Result<void> ready = co_await transport_->handshake(Deadlines::after(context_.options.head_timeout));
  if (!ready.has_value()) {
    context_.log.write(base::LogLevel::debug, "http",
                       fmt::format("{}: {}", peer_.address, ready.error().detail));
    co_return Result<void>{};
  }
  for (;;) {
    const Result<Next> next = co_await serve_one();
    if (!next.has_value() || *next == Next::close) break;
    if (*next == Next::another) continue;
    (void)co_await transport_->linger(Deadlines::after(context_.options.progress_timeout));
    break;
  }
  co_return Result<void>{};
}

async::Task<Connection::Next> Connection::serve_one() {
  CO_TRY(const Next head, co_await read_head());
  if (head != Next::another) co_return head;
  if (refused_) co_return co_await refuse(503, "too many connections");
  const Result<void> handled = co_await context_.handler(*this);
  co_return co_await finish(handled);
}

// ---- Heads

async::Task<Connection::Next> Connection::read_head() {
  if (transport_->buffered().empty()) {
    if (context_.stopping.load(std::memory_order_relaxed)) co_return Next::close;
    idle_ = true;
    const Result<void> came = co_await transport_->fill(context_.options.head_bytes_max,
                                                        Deadlines::after(context_.options.idle_timeout));
    idle_ = false;
    // Idle too long, closed by either side: nobody waits for an answer.
    if (!came.has_value()) co_return Next::close;
  }
  HeadScan scan;
  const base::SteadyPoint deadline = Deadlines::after(context_.options.head_timeout);
  for (;;) {
    const auto size = find_head_end(transport_->buffered(), scan);
    if (!size.has_value()) co_return co_await refuse(size.error().status, size.error().reason);
    if (*size > 0) {
      auto parsed = parse_request_head(transport_->buffered().substr(0, *size));
      if (!parsed.has_value()) co_return co_await refuse(parsed.error().status, parsed.error().reason);
      transport_->consume(*size);
      begin_request(std::move(*parsed));
      co_return Next::another;
    }
    const Result<void> came = co_await transport_->fill(context_.options.head_bytes_max, deadline);
    if (came.has_value()) continue;
    if (came.error().code == Code::too_large) co_return co_await refuse(431, "a head over the limit");
    if (came.error().code == Code::deadline_exceeded)
      co_return co_await refuse(408, "a head that took too long");
    co_return Next::close;
  }
}

void Connection::begin_request(RequestHead request) {
  request_ = std::move(request);
  body_left_ = request_.head.content_length.value_or(0);
  decoder_ = ChunkedDecoder();
  continue_pending_ = request_.head.expects_continue;
  body_broken_ = false;
  body_received_ = 0;
  body_waited_ = {};
  status_sent_ = 0;
  bytes_sent_ = 0;
  answer_left_ = 0;
  answer_chunked_ = false;
  answer_to_close_ = false;
  answer_complete_ = false;
  closing_ = !request_.keep_alive;
}

/// Answers without a handler: what came is no request, or none is wanted.
async::Task<Connection::Next> Connection::refuse(int status, std::string_view reason) {
  context_.log.write(base::LogLevel::info, "http",
                     fmt::format("{}: answered {}: {}", peer_.address, status, reason));
  base::HttpResponseHead head{.status = status, .fields = {}, .content_length = 0};
  if (status == 503) head.fields.add("Retry-After", "1");
  head_text_.clear();
  append_response_head(head_text_, head, {.close = true});
  const base::ByteView part = base::as_bytes(head_text_);
  const Result<void> written =
      co_await transport_->write(std::span(&part, 1), false, context_.options.progress_timeout);
  co_return written.has_value() ? Next::linger : Next::close;
}

// ---- The request's body

bool Connection::body_is_read() const { return request_.head.chunked ? decoder_.done() : body_left_ == 0; }

async::Task<std::size_t> Connection::read_body(base::MutableBytes into) {
  if (body_is_read() || into.empty()) co_return 0U;
  if (body_broken_) co_return base::fail(Code::closed, "the body broke off", base::Scope::connection);
  if (continue_pending_) {
    // After the final answer the client may or may not send: nobody can tell its body from its next request.
    if (status_sent_ != 0)
      co_return base::fail(Code::closed, "the client was not told to send its body", base::Scope::connection);
    continue_pending_ = false;
    if (transport_->buffered().empty()) {
      const base::ByteView part = base::as_bytes("HTTP/1.1 100 Continue\r\n\r\n");
      CO_TRY_VOID(co_await transport_->write(std::span(&part, 1), false, context_.options.progress_timeout));
    }
  }
  Result<std::size_t> count = co_await read_some_body(into);
  body_broken_ = !count.has_value();
  co_return count;
}

base::SteadyPoint Connection::body_deadline() const {
  const ServerOptions& options = context_.options;
  const std::chrono::milliseconds earned(body_received_ * 1000 / options.body_bytes_per_second_min);
  const base::Duration left = options.progress_timeout + earned - body_waited_;
  return Deadlines::after(std::clamp(left, base::Duration{}, options.progress_timeout));
}

async::Task<std::size_t> Connection::read_some_body(base::MutableBytes into) {
  const auto started = std::chrono::steady_clock::now();
  Result<std::size_t> count =
      request_.head.chunked ? co_await read_chunked_body(into) : co_await read_sized_body(into);
  body_waited_ += std::chrono::steady_clock::now() - started;
  body_received_ += count.value_or(0);
  co_return count;
}

async::Task<std::size_t> Connection::read_sized_body(base::MutableBytes into) {
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), body_left_));
  CO_TRY(const std::size_t count, co_await transport_->read(into.first(wanted), body_deadline()));
  if (count == 0)
    co_return base::fail(Code::closed, "the client went away in the middle of the body",
                         base::Scope::connection);
  body_left_ -= count;
  co_return count;
}

async::Task<std::size_t> Connection::read_chunked_body(base::MutableBytes into) {
  const base::SteadyPoint deadline = body_deadline();
  while (!decoder_.done()) {
    if (const std::uint64_t left = decoder_.data_left(); left > 0) {
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left));
      CO_TRY(const std::size_t count, co_await transport_->read(into.first(wanted), deadline));
      if (count == 0)
        co_return base::fail(Code::closed, "the client went away in the middle of the body",
                             base::Scope::connection);
      decoder_.take(count);
      co_return count;
    }
    if (transport_->buffered().empty()) CO_TRY_VOID(co_await transport_->fill(kChunkFramingBuffer, deadline));
    CO_TRY(const std::size_t used, decoder_.advance(transport_->buffered()));
    transport_->consume(used);
  }
  co_return 0U;
}

// ---- The answer

bool Connection::must_close() const {
  if (closing_ || body_broken_ || context_.stopping.load(std::memory_order_relaxed)) return true;
  if (body_is_read()) return false;
  return continue_pending_ || (!request_.head.chunked && body_left_ > context_.options.drain_bytes_max);
}

/// RFC 9110, 6.4.1.
bool Connection::is_bodiless(const base::HttpResponseHead& head) const {
  return request_.head.method == "HEAD" || head.status == 204 || head.status == 304;
}

Result<void> Connection::make_head(const base::HttpResponseHead& head) {
  if (status_sent_ != 0) return misuse("answered twice");
  const bool bodiless = is_bodiless(head);
  answer_chunked_ = !bodiless && !head.content_length && !request_.http_1_0;
  answer_to_close_ = !bodiless && !head.content_length && request_.http_1_0;
  answer_left_ = bodiless ? 0 : head.content_length.value_or(0);
  closing_ = must_close() || answer_to_close_ || list_contains(head.fields.get_or("Connection", ""), "close");
  head_text_.clear();
  if (!append_response_head(
          head_text_, head,
          {.chunked = answer_chunked_, .close = closing_, .keep_alive = !closing_ && request_.http_1_0})) {
    return misuse("a response field with a line break");
  }
  status_sent_ = head.status;
  return {};
}

/// Counts body bytes that are about to go out.
Result<void> Connection::account(std::uint64_t bytes) {
  if (status_sent_ == 0) return misuse("body before the head");
  if (answer_chunked_ || answer_to_close_)
    return answer_complete_ ? Result<void>(misuse("body after its end")) : Result<void>();
  if (bytes > answer_left_) return misuse("more body than Content-Length");
  answer_left_ -= bytes;
  return {};
}

async::Task<void> Connection::respond(base::HttpResponseHead head, base::ByteView body) {
  if (!head.content_length) head.content_length = body.size();
  if (is_bodiless(head)) body = {};
  if (!is_bodiless(head) && *head.content_length != body.size())
    co_return misuse("a body that is not of Content-Length");
  CO_TRY_VOID(make_head(head));
  const std::array<base::ByteView, 2> parts{base::as_bytes(head_text_), body};
  CO_TRY_VOID(co_await transport_->write(parts, false, context_.options.progress_timeout));
  answer_left_ = 0;
  bytes_sent_ += body.size();
  answer_complete_ = true;
  co_return Result<void>{};
}

async::Task<void> Connection::start_response(base::HttpResponseHead head) {
  CO_TRY_VOID(make_head(head));
  const bool complete = is_bodiless(head) || head.content_length == 0U;
  const base::ByteView part = base::as_bytes(head_text_);
  CO_TRY_VOID(co_await transport_->write(std::span(&part, 1), !complete, context_.options.progress_timeout));
  answer_complete_ = complete;
  co_return Result<void>{};
}

async::Task<void> Connection::write_body(base::ByteView bytes) {
  CO_TRY_VOID(account(bytes.size()));
  if (bytes.empty()) co_return Result<void>{};
  if (answer_chunked_) {
    std::array<char, 18> size_line;
    char* end = std::to_chars(size_line.data(), size_line.data() + 16, bytes.size(), 16).ptr;
    *end++ = '\r';
    *end++ = '\n';
    const std::array<base::ByteView, 3> parts{base::as_bytes({size_line.data(), end}), bytes,
                                              base::as_bytes("\r\n")};
    CO_TRY_VOID(co_await transport_->write(parts, false, context_.options.progress_timeout));
  } else {
    CO_TRY_VOID(co_await transport_->write(std::span(&bytes, 1), false, context_.options.progress_timeout));
    answer_complete_ = !answer_to_close_ && answer_left_ == 0;
  }
  bytes_sent_ += bytes.size();
  co_return Result<void>{};
}

async::Task<void> Connection::send_file(int descriptor, std::uint64_t offset, std::uint64_t length) {
  if (answer_chunked_) co_return misuse("a file in an answer without Content-Length");
  CO_TRY_VOID(account(length));
  CO_TRY_VOID(co_await transport_->send_file(descriptor, offset, length, context_.options.progress_timeout,
                                             bytes_sent_));
  answer_complete_ = !answer_to_close_ && answer_left_ == 0;
  co_return Result<void>{};
}

async::Task<void> Connection::end_body() {
  CO_TRY_VOID(account(0));
  if (answer_chunked_) {
    const base::ByteView part = base::as_bytes("0\r\n\r\n");
    CO_TRY_VOID(co_await transport_->write(std::span(&part, 1), false, context_.options.progress_timeout));
  } else if (answer_left_ > 0) {
    co_return misuse("less body than Content-Length");
  }
  answer_complete_ = true;
  co_return Result<void>{};
}

// ---- Afterwards

async::Task<Connection::Next> Connection::finish(base::Result<void> handled) {
  if (!handled.has_value()) {
    context_.log.write(base::LogLevel::info, "http",
                       fmt::format("{}: {}", peer_.address, base::to_string(handled.error())));
  }
  if (status_sent_ == 0) {
    const bool slow_body =
        !handled.has_value() && handled.error().code == Code::deadline_exceeded && body_broken_;
    if (handled.has_value())
      context_.log.write(base::LogLevel::error, "http", "a handler ended without an answer");
    if (!handled.has_value() && handled.error().code == Code::closed && body_broken_) co_return Next::close;
    const Result<void> answered =
        co_await respond({.status = slow_body ? 408 : 500, .fields = {}, .content_length = 0}, {});
    if (!answered.has_value()) co_return Next::close;
  }
  // The client learns from the early end that the answer is not whole.
  if (!answer_complete_) co_return Next::close;
  if (!body_is_read() && !closing_) co_return co_await drain();
  if (!closing_) co_return Next::another;
  co_return Next::linger;
}

async::Task<Connection::Next> Connection::drain() {
  std::array<std::byte, kDrainStep> scrap;
  std::size_t drained = 0;
  while (!body_is_read()) {
    const Result<std::size_t> count = co_await read_body(scrap);
    if (!count.has_value()) co_return Next::close;
    drained += *count;
    if (drained > context_.options.drain_bytes_max) co_return Next::linger;
  }
  co_return Next::another;
}

}  // namespace reelway::http
