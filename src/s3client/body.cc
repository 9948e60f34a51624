#include "s3client/body.h"

#include <algorithm>

namespace reelway::s3client {

namespace {

void append(base::Bytes& to, base::ByteView bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

s3::Checksum crc64nvme_of(std::uint64_t crc) {
  s3::Checksum checksum{.kind = base::ChecksumKind::crc64nvme, .value = base::Bytes(8)};
  for (std::size_t i = 8; i-- > 0; crc >>= 8) checksum.value[i] = static_cast<std::byte>(crc & 0xFF);
  return checksum;
}

}  // namespace

async::Task<std::size_t> PlainBody::read(base::MutableBytes into) {
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), range_.length - at_));
  if (size == 0) co_return std::size_t{0};
  CO_TRY(const std::size_t got, co_await content_.read_at(range_.offset + at_, into.first(size)));
  if (got == 0) co_return base::fail(base::Code::data_loss, "the content ended before its size");
  at_ += got;
  co_return got;
}

bool PlainBody::rewind() {
  at_ = 0;
  return true;
}

TrailerBody::TrailerBody(Content& content, base::ByteRange range, std::size_t piece_bytes)
    : content_(content), range_(range), piece_(piece_bytes) {}

async::Task<void> TrailerBody::fill() {
  s3::ChunkedEncoder encoder(s3::PayloadForm::streaming_unsigned_trailer, {});
  frame_.clear();
  given_ = 0;
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(piece_.size(), range_.length - at_));
  if (size == 0) {
    append(frame_, base::as_bytes(encoder.last(crc64nvme_of(crc_))));
    ended_ = true;
    co_return base::Result<void>{};
  }
  const base::MutableBytes piece = base::MutableBytes(piece_).first(size);
  // Every piece but the last must be full: the frames' sizes were promised by Content-Length.
  for (std::size_t filled = 0; filled < size;) {
    CO_TRY(const std::size_t got,
           co_await content_.read_at(range_.offset + at_ + filled, piece.subspan(filled)));
    if (got == 0) co_return base::fail(base::Code::data_loss, "the content ended before its size");
    filled += got;
  }
  at_ += size;
  crc_ = base::crc64nvme(crc_, piece);
  append(frame_, base::as_bytes(encoder.head(piece)));
  append(frame_, piece);
  append(frame_, base::as_bytes("\r\n"));
  co_return base::Result<void>{};
}

async::Task<std::size_t> TrailerBody::read(base::MutableBytes into) {
  if (given_ == frame_.size()) {
    if (ended_) co_return std::size_t{0};
    CO_TRY_VOID(co_await fill());
  }
  const std::size_t size = std::min(into.size(), frame_.size() - given_);
  std::ranges::copy(base::ByteView(frame_).subspan(given_, size), into.begin());
  given_ += size;
  co_return size;
}

bool TrailerBody::rewind() {
  frame_.clear();
  given_ = 0;
  at_ = 0;
  crc_ = 0;
  ended_ = false;
  return true;
}

async::Task<std::size_t> TextBody::read(base::MutableBytes into) {
  const std::size_t size = std::min(into.size(), text_.size() - at_);
  std::ranges::copy(base::as_bytes(text_.substr(at_, size)), into.begin());
  at_ += size;
  co_return size;
}

bool TextBody::rewind() {
  at_ = 0;
  return true;
}

}  // namespace reelway::s3client
