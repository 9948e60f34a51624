#include "http/chunked.h"

namespace reelway::http {

namespace {

/// Between two payloads, trailer fields included.
constexpr std::size_t kFramingBytesMax = 16384;

base::Error broken(std::string detail) {
  return base::fail(base::Code::invalid_argument, "chunked coding: " + detail, base::Scope::connection);
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void ChunkedDecoder::take(std::uint64_t count) {
  data_left_ -= count;
  if (data_left_ == 0) state_ = State::data_cr;
}

base::Result<std::size_t> ChunkedDecoder::advance(std::string_view input) {
  std::size_t used = 0;
  while (used < input.size() && data_left_ == 0 && !done()) {
    if (++framing_bytes_ > kFramingBytesMax) return broken("too much between two chunks");
    TRY_VOID(step(input[used++]));
  }
  if (data_left_ > 0) framing_bytes_ = 0;
  return used;
}

base::Result<void> ChunkedDecoder::digit(char c) {
  const int value = hex_value(c);
  if (value < 0) {
    if (digits_ == 0) return broken("no chunk size");
    if (c == '\r') {
      state_ = State::size_lf;
    } else if (c == ';') {
      state_ = State::extension;
    } else {
      return broken("a chunk size that is no hex number");
    }
    return {};
  }
  if (++digits_ > 16) return broken("a chunk size over 64 bits");
  size_ = size_ << 4 | static_cast<unsigned>(value);
  return {};
}

base::Result<void> ChunkedDecoder::step(char c) {
  const auto expect = [&](char expected, State next) -> base::Result<void> {
    if (c != expected) return broken("CRLF is missing");
    state_ = next;
    return {};
  };
  switch (state_) {
    case State::size:
      return digit(c);
    case State::extension:
      if (c == '\n' || c == '\0') return broken("a control character in an extension");
      if (c == '\r') state_ = State::size_lf;
      return {};
    case State::size_lf:
      data_left_ = size_;
      size_ = 0;
      digits_ = 0;
      return expect('\n', State::trailer_start);  // with data to come, take() moves on from there
    case State::data_cr:
      return expect('\r', State::data_lf);
    case State::data_lf:
      return expect('\n', State::size);
    case State::trailer_start:
      if (c == '\n' || c == '\0') return broken("a control character in a trailer");
      state_ = c == '\r' ? State::last_lf : State::trailer;
      return {};
    case State::trailer:
      if (c == '\n' || c == '\0') return broken("a control character in a trailer");
      if (c == '\r') state_ = State::trailer_lf;
      return {};
    case State::trailer_lf:
      return expect('\n', State::trailer_start);
    case State::last_lf:
      return expect('\n', State::done);
    case State::done:
      break;
  }
  return broken("bytes after the end");
}

}  // namespace reelway::http
