#include "transfer/http_source.h"

#include <cstring>

namespace reelway::transfer {

HttpSource::HttpSource(http::Exchange& exchange, std::uint64_t length)
    : exchange_(exchange), length_(length) {}

HttpSource::HttpSource(http::Exchange& exchange, s3::ChunkedOptions options)
    : exchange_(exchange), length_(options.decoded_length), decoder_(std::in_place, std::move(options)) {}

std::optional<s3::Checksum> HttpSource::trailer() const {
  return decoder_ && decoder_->done() ? decoder_->trailer_checksum() : std::nullopt;
}

base::Error HttpSource::give_up(s3::Fault fault) {
  fault_ = std::move(fault);
  return base::fail(base::Code::invalid_argument, "request body refused: " + std::string(fault_->name()));
}

async::Task<std::size_t> HttpSource::read(base::MutableBytes into) {
  if (decoder_) co_return co_await read_chunked(into);
  co_return co_await read_plain(into);
}

async::Task<std::size_t> HttpSource::read_plain(base::MutableBytes into) {
  CO_TRY(const std::size_t count, co_await exchange_.read_body(into));
  received_ += count;
  const bool is_end = count == 0;
  if (received_ > length_ || (is_end && received_ < length_))
    co_return give_up(s3::fault(s3::ErrorCode::incomplete_body));
  co_return count;
}

async::Task<std::size_t> HttpSource::read_chunked(base::MutableBytes into) {
  while (true) {
    CO_TRY(const std::size_t raw, co_await exchange_.read_body(into));
    if (raw == 0) {
      if (auto whole = decoder_->finish(); !whole) co_return give_up(std::move(whole).error());
      co_return std::size_t{0};
    }
    CO_TRY(const std::size_t count, unframe(into.first(raw)));
    if (count > 0) co_return count;
  }
}

/// Moves the object's bytes among `raw` to its front; returns how many there are.
base::Result<std::size_t> HttpSource::unframe(base::MutableBytes raw) {
  std::size_t kept = 0;
  base::ByteView rest = raw;
  while (!rest.empty()) {
    auto step = decoder_->feed(rest);
    if (!step) return give_up(std::move(step).error());
    if (step->consumed == 0 && step->data.empty()) return give_up(s3::fault(s3::ErrorCode::incomplete_body));
    if (!step->data.empty()) std::memmove(raw.data() + kept, step->data.data(), step->data.size());
    kept += step->data.size();
    rest = rest.subspan(step->consumed);
  }
  return kept;
}

}  // namespace reelway::transfer
