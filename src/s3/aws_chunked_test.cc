#include "s3/aws_chunked.h"

#include <gmock/gmock.h>

#include "base/rng.h"

namespace reelway::s3 {
namespace {

using testing::Contains;
using testing::Pair;

SigningContext example_signing(std::string seed) {
  return {
      .key = derive_signing_key("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "20130524", "us-east-1", "s3"),
      .scope = "20130524/us-east-1/s3/aws4_request",
      .timestamp = "20130524T000000Z",
      .seed_signature = std::move(seed)};
}

struct Decoded {
  std::string bytes;
  std::optional<Checksum> trailer;
};

/// Feeds `wire` in pieces of `step` bytes.
Outcome<Decoded> decode(ChunkedOptions options, std::string_view wire, std::size_t step = 1 << 20) {
  ChunkedDecoder decoder(std::move(options));
  Decoded out;
  while (!wire.empty()) {
    base::ByteView piece = base::as_bytes(wire.substr(0, step));
    wire.remove_prefix(piece.size());
    while (!piece.empty()) {
      TRY(const auto taken, decoder.feed(piece));
      out.bytes += base::as_text(taken.data);
      piece = piece.subspan(taken.consumed);
    }
  }
  TRY_VOID(decoder.finish());
  out.trailer = decoder.trailer_checksum();
  return out;
}

ErrorCode code_of(const Outcome<Decoded>& outcome) {
  return outcome ? ErrorCode::not_modified : outcome.error().code;
}

// The example of "Transferring Payload in Multiple Chunks": 65 KiB of 'a' in chunks of 64 KiB and 1 KiB.
std::string example_body(const std::vector<std::string>& signatures, std::string_view trailer) {
  return "10000;chunk-signature=" + signatures[0] + "\r\n" + std::string(65536, 'a') +
         "\r\n400;chunk-signature=" + signatures[1] + "\r\n" + std::string(1024, 'a') +
         "\r\n0;chunk-signature=" + signatures[2] + "\r\n" + std::string(trailer) + "\r\n";
}
const std::vector<std::string> kSignatures{
    "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
    "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
    "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"};
const std::string kSeed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";

ChunkedOptions example_options() {
  return {.form = PayloadForm::streaming_signed,
          .signing = example_signing(kSeed),
          .decoded_length = 66560,
          .trailer = {}};
}

TEST(AwsChunked, DecodesTheExampleOfAwsInPiecesOfAnySize) {
  const std::string body = example_body(kSignatures, "");
  EXPECT_EQ(body.size(), 66824U);
  for (const std::size_t step : {1U, 7U, 8192U, 70000U}) {
    const auto decoded = decode(example_options(), body, step);
    ASSERT_TRUE(decoded) << step;
    EXPECT_EQ(decoded->bytes, std::string(66560, 'a'));
  }
}

TEST(AwsChunked, EncodesTheExampleOfAws) {
  ChunkedEncoder encoder(PayloadForm::streaming_signed, example_signing(kSeed));
  std::string body;
  for (const std::size_t size : {65536U, 1024U}) {
    const std::string piece(size, 'a');
    body += encoder.head(base::as_bytes(piece));
    body += piece + "\r\n";
  }
  body += encoder.last({});
  EXPECT_EQ(body, example_body(kSignatures, ""));
  EXPECT_EQ(ChunkedEncoder::encoded_length(PayloadForm::streaming_signed, 66560, 65536, {}), body.size());
}

// The example of "Including trailing headers": the same body with a CRC32C.
const std::vector<std::string> kTrailerSignatures{
    "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
    "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
    "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992"};
const std::string kTrailerSeed = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e";
const std::string kTrailer =
    "x-amz-checksum-crc32c:sOO8/Q==\n"
    "x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n";

ChunkedOptions trailer_options() {
  return {.form = PayloadForm::streaming_signed_trailer,
          .signing = example_signing(kTrailerSeed),
          .decoded_length = 66560,
          .trailer = base::ChecksumKind::crc32c};
}

TEST(AwsChunked, DecodesTheTrailerExampleOfAws) {
  for (const std::size_t step : {1U, 1000U, 70000U}) {
    const auto decoded = decode(trailer_options(), example_body(kTrailerSignatures, kTrailer), step);
    ASSERT_TRUE(decoded) << decoded.error().name();
    EXPECT_EQ(decoded->bytes.size(), 66560U);
    ASSERT_TRUE(decoded->trailer);
    EXPECT_EQ(to_text(*decoded->trailer), "sOO8/Q==");
    EXPECT_EQ(decoded->trailer->value,
              base::digest_of(base::ChecksumKind::crc32c, base::as_bytes(decoded->bytes)));
  }
}

TEST(AwsChunked, AnEmptyLineMayStandBeforeTheTrailerSignature) {
  std::string trailer = kTrailer;
  trailer.insert(trailer.find('\n') + 1, "\r\n");
  EXPECT_TRUE(decode(trailer_options(), example_body(kTrailerSignatures, trailer)));
}

TEST(AwsChunked, AnyChangedByteOrSignatureIsRefused) {
  const std::string body = example_body(kTrailerSignatures, kTrailer);
  for (const std::string_view place : {"b474d8", "1c1344", "2ca2ab", "d81f82", "aaaa", "sOO8"}) {
    std::string changed = body;
    changed[changed.find(place)] = place[0] == '1'   ? '2'
                                   : place[0] == 's' ? 't'
                                   : place[0] == 'a' ? 'b'
                                                     : '1';
    EXPECT_EQ(code_of(decode(trailer_options(), changed)), ErrorCode::signature_does_not_match) << place;
  }
}

TEST(AwsChunked, BytesOfAChunkWithABadSignatureAreNotCompleted) {
  std::string body = example_body(kSignatures, "");
  body[body.find("\r\n400") - 1] = 'b';
  ChunkedDecoder decoder(example_options());
  std::size_t given = 0;
  base::ByteView rest = base::as_bytes(body);
  for (;;) {
    const auto step = decoder.feed(rest.first(std::min<std::size_t>(rest.size(), 1000)));
    if (!step) break;
    given += step->data.size();
    rest = rest.subspan(step->consumed);
  }
  EXPECT_LT(given, 65536U);
  EXPECT_FALSE(decoder.done());
}

TEST(AwsChunked, ASignedFormWithoutSignaturesIsRefused) {
  EXPECT_EQ(code_of(decode(example_options(), "10000\r\n" + std::string(65536, 'a') + "\r\n")),
            ErrorCode::incomplete_body);
  EXPECT_EQ(
      code_of(decode(example_options(), "10000;chunk-signature=\r\n" + std::string(65536, 'a') + "\r\n")),
      ErrorCode::signature_does_not_match);
}

ChunkedOptions unsigned_options(std::uint64_t length,
                                std::optional<base::ChecksumKind> trailer = base::ChecksumKind::crc32) {
  return {.form = PayloadForm::streaming_unsigned_trailer,
          .signing = {},
          .decoded_length = length,
          .trailer = trailer};
}

TEST(AwsChunked, UnsignedWithTrailer) {
  for (const std::string end : {"\r\n", "\n"}) {
    const auto decoded = decode(unsigned_options(5), "5" + end + "hello" + end + "0" + end +
                                                         "x-amz-checksum-crc32:NhCmhg==" + end + end);
    ASSERT_TRUE(decoded) << decoded.error().name();
    EXPECT_EQ(decoded->bytes, "hello");
    ASSERT_TRUE(decoded->trailer);
    EXPECT_EQ(to_text(*decoded->trailer), "NhCmhg==");
  }
}

struct BadBody {
  std::string wire;
  std::uint64_t length;
  std::optional<base::ChecksumKind> trailer;
  ErrorCode code;
};

TEST(AwsChunked, BadUnsignedBodies) {
  const std::string small = "4\r\nabcd\r\n";
  const auto crc32 = base::ChecksumKind::crc32;
  const std::vector<BadBody> cases{
      {small + "0\r\n\r\n", 4, {}, ErrorCode::not_modified},
      {"0\r\n\r\n", 0, {}, ErrorCode::not_modified},
      {small + "0\r\n\r\n", 4, crc32, ErrorCode::malformed_trailer_error},
      {small + "0\r\nx-amz-checksum-crc32:7YLNEQ==\r\n\r\n", 4, {}, ErrorCode::malformed_trailer_error},
      {small + "0\r\nx-amz-checksum-sha1:7YLNEQ==\r\n\r\n", 4, crc32, ErrorCode::malformed_trailer_error},
      {small + "0\r\nx-amz-checksum-crc32 7YLNEQ==\r\n\r\n", 4, crc32, ErrorCode::malformed_trailer_error},
      {small + "0\r\nx-amz-checksum-crc32:7YLNEQ==\r\nx-amz-checksum-crc32:7YLNEQ==\r\n\r\n", 4, crc32,
       ErrorCode::malformed_trailer_error},
      {small + "0\r\nx-amz-checksum-crc32:7YLNEQ==\r\nx-amz-trailer-signature:00\r\n\r\n", 4, crc32,
       ErrorCode::malformed_trailer_error},
      {small + "0\r\nx-amz-checksum-crc32:7YLN\r\n\r\n", 4, crc32, ErrorCode::invalid_request},
      {small + "0\r\nx-amz-checksum-crc32:7YLNEQ==\r\n", 4, crc32, ErrorCode::malformed_trailer_error},
      {small + "0\r\nx-amz-checksum-crc32:" + std::string(2000, 'A') + "\r\n\r\n", 4, crc32,
       ErrorCode::malformed_trailer_error},
      {small + small + "0\r\n\r\n", 8, {}, ErrorCode::invalid_chunk_size_error},
      {small + "0\r\n\r\n", 5, {}, ErrorCode::incomplete_body},
      {small + "0\r\n\r\n", 3, {}, ErrorCode::incomplete_body},
      {small + "0\r\n\r\nmore", 4, {}, ErrorCode::incomplete_body},
      {small, 4, {}, ErrorCode::incomplete_body},
      {"4\r\nab", 4, {}, ErrorCode::incomplete_body},
      {"4\r\nabcdef\r\n0\r\n\r\n", 4, {}, ErrorCode::incomplete_body},
      {"x\r\nabcd\r\n0\r\n\r\n", 4, {}, ErrorCode::incomplete_body},
      {"-4\r\nabcd\r\n0\r\n\r\n", 4, {}, ErrorCode::incomplete_body},
      {"\r\nabcd\r\n0\r\n\r\n", 4, {}, ErrorCode::incomplete_body},
      {"ffffffffffffffff\r\nabcd", 4, {}, ErrorCode::incomplete_body},
      {"10000000000000004\r\nabcd\r\n0\r\n\r\n", 4, {}, ErrorCode::incomplete_body},
      {std::string(300, '0') + "4\r\nabcd\r\n0\r\n\r\n", 4, {}, ErrorCode::incomplete_body},
      {"", 0, {}, ErrorCode::incomplete_body},
  };
  for (const BadBody& bad : cases) {
    for (const std::size_t step : {1U, 100000U}) {
      EXPECT_EQ(code_of(decode(unsigned_options(bad.length, bad.trailer), bad.wire, step)), bad.code)
          << bad.wire.substr(0, 80);
    }
  }
}

TEST(AwsChunked, SmallChunkFaultNamesTheChunk) {
  const auto outcome = decode(unsigned_options(8, {}), "4\r\nabcd\r\n4\r\nabcd\r\n0\r\n\r\n");
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().fields, Contains(Pair("BadChunkSize", "4")));
  EXPECT_THAT(outcome.error().fields, Contains(Pair("Chunk", "1")));
}

TEST(AwsChunked, EveryFormComesBackWhole) {
  base::SeededRng rng(7);
  for (const PayloadForm form : {PayloadForm::streaming_signed, PayloadForm::streaming_signed_trailer,
                                 PayloadForm::streaming_unsigned_trailer}) {
    for (const std::size_t size : {0U, 1U, 8192U, 8193U, 20000U, 171164U}) {
      std::string object(size, '\0');
      rng.fill(std::as_writable_bytes(std::span(object)));
      std::optional<Checksum> trailer;
      if (form != PayloadForm::streaming_signed) {
        trailer = Checksum{.kind = base::ChecksumKind::crc64nvme,
                           .value = base::digest_of(base::ChecksumKind::crc64nvme, base::as_bytes(object))};
      }
      ChunkedEncoder encoder(form, example_signing(kSeed));
      std::string wire;
      for (std::size_t at = 0; at < size; at += 8192) {
        const std::string piece = object.substr(at, 8192);
        wire += encoder.head(base::as_bytes(piece));
        wire += piece + "\r\n";
      }
      wire += encoder.last(trailer);
      const auto kind = trailer ? std::optional(trailer->kind) : std::nullopt;
      EXPECT_EQ(ChunkedEncoder::encoded_length(form, size, 8192, kind), wire.size());
      const auto decoded =
          decode({.form = form, .signing = example_signing(kSeed), .decoded_length = size, .trailer = kind},
                 wire, 4093);
      ASSERT_TRUE(decoded) << decoded.error().name();
      EXPECT_EQ(decoded->bytes, object);
      EXPECT_EQ(decoded->trailer, trailer);
    }
  }
}

}  // namespace
}  // namespace reelway::s3
