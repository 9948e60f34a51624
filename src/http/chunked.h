#pragma once
// Takes Transfer-Encoding: chunked apart (RFC 9112, 7.1), pure: framing bytes are fed in, payload stays where
// it is. Extensions and trailer fields are dropped. Lines have a bound.

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace reelway::http {

class ChunkedDecoder {
 public:
  /// Eats framing from the front of `input` until payload or the end comes, and returns how much. Call it
  /// while data_left() is 0 and done() is false. invalid_argument for broken framing.
  base::Result<std::size_t> advance(std::string_view input);
  /// Payload bytes of the current chunk that come next.
  std::uint64_t data_left() const { return data_left_; }
  /// `count` payload bytes were taken.
  void take(std::uint64_t count);
  bool done() const { return state_ == State::done; }

 private:
  enum class State : std::uint8_t {
    size,
    extension,
    size_lf,
    data_cr,
    data_lf,
    trailer_start,
    trailer,
    trailer_lf,
    last_lf,
    done
  };
  base::Result<void> step(char c);
  base::Result<void> digit(char c);

  State state_ = State::size;
  std::uint64_t data_left_ = 0;
  std::uint64_t size_ = 0;
  unsigned digits_ = 0;
  std::size_t framing_bytes_ = 0;  ///< since the last payload
};

}  // namespace reelway::http
