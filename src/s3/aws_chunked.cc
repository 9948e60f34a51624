#include "s3/aws_chunked.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checksum.h"
#include "base/encoding.h"
#include "s3/canonical.h"
#include "s3/text.h"

namespace reelway::s3 {

namespace {

constexpr std::size_t kHeaderLineMax = 256;
constexpr std::size_t kTrailerLineMax = 1024;
constexpr std::size_t kTrailerLinesMax = 8;
constexpr std::string_view kSignatureExtension = ";chunk-signature=";
constexpr std::string_view kTrailerSignature = "x-amz-trailer-signature";

bool is_signed(PayloadForm form) { return form != PayloadForm::streaming_unsigned_trailer; }
bool has_trailer(PayloadForm form) { return form != PayloadForm::streaming_signed; }

std::string chunk_signature(const SigningContext& signing, std::string_view previous,
                            std::string_view data_sha256_hex) {
  return signature_of(signing.key,
                      fmt::format("AWS4-HMAC-SHA256-PAYLOAD\n{}\n{}\n{}\n{}\n{}", signing.timestamp,
                                  signing.scope, previous, kEmptySha256, data_sha256_hex));
}

std::string trailer_signature(const SigningContext& signing, std::string_view previous,
                              std::string_view trailer) {
  return signature_of(signing.key, fmt::format("AWS4-HMAC-SHA256-TRAILER\n{}\n{}\n{}\n{}", signing.timestamp,
                                               signing.scope, previous, sha256_hex(base::as_bytes(trailer))));
}

Fault incomplete() { return fault(ErrorCode::incomplete_body); }
Fault malformed_trailer() { return fault(ErrorCode::malformed_trailer_error); }

}  // namespace

struct ChunkedDecoder::State {
  enum class Expect : std::uint8_t { header, data, data_end, end_line, trailer, nothing };

  explicit State(ChunkedOptions given)
      : options(std::move(given)), previous_signature(options.signing.seed_signature) {
    if (is_signed(options.form)) hasher = base::make_hasher(base::ChecksumKind::sha256);
  }

  ChunkedOptions options;
  std::string previous_signature;
  Expect expect = Expect::header;
  std::string line;            ///< the part of a line that has come so far
  std::uint64_t received = 0;  ///< object bytes, the running chunk's included
  std::uint64_t chunk_left = 0;
  std::uint64_t chunk_count = 0;
  std::uint64_t chunk_size = 0;  ///< of the running or last chunk
  std::string chunk_signature_given;
  std::unique_ptr<base::Hasher> hasher;  ///< of the running chunk
  std::optional<Checksum> checksum;
  std::string trailer_text;  ///< "name:value\n" of what is signed
  std::size_t trailer_lines = 0;
  bool trailer_verified = false;

  Outcome<void> take_line(std::string_view text);
  Outcome<void> take_header(std::string_view text);
  Outcome<void> begin_chunk(std::uint64_t size);
  Outcome<void> end_chunk();
  Outcome<void> take_trailer(std::string_view text);
  Outcome<void> take_trailer_signature(std::string_view value);
  Outcome<void> end_trailer();
};

Outcome<void> ChunkedDecoder::State::take_line(std::string_view text) {
  switch (expect) {
    case Expect::header:
      return take_header(text);
    case Expect::data_end:
      if (!text.empty()) return incomplete();
      expect = Expect::header;
      return {};
    case Expect::end_line:
      if (!text.empty()) return incomplete();
      expect = Expect::nothing;
      return {};
    case Expect::trailer:
      return take_trailer(text);
    case Expect::data:
    case Expect::nothing:
      break;
  }
  return incomplete();
}

Outcome<void> ChunkedDecoder::State::take_header(std::string_view text) {
  const auto semicolon = text.find(';');
  const auto size = base::parse_hex_u64(text.substr(0, semicolon));
  if (!size) return incomplete();
  if (is_signed(options.form)) {
    const std::string_view extension =
        semicolon == std::string_view::npos ? std::string_view{} : text.substr(semicolon);
    if (!extension.starts_with(kSignatureExtension)) return incomplete();
    chunk_signature_given = extension.substr(kSignatureExtension.size());
  }
  return begin_chunk(*size);
}

Outcome<void> ChunkedDecoder::State::begin_chunk(std::uint64_t size) {
  const bool last = size == 0;
  if (!last && chunk_count > 0 && chunk_size < kChunkBytesMin) {
    return fault(ErrorCode::invalid_chunk_size_error,
                 {{"Chunk", std::to_string(chunk_count)}, {"BadChunkSize", std::to_string(chunk_size)}});
  }
  if (size > options.decoded_length - received) return incomplete();
  if (last && received != options.decoded_length) return incomplete();
  ++chunk_count;
  chunk_size = size;
  chunk_left = size;
  received += size;
  if (!last) {
    expect = Expect::data;
    return {};
  }
  TRY_VOID(end_chunk());
  expect = has_trailer(options.form) ? Expect::trailer : Expect::end_line;
  return {};
}

Outcome<void> ChunkedDecoder::State::end_chunk() {
  expect = Expect::data_end;
  if (!is_signed(options.form)) return {};
  std::string expected = chunk_signature(options.signing, previous_signature, base::to_hex(hasher->digest()));
  if (!equal_in_constant_time(expected, chunk_signature_given))
    return fault(ErrorCode::signature_does_not_match);
  previous_signature = std::move(expected);
  hasher = base::make_hasher(base::ChecksumKind::sha256);
  return {};
}

Outcome<void> ChunkedDecoder::State::take_trailer(std::string_view text) {
  const bool wants_signature = options.form == PayloadForm::streaming_signed_trailer && !trailer_verified;
  if (text.empty()) {
    // Some clients put an empty line before the signature.
    if (wants_signature && checksum && ++trailer_lines <= kTrailerLinesMax) return {};
    return end_trailer();
  }
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || ++trailer_lines > kTrailerLinesMax) return malformed_trailer();
  const std::string name = lower(trim(text.substr(0, colon)));
  const std::string_view value = trim(text.substr(colon + 1));
  if (name == kTrailerSignature) return take_trailer_signature(value);
  if (!options.trailer || checksum || trailer_verified || name != checksum_header(*options.trailer))
    return malformed_trailer();
  auto bytes = base::from_base64(value);
  if (!bytes || bytes->size() != base::digest_size(*options.trailer)) {
    return fault_saying(ErrorCode::invalid_request, "Value for " + name + " trailing header is invalid.");
  }
  checksum = Checksum{.kind = *options.trailer, .value = std::move(*bytes)};
  trailer_text = name + ":" + std::string(value) + "\n";
  return {};
}

Outcome<void> ChunkedDecoder::State::take_trailer_signature(std::string_view value) {
  if (options.form != PayloadForm::streaming_signed_trailer || trailer_verified) return malformed_trailer();
  if (!equal_in_constant_time(trailer_signature(options.signing, previous_signature, trailer_text), value)) {
    return fault(ErrorCode::signature_does_not_match);
  }
  trailer_verified = true;
  return {};
}

Outcome<void> ChunkedDecoder::State::end_trailer() {
  if (options.trailer.has_value() != checksum.has_value()) return malformed_trailer();
  if (options.form == PayloadForm::streaming_signed_trailer && checksum && !trailer_verified)
    return malformed_trailer();
  expect = Expect::nothing;
  return {};
}

ChunkedDecoder::ChunkedDecoder(ChunkedOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
ChunkedDecoder::~ChunkedDecoder() = default;
ChunkedDecoder::ChunkedDecoder(ChunkedDecoder&&) noexcept = default;
ChunkedDecoder& ChunkedDecoder::operator=(ChunkedDecoder&&) noexcept = default;

Outcome<ChunkedDecoder::Step> ChunkedDecoder::feed(base::ByteView input) {
  State& state = *state_;
  std::size_t at = 0;
  while (at < input.size()) {
    if (state.expect == State::Expect::nothing) return incomplete();
    if (state.expect == State::Expect::data) {
      const auto size =
          static_cast<std::size_t>(std::min<std::uint64_t>(state.chunk_left, input.size() - at));
      const base::ByteView data = input.subspan(at, size);
      if (state.hasher) state.hasher->update(data);
      state.chunk_left -= size;
      if (state.chunk_left == 0) TRY_VOID(state.end_chunk());
      return Step{.consumed = at + size, .data = data};
    }
    const std::string_view rest = base::as_text(input.subspan(at));
    const std::size_t end = rest.find('\n');
    const std::string_view piece = rest.substr(0, end);
    const bool in_trailer = state.expect == State::Expect::trailer;
    if (state.line.size() + piece.size() > (in_trailer ? kTrailerLineMax : kHeaderLineMax)) {
      return in_trailer ? malformed_trailer() : incomplete();
    }
    state.line += piece;
    at += piece.size();
    if (end == std::string_view::npos) break;
    ++at;
    if (state.line.ends_with('\r')) state.line.pop_back();
    const std::string line = std::exchange(state.line, {});
    TRY_VOID(state.take_line(line));
  }
  return Step{.consumed = at, .data = {}};
}

bool ChunkedDecoder::done() const { return state_->expect == State::Expect::nothing; }

Outcome<void> ChunkedDecoder::finish() const {
  if (done()) return {};
  return state_->expect == State::Expect::trailer ? malformed_trailer() : incomplete();
}

const std::optional<Checksum>& ChunkedDecoder::trailer_checksum() const { return state_->checksum; }

ChunkedEncoder::ChunkedEncoder(PayloadForm form, SigningContext signing)
    : form_(form), signing_(std::move(signing)) {}
ChunkedEncoder::~ChunkedEncoder() = default;

std::string ChunkedEncoder::head(base::ByteView piece) {
  if (!is_signed(form_)) return fmt::format("{:x}\r\n", piece.size());
  signing_.seed_signature = chunk_signature(signing_, signing_.seed_signature, sha256_hex(piece));
  return fmt::format("{:x}{}{}\r\n", piece.size(), kSignatureExtension, signing_.seed_signature);
}

std::string ChunkedEncoder::last(const std::optional<Checksum>& trailer) {
  std::string text = head({});
  if (trailer) {
    const std::string field = checksum_header(trailer->kind) + ":" + to_text(*trailer);
    text += field + "\r\n";
    if (form_ == PayloadForm::streaming_signed_trailer) {
      text += fmt::format("{}:{}\r\n", kTrailerSignature,
                          trailer_signature(signing_, signing_.seed_signature, field + "\n"));
    }
  }
  return text + "\r\n";
}

std::uint64_t ChunkedEncoder::encoded_length(PayloadForm form, std::uint64_t decoded_length,
                                             std::uint64_t piece_bytes,
                                             std::optional<base::ChecksumKind> trailer) {
  const std::uint64_t extension = is_signed(form) ? kSignatureExtension.size() + 64 : 0;
  const auto frame = [&](std::uint64_t size) { return fmt::formatted_size("{:x}", size) + extension + 2; };
  const std::uint64_t whole_pieces = decoded_length / piece_bytes;
  const std::uint64_t rest = decoded_length % piece_bytes;
  std::uint64_t length = decoded_length + whole_pieces * (frame(piece_bytes) + 2) + frame(0) + 2;
  if (rest > 0) length += frame(rest) + 2;
  if (!trailer) return length;
  length += checksum_header(*trailer).size() + 1 + (base::digest_size(*trailer) + 2) / 3 * 4 + 2;
  if (form == PayloadForm::streaming_signed_trailer) length += kTrailerSignature.size() + 1 + 64 + 2;
  return length;
}

}  // namespace reelway::s3
