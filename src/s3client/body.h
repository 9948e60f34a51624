#pragma once
// Request bodies made of a part of a Content: plain, or aws-chunked with a CRC64NVME trailer. Only for this
// room.

#include <memory>

#include "s3/aws_chunked.h"
#include "s3client/client.h"

namespace reelway::s3client {

/// The bytes of `range` as they are.
class PlainBody final : public http::BodyProducer {
 public:
  PlainBody(Content& content, base::ByteRange range) : content_(content), range_(range) {}
  async::Task<std::size_t> read(base::MutableBytes into) override;
  bool rewind() override;

 private:
  Content& content_;
  base::ByteRange range_;
  std::uint64_t at_ = 0;
};

/// STREAMING-UNSIGNED-PAYLOAD-TRAILER over the bytes of `range`, in pieces of `piece_bytes`.
class TrailerBody final : public http::BodyProducer {
 public:
  TrailerBody(Content& content, base::ByteRange range, std::size_t piece_bytes);
  async::Task<std::size_t> read(base::MutableBytes into) override;
  bool rewind() override;

 private:
  /// Reads the next piece and frames it, or makes the end.
  async::Task<void> fill();

  Content& content_;
  base::ByteRange range_;
  base::Bytes piece_;      ///< memory of one piece
  base::Bytes frame_;      ///< what waits to be given
  std::size_t given_ = 0;  ///< of frame_
  std::uint64_t at_ = 0;   ///< of the range
  std::uint64_t crc_ = 0;
  bool ended_ = false;
};

/// A text, from memory.
class TextBody final : public http::BodyProducer {
 public:
  explicit TextBody(std::string_view text) : text_(text) {}
  async::Task<std::size_t> read(base::MutableBytes into) override;
  bool rewind() override;

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace reelway::s3client
