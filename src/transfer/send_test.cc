#include "transfer/send.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "async/spawn.h"
#include "testing/fake_exchange.h"

namespace reelway::transfer {
namespace {

using base::PoolShare;
using base::Result;

/// An object whose bytes come from tape in pieces; looks at the pool while it waits for one.
class TapeReader final : public object::Reader {
 public:
  TapeReader(base::BufferPool& pool, std::uint64_t size, std::uint64_t piece)
      : pool_(pool), size_(size), piece_(piece) {}
  const object::ObjectInfo& info() const override { return info_; }
  base::ByteRange range() const override { return {.offset = 0, .length = size_}; }
  std::optional<async::Task<void>> tape_wait() override {
    if (done_ < there_) return std::nullopt;
    return wait();
  }
  async::Task<std::size_t> read(base::MutableBytes into) override {
    if (done_ == size_) co_return std::size_t{0};
    if (done_ == there_) ADD_FAILURE() << "read() would wait for the tape";
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), there_ - done_));
    std::ranges::fill(into.first(count), std::byte{'t'});
    done_ += count;
    co_return count;
  }
  std::size_t waits = 0;
  std::optional<base::Error> broken;

 private:
  async::Task<void> wait() {
    ++waits;
    EXPECT_EQ(pool_.free_count(PoolShare::http), pool_.total_count(PoolShare::http));
    if (broken && waits > 1) co_return *broken;
    there_ = std::min(size_, there_ + piece_);
    co_return Result<void>{};
  }
  base::BufferPool& pool_;
  std::uint64_t size_;
  std::uint64_t piece_;
  std::uint64_t there_ = 0;
  std::uint64_t done_ = 0;
  object::ObjectInfo info_;
};

class SendTest : public ::testing::Test {
 protected:
  Result<void> send(TapeReader& reader) {
    base::HttpResponseHead head;
    head.status = 200;
    return async::run_until_done(
        send_reader(exchange_, std::move(head), reader, *pool_, std::chrono::seconds{1}));
  }
  std::unique_ptr<base::BufferPool> pool_ =
      base::BufferPool::create(
          {.chunk_bytes = 1 << 20, .drives_bytes = 1 << 20, .planes_bytes = 1 << 20, .http_bytes = 1 << 20})
          .value();
  reelway::testing::FakeExchange exchange_{{}, {}};
};

TEST_F(SendTest, HoldsNoChunkWhileItWaitsForATape) {
  TapeReader reader(*pool_, 1'000'000, 300'000);
  ASSERT_TRUE(send(reader));
  EXPECT_EQ(reader.waits, 4U);
  EXPECT_EQ(exchange_.sent_body, std::string(1'000'000, 't'));
}

TEST_F(SendTest, ATapeThatFailsUnderWayIsAnErrorBehindTheHead) {
  TapeReader reader(*pool_, 1'000'000, 300'000);
  reader.broken = base::fail(base::Code::data_loss, "damaged");
  const auto sent = send(reader);
  ASSERT_FALSE(sent);
  EXPECT_EQ(exchange_.status_sent(), 200);
  EXPECT_EQ(exchange_.sent_body.size(), 300'000U);
  EXPECT_FALSE(exchange_.ended);
}

}  // namespace
}  // namespace reelway::transfer
