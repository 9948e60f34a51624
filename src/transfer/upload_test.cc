#include "transfer/upload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <semaphore>

#include "async/spawn.h"
#include "base/rng.h"
#include "testing/fake_exchange.h"
#include "transfer/http_source.h"

namespace reelway::transfer {
namespace {

using base::ChecksumKind;

base::Bytes random_bytes(std::size_t size) {
  base::SeededRng rng(size + 1);
  base::Bytes bytes(size);
  rng.fill(bytes);
  return bytes;
}

/// Everything an upload gives, and what its sealer says.
struct Outcome {
  base::Bytes bytes;
  base::Result<object::Seal> seal = base::fail(base::Code::internal, "not sealed");
};

/// Reads as a store does: into the chunks that were lent, in turn; else into pieces of its own.
async::Task<Outcome> drain(Upload& upload, std::size_t piece_bytes) {
  Outcome outcome;
  base::Bytes piece(piece_bytes);
  const auto lent = upload.buffers();
  for (std::size_t turn = 0;; ++turn) {
    const base::MutableBytes into = lent ? (*lent)[turn % lent->size()].bytes() : base::MutableBytes(piece);
    CO_TRY(const std::size_t count, co_await object::read_full(upload, into));
    outcome.bytes.insert(outcome.bytes.end(), into.begin(),
                         into.begin() + static_cast<std::ptrdiff_t>(count));
    if (count < into.size()) break;
  }
  outcome.seal = upload.sealer()();
  co_return outcome;
}

object::Buffers take_chunks(base::BufferPool& pool, std::size_t count) {
  return std::make_shared<const std::vector<base::Chunk>>(*pool.try_take(base::PoolShare::http, count));
}

class UploadTest : public ::testing::TestWithParam<bool> {
 protected:
  object::Buffers chunks() { return GetParam() ? take_chunks(*pool_, 4) : nullptr; }
  Outcome run(const base::Bytes& bytes, UploadRules rules) {
    object::MemorySource source(bytes);
    Upload upload(source, std::move(rules), chunks(), hash_pool_);
    auto outcome = async::run_until_done(drain(upload, 50'000));
    EXPECT_TRUE(outcome.has_value());
    fault_ = upload.fault();
    return std::move(*outcome);
  }

  std::unique_ptr<base::BufferPool> pool_ = *base::BufferPool::create({});
  async::BlockingPool hash_pool_{"hash", 2};
  std::optional<s3::Fault> fault_;
};

TEST_P(UploadTest, GivesTheBytesAndAllDigests) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{65'536}, std::size_t{1'000'001}}) {
    const auto bytes = random_bytes(size);
    UploadRules rules{
        .etag = EtagKind::md5, .integrity = {}, .sha256 = {}, .also = ChecksumKind::sha1, .trailer = {}};
    rules.integrity.content_md5 = base::digest_of(ChecksumKind::md5, bytes);
    rules.integrity.checksum =
        s3::Checksum{.kind = ChecksumKind::sha256, .value = base::digest_of(ChecksumKind::sha256, bytes)};
    const auto outcome = run(bytes, rules);
    ASSERT_TRUE(outcome.seal.has_value()) << size;
    EXPECT_EQ(outcome.bytes, bytes);
    EXPECT_EQ(outcome.seal->etag, base::to_hex(base::digest_of(ChecksumKind::md5, bytes)));
    ASSERT_EQ(outcome.seal->checksums.size(), 3u);
    for (const auto& checksum : outcome.seal->checksums)
      EXPECT_EQ(checksum.value, base::digest_of(checksum.kind, bytes));
    EXPECT_EQ(outcome.seal->checksums.front().kind, ChecksumKind::sha256)
        << "what the client chose comes first";
    EXPECT_EQ(outcome.seal->checksums.back().kind, ChecksumKind::crc64nvme) << "always recorded";
  }
}

TEST_P(UploadTest, RefusesWhatDoesNotMatchItsDeclaration) {
  const auto bytes = random_bytes(200'000);
  const auto other = random_bytes(100);
  const auto refusal = [&](UploadRules rules) {
    const auto outcome = run(bytes, std::move(rules));
    EXPECT_FALSE(outcome.seal.has_value());
    return fault_ ? fault_->code : s3::ErrorCode::internal_error;
  };
  UploadRules md5;
  md5.integrity.content_md5 = base::digest_of(ChecksumKind::md5, other);
  EXPECT_EQ(refusal(md5), s3::ErrorCode::bad_digest);
  UploadRules signed_hash;
  std::ranges::copy(base::digest_of(ChecksumKind::sha256, other), signed_hash.sha256.emplace().begin());
  EXPECT_EQ(refusal(signed_hash), s3::ErrorCode::x_amz_content_sha256_mismatch);
  for (const auto kind : {ChecksumKind::crc32, ChecksumKind::crc32c, ChecksumKind::crc64nvme,
                          ChecksumKind::sha1, ChecksumKind::sha256}) {
    UploadRules checksum;
    checksum.integrity.checksum = s3::Checksum{.kind = kind, .value = base::digest_of(kind, other)};
    EXPECT_EQ(refusal(checksum), s3::ErrorCode::bad_digest);
    UploadRules trailer;
    trailer.integrity.trailer = kind;
    trailer.trailer = [&] { return s3::Checksum{.kind = kind, .value = base::digest_of(kind, other)}; };
    EXPECT_EQ(refusal(trailer), s3::ErrorCode::bad_digest);
    trailer.trailer = [] { return std::optional<s3::Checksum>{}; };
    EXPECT_EQ(refusal(trailer), s3::ErrorCode::malformed_trailer_error);
  }
}

TEST_P(UploadTest, Crc64EtagIsNoMd5) {
  const auto bytes = random_bytes(100'000);
  const auto outcome =
      run(bytes, {.etag = EtagKind::crc64, .integrity = {}, .sha256 = {}, .also = {}, .trailer = {}});
  ASSERT_TRUE(outcome.seal.has_value());
  EXPECT_EQ(outcome.seal->etag, "crc64nvme-" + base::to_hex(base::digest_of(ChecksumKind::crc64nvme, bytes)));
}

TEST_P(UploadTest, AStoreThatDidNotReadToTheEndGetsNoSeal) {
  const auto bytes = random_bytes(1000);
  object::MemorySource source(bytes);
  Upload upload(source, {}, chunks(), hash_pool_);
  base::Bytes piece(1000);
  ASSERT_EQ(async::run_until_done(upload.read(piece)).value_or(0), 1000u);
  EXPECT_FALSE(upload.sealer()().has_value());
}

INSTANTIATE_TEST_SUITE_P(InPlaceAndOnThreads, UploadTest, ::testing::Bool());

TEST(UploadBuffers, AsManyAsTheBodyNeedsAndFewInACrowd) {
  base::BufferPoolOptions options;
  options.http_bytes = 40 * options.http_chunk_bytes;
  const auto pool = *base::BufferPool::create(options);
  const auto count_for = [&](std::optional<std::uint64_t> length, object::Buffers& out) {
    const auto taken =
        async::run_until_done(take_upload_buffers(*pool, length, std::chrono::milliseconds{1}));
    EXPECT_TRUE(taken.has_value());
    out = taken.value_or(nullptr);
    return out ? out->size() : 0;
  };
  object::Buffers buffers;
  EXPECT_EQ(count_for(0, buffers), 1u);
  EXPECT_EQ(count_for(options.http_chunk_bytes - 1, buffers), 1u);
  EXPECT_EQ(count_for(options.http_chunk_bytes, buffers), 2u) << "room for the end to be seen";
  EXPECT_EQ(count_for(5 * base::kGiB, buffers), 16u);
  object::Buffers second;
  EXPECT_EQ(count_for(std::nullopt, second), 16u);
  object::Buffers third;
  EXPECT_EQ(count_for(std::nullopt, third), 2u) << "more than half of the share is in use";
}

/// Waits on the hashing pool until told to go on.
class Brake {
 public:
  explicit Brake(async::BlockingPool& pool) {
    pool.post([this] { released_.acquire(); });
  }
  void release() { released_.release(); }

 private:
  std::binary_semaphore released_{0};
};

async::Task<void> release(Brake& brake) {
  brake.release();
  co_return base::Result<void>{};
}

/// The hashing thread stands still until the reader has to wait for it, or has read everything.
async::Task<Outcome> drain_against(Upload& upload, Brake& brake) {
  using namespace boost::asio::experimental::awaitable_operators;
  auto [outcome, released] = co_await (drain(upload, 1) && release(brake));
  co_return std::move(outcome);
}

TEST(UploadHashing, AChunkIsNotFilledAnewBeforeItWasHashed) {
  const auto pool = *base::BufferPool::create({});
  const auto bytes = random_bytes(1'000'000);
  async::BlockingPool hash_pool("hash", 1);
  Brake brake(hash_pool);
  object::MemorySource source(bytes);
  Upload upload(source, {}, take_chunks(*pool, 3), hash_pool);
  const auto outcome = async::run_until_done(drain_against(upload, brake));
  ASSERT_TRUE(outcome && outcome->seal);
  EXPECT_EQ(outcome->seal->etag, base::to_hex(base::digest_of(ChecksumKind::md5, bytes)));
}

TEST(UploadHashing, BytesInTheReadersOwnMemoryAreHashedInOrder) {
  const auto pool = *base::BufferPool::create({});
  const auto bytes = random_bytes(500'000);
  async::BlockingPool hash_pool("hash", 2);
  object::MemorySource source(bytes);
  Upload upload(source, {}, take_chunks(*pool, 3), hash_pool);
  base::Bytes own(bytes.size() + 1);
  ASSERT_EQ(async::run_until_done(object::read_full(upload, own)).value_or(0), bytes.size());
  const auto seal = upload.sealer()();
  ASSERT_TRUE(seal.has_value());
  EXPECT_EQ(seal->etag, base::to_hex(base::digest_of(ChecksumKind::md5, bytes)));
}

TEST(UploadCancelled, LeavesTheHashingThreadsNothingToTrample) {
  const auto pool = *base::BufferPool::create({});
  const auto bytes = random_bytes(300'000);
  async::BlockingPool hash_pool("hash", 2);
  for (int round = 0; round < 50; ++round) {
    object::MemorySource source(bytes);
    Upload upload(source, {}, take_chunks(*pool, 4), hash_pool);
    for (const auto& chunk : *upload.buffers())
      ASSERT_TRUE(async::run_until_done(upload.read(chunk.bytes())).has_value());
  }  // destroyed while pieces are being hashed
}

// ---- the HTTP body ----

base::HttpRequestHead put_head(std::uint64_t length) {
  base::HttpRequestHead head{.method = "PUT", .target = "/b/k", .fields = {}, .content_length = length};
  return head;
}

async::Task<std::string> read_all(object::ByteSource& source, std::size_t piece_bytes) {
  std::string out;
  base::Bytes piece(piece_bytes);
  while (true) {
    CO_TRY(const std::size_t count, co_await source.read(piece));
    if (count == 0) co_return out;
    out += base::as_text(base::ByteView(piece).first(count));
  }
}

TEST(HttpSource, PlainBody) {
  testing::FakeExchange exchange(put_head(5), "hello");
  exchange.piece_bytes = 2;
  HttpSource source(exchange, 5);
  EXPECT_EQ(async::run_until_done(read_all(source, 100)).value_or(""), "hello");
}

TEST(HttpSource, ABodyThatEndsEarlyIsIncomplete) {
  testing::FakeExchange exchange(put_head(6), "hello");
  HttpSource source(exchange, 6);
  EXPECT_FALSE(async::run_until_done(read_all(source, 100)).has_value());
  ASSERT_TRUE(source.fault().has_value());
  EXPECT_EQ(source.fault()->code, s3::ErrorCode::incomplete_body);
}

TEST(HttpSource, ChunkedBodyWhateverThePieces) {
  const std::string data(20'000, 'x');
  const std::string body = "2000\r\n" + data.substr(0, 8192) + "\r\n2000\r\n" + data.substr(8192, 8192) +
                           "\r\ne20\r\n" + data.substr(16'384) + "\r\n0\r\nx-amz-checksum-crc32:" +
                           base::to_base64(base::digest_of(ChecksumKind::crc32, base::as_bytes(data))) +
                           "\r\n\r\n";
  for (const std::size_t piece : std::initializer_list<std::size_t>{1, 3, 7, 100, 8192, 100'000}) {
    testing::FakeExchange exchange(put_head(body.size()), body);
    exchange.piece_bytes = piece;
    HttpSource source(exchange, s3::ChunkedOptions{.form = s3::PayloadForm::streaming_unsigned_trailer,
                                                   .signing = {},
                                                   .decoded_length = data.size(),
                                                   .trailer = ChecksumKind::crc32});
    EXPECT_EQ(async::run_until_done(read_all(source, 5000)).value_or(""), data) << piece;
    ASSERT_TRUE(source.trailer().has_value());
    EXPECT_EQ(source.trailer()->kind, ChecksumKind::crc32);
  }
}

TEST(HttpSource, AClientThatGoesAwayInTheMiddle) {
  testing::FakeExchange exchange(put_head(5), "hello");
  exchange.breaks_after = 3;
  HttpSource source(exchange, 5);
  const auto read = async::run_until_done(read_all(source, 100));
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, base::Code::closed);
}

}  // namespace
}  // namespace reelway::transfer
