#pragma once
// An HTTP request's body as a ByteSource of the object's bytes: plain, or with aws-chunked framing taken off
// and every chunk's signature checked. The framing is removed inside the reader's own buffer, so nothing is
// copied twice. The first read asks the client to go on (100 Continue). What S3 calls the failure is kept as
// a fault, because a base::Error cannot carry it.

#include <cstdint>
#include <optional>

#include "http/server.h"
#include "object/byte_stream.h"
#include "s3/aws_chunked.h"
#include "s3/errors.h"

namespace reelway::transfer {

class HttpSource final : public object::ByteSource {
 public:
  /// A plain body of `length` bytes.
  HttpSource(http::Exchange& exchange, std::uint64_t length);
  /// An aws-chunked body whose object has options.decoded_length bytes.
  HttpSource(http::Exchange& exchange, s3::ChunkedOptions options);

  std::optional<std::uint64_t> length() const override { return length_; }
  async::Task<std::size_t> read(base::MutableBytes into) override;

  /// Why read failed, where S3 has a word for it.
  const std::optional<s3::Fault>& fault() const { return fault_; }
  /// The trailer's checksum, after the end.
  std::optional<s3::Checksum> trailer() const;

 private:
  async::Task<std::size_t> read_plain(base::MutableBytes into);
  async::Task<std::size_t> read_chunked(base::MutableBytes into);
  base::Result<std::size_t> unframe(base::MutableBytes raw);
  base::Error give_up(s3::Fault fault);

  http::Exchange& exchange_;
  std::uint64_t length_;
  std::uint64_t received_ = 0;
  std::optional<s3::ChunkedDecoder> decoder_;
  std::optional<s3::Fault> fault_;
};

}  // namespace reelway::transfer
