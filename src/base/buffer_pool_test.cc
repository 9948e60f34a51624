#include "base/buffer_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace reelway::base {
namespace {

BufferPoolOptions small() {
  return {.chunk_bytes = 8192,
          .http_chunk_bytes = 4096,
          .drives_bytes = 2 * 8192,
          .planes_bytes = 3 * 8192,
          .http_bytes = 4 * 4096};
}

TEST(BufferPool, SharesAreApartAndChunksLieInSlabs) {
  const auto pool = BufferPool::create(small()).value();
  EXPECT_EQ(pool->total_count(PoolShare::drives), 2U);
  EXPECT_EQ(pool->total_count(PoolShare::planes), 3U);
  EXPECT_EQ(pool->total_count(PoolShare::http), 4U);
  const auto planes = pool->try_take(PoolShare::planes, 3).value();
  EXPECT_EQ(pool->try_take(PoolShare::planes, 1).error().code, Code::busy);
  const auto drives = pool->try_take(PoolShare::drives, 2).value();
  for (const Chunk& chunk : planes) {
    EXPECT_EQ(chunk.bytes().size(), 8192U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(chunk.bytes().data()) % 4096, 0U);
    std::memset(chunk.bytes().data(), 1, chunk.bytes().size());
    const bool inside = std::ranges::any_of(pool->slabs(), [&](MutableBytes slab) {
      return chunk.bytes().data() >= slab.data() &&
             chunk.bytes().data() + chunk.bytes().size() <= slab.data() + slab.size();
    });
    EXPECT_TRUE(inside);
  }
  EXPECT_NE(planes[0].bytes().data(), planes[1].bytes().data());
}

TEST(BufferPool, TakesAllOrNothing) {
  const auto pool = BufferPool::create(small()).value();
  const auto two = pool->try_take(PoolShare::http, 2).value();
  EXPECT_EQ(pool->try_take(PoolShare::http, 3).error().code, Code::busy);
  EXPECT_EQ(pool->free_count(PoolShare::http), 2U);
  EXPECT_EQ(pool->try_take(PoolShare::http, 5).error().code, Code::invalid_argument);
}

TEST(BufferPool, MovedChunksComeBackOnce) {
  const auto pool = BufferPool::create(small()).value();
  {
    auto chunks = pool->try_take(PoolShare::http, 2).value();
    Chunk moved = std::move(chunks[0]);
    EXPECT_TRUE(static_cast<bool>(moved));
    EXPECT_FALSE(
        static_cast<bool>(chunks[0]));  // NOLINT(bugprone-use-after-move): an empty chunk is a promised state
    chunks[1] = std::move(moved);
    EXPECT_EQ(pool->free_count(PoolShare::http), 3U);
  }
  EXPECT_EQ(pool->free_count(PoolShare::http), 4U);
}

TEST(BufferPool, GrantsInOrderAndLetsNobodyPass) {
  const auto pool = BufferPool::create(small()).value();
  auto taken = pool->try_take(PoolShare::http, 3).value();
  std::vector<int> order;
  std::vector<std::vector<Chunk>> granted;
  const auto note = [&](int name) {
    return [&, name](std::vector<Chunk> chunks) {
      order.push_back(name);
      granted.push_back(std::move(chunks));
    };
  };
  ASSERT_TRUE(pool->request(PoolShare::http, 4, note(1)).has_value());
  ASSERT_TRUE(pool->request(PoolShare::http, 1, note(2)).has_value());
  EXPECT_TRUE(order.empty());
  EXPECT_EQ(pool->try_take(PoolShare::http, 1).error().code, Code::busy);
  taken.clear();
  EXPECT_EQ(order, std::vector<int>{1});
  std::exchange(granted, {}).clear();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_EQ(pool->request(PoolShare::http, 5, note(3)).error().code, Code::invalid_argument);
  granted.clear();
}

TEST(BufferPool, WithdrawingLetsTheNextOneIn) {
  const auto pool = BufferPool::create(small()).value();
  const auto taken = pool->try_take(PoolShare::http, 3).value();
  bool second_granted = false;
  const auto first =
      pool->request(PoolShare::http, 2, [](std::vector<Chunk>) { FAIL() << "withdrawn"; }).value();
  ASSERT_TRUE(
      pool->request(PoolShare::http, 1, [&](std::vector<Chunk>) { second_granted = true; }).has_value());
  EXPECT_FALSE(second_granted);
  EXPECT_TRUE(pool->withdraw(PoolShare::http, first));
  EXPECT_TRUE(second_granted);
  EXPECT_FALSE(pool->withdraw(PoolShare::http, first));
}

TEST(BufferPoolDeathTest, AbortsWhenItGoesBeforeItsChunks) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        auto pool = BufferPool::create(small()).value();
        const auto chunks = pool->try_take(PoolShare::http, 1).value();
        pool.reset();
      },
      "1 chunks are out");
}

TEST(BufferPool, RefusesChunksThatAreNoPages) {
  BufferPoolOptions options = small();
  options.http_chunk_bytes = 1000;
  EXPECT_EQ(BufferPool::create(options).error().code, Code::invalid_argument);
}

}  // namespace
}  // namespace reelway::base
