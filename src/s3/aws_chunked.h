#pragma once
// The aws-chunked framing of bodies, both ways. The decoder is pushed bytes and gives back spans of the
// object's bytes inside them (no copy); every chunk signature is checked when its chunk ends, so bytes
// already given may turn out wrong: what they were written to must be dropped on any fault, and a body is
// whole only when done() is true. Source: Amazon S3 API Reference, "Signature Calculations: Transferring
// Payload in Multiple Chunks", and the same "with trailing headers".

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "s3/sigv4.h"
#include "s3/types.h"

namespace reelway::s3 {

inline constexpr std::uint64_t kChunkBytesMin = 8192;  ///< of every chunk but the last

struct ChunkedOptions {
  PayloadForm form = PayloadForm::streaming_unsigned_trailer;
  SigningContext signing;                     ///< with the signed forms
  std::uint64_t decoded_length = 0;           ///< x-amz-decoded-content-length
  std::optional<base::ChecksumKind> trailer;  ///< what x-amz-trailer announces
};

class ChunkedDecoder {
 public:
  explicit ChunkedDecoder(ChunkedOptions options);
  ~ChunkedDecoder();
  ChunkedDecoder(ChunkedDecoder&&) noexcept;
  ChunkedDecoder& operator=(ChunkedDecoder&&) noexcept;

  struct Step {
    std::size_t consumed = 0;  ///< bytes of the input used up; feed the rest again
    base::ByteView data;       ///< object bytes, part of the input; may be empty
  };
  /// Not to be called after a fault. After done(), further bytes are a fault. Faults: IncompleteBody,
  /// InvalidChunkSizeError, SignatureDoesNotMatch, MalformedTrailerError, InvalidRequest (framing).
  Outcome<Step> feed(base::ByteView input);
  bool done() const;
  /// The input ended: IncompleteBody unless done().
  Outcome<void> finish() const;
  /// The trailer's checksum, once done(); its value is for the caller to compare.
  const std::optional<Checksum>& trailer_checksum() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Frames of an outgoing body: for each piece head(piece) + piece + "\r\n", then last().
class ChunkedEncoder {
 public:
  ChunkedEncoder(PayloadForm form, SigningContext signing);
  ~ChunkedEncoder();
  std::string head(base::ByteView piece);
  /// The 0-chunk, the trailer (if given) and the final line.
  std::string last(const std::optional<Checksum>& trailer);

  /// Content-Length of the whole encoded body when all pieces but the last have `piece_bytes`.
  static std::uint64_t encoded_length(PayloadForm form, std::uint64_t decoded_length,
                                      std::uint64_t piece_bytes, std::optional<base::ChecksumKind> trailer);

 private:
  PayloadForm form_;
  SigningContext signing_;
};

}  // namespace reelway::s3
