#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"
#include "media/cost.h"

namespace reelway::media {
namespace {

constexpr int kSamples = 20'000;

std::uint64_t random_position(const Personality& personality, base::Rng& rng) {
  return rng.below(partition_capacity_bytes(personality, Layout::two_partitions, 1));
}

template <class F>
double average(F sample) {
  double sum = 0;
  for (int i = 0; i < kSamples; ++i) sum += sample();
  return sum / kSamples;
}

TEST(Personality, IsFoundByTheBarcodesSuffix) {
  EXPECT_EQ(generation_of_barcode("RW0001L9"), Generation::lto9);
  EXPECT_EQ(generation_of_barcode("RW0001L8"), Generation::lto8);
  EXPECT_EQ(generation_of_barcode("RW0001L7"), std::nullopt);
  EXPECT_EQ(generation_of_barcode("L9"), std::nullopt);
  EXPECT_EQ(generation_of_barcode(""), std::nullopt);
}

TEST(Geometry, WrapsRunForthAndBack) {
  const Personality& p = lto9();
  const std::uint64_t wrap = p.bytes_per_wrap();
  EXPECT_EQ(data_position(p, 0), (HeadPosition{.wrap = 4, .metres = 0}));
  EXPECT_NEAR(data_position(p, wrap / 2).metres, p.length_m / 2, 1e-6);
  EXPECT_EQ(data_position(p, wrap), (HeadPosition{.wrap = 5, .metres = p.length_m}));
  EXPECT_NEAR(data_position(p, wrap + wrap / 4).metres, p.length_m * 3 / 4, 1e-6);
  EXPECT_EQ(data_position(p, 2 * wrap), (HeadPosition{.wrap = 6, .metres = 0}));
  EXPECT_EQ(position_of(p, Layout::two_partitions, 0, 0), (HeadPosition{.wrap = 0, .metres = 0}));
  EXPECT_EQ(position_of(p, Layout::one_partition, 0, 3 * wrap).wrap, 3U);
}

TEST(Geometry, PositionsPastTheLastWrapStayAtItsEnd) {
  const Personality& p = lto9();
  EXPECT_EQ(data_position(p, UINT64_MAX), (HeadPosition{.wrap = 279, .metres = 0}));
}

TEST(Geometry, IndexPartitionCostsTwoWrapsAndTwoGuardWraps) {
  const Personality& p = lto9();
  const std::uint64_t lost = p.capacity_bytes - partition_capacity_bytes(p, Layout::two_partitions, 1);
  EXPECT_NEAR(static_cast<double>(lost), 257e9, 1e9);
  EXPECT_EQ(partition_capacity_bytes(p, Layout::two_partitions, 0), 2 * p.bytes_per_wrap());
}

struct Published {
  const Personality& personality;
  double average_space_from_start_s, average_rewind_s, wrap_gb, wrap_period_s;
};
class Calibration : public testing::TestWithParam<Published> {};

TEST_P(Calibration, AverageLocateFromTheBeginningOfTape) {
  const auto& [p, expected, r, w, s] = GetParam();
  base::SeededRng rng(1);
  const double seconds =
      average([&] { return locate_s(p, HeadPosition{}, data_position(p, random_position(p, rng))); });
  EXPECT_NEAR(seconds, expected, 0.03 * expected);
}

TEST_P(Calibration, AverageRewind) {
  const auto& [p, f, expected, w, s] = GetParam();
  base::SeededRng rng(2);
  EXPECT_NEAR(average([&] { return rewind_s(p, data_position(p, random_position(p, rng))); }), expected,
              0.02 * expected);
}

TEST_P(Calibration, WrapHoldsAndLasts) {
  const auto& [p, f, r, wrap_gb, period_s] = GetParam();
  EXPECT_NEAR(static_cast<double>(p.bytes_per_wrap()) / 1e9, wrap_gb, 0.1);
  EXPECT_NEAR(transfer_s(p, 0, p.bytes_per_wrap()), period_s, 0.01 * period_s);
}

TEST_P(Calibration, RandomOrderCostsAboutFiftySecondsPerFile) {
  const Personality& p = GetParam().personality;
  base::SeededRng rng(3);
  EXPECT_NEAR(average([&] { return locate_s(p, random_position(p, rng), random_position(p, rng)); }), 47, 4);
}

INSTANTIATE_TEST_SUITE_P(Generations, Calibration,
                         testing::Values(Published{lto8(), 59, 59, 57.7, 161.5},
                                         Published{lto9(), 65, 62, 64.3, 162}));

TEST(Cost, ShortestLocateFirstBeatsRandomOrderByFour) {
  const Personality& p = lto9();
  base::SeededRng rng(4);
  std::vector<std::uint64_t> left(1000);
  std::ranges::generate(left, [&] { return random_position(p, rng); });
  std::uint64_t head = 0;
  double seconds = 0;
  while (!left.empty()) {
    const auto next =
        std::ranges::min_element(left, {}, [&](std::uint64_t to) { return locate_s(p, head, to); });
    seconds += locate_s(p, head, *next);
    head = *next;
    left.erase(next);
  }
  EXPECT_GT(seconds / 1000, 10);
  EXPECT_LT(seconds / 1000, 14);
}

TEST(Cost, NothingIsCheaperThanStayingAndNoMoveIsFree) {
  EXPECT_EQ(locate_s(lto9(), 12345, 12345), 0);
  base::SeededRng rng(5);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_GE(locate_s(lto9(), random_position(lto9(), rng), random_position(lto9(), rng)), 1.0);
  }
  EXPECT_GE(locate_s(lto9(), 0, 1), 1.0);
}

TEST(Cost, SteppingBackInAWrapCostsMoreThanGoingOn) {
  const std::uint64_t a = 10'000'000'000;
  const std::uint64_t b = 12'000'000'000;
  EXPECT_NEAR(locate_s(lto9(), b, a) - locate_s(lto9(), a, b), lto9().locate.step_back_s, 1e-9);
}

TEST(Cost, TransferCountsTheTurnsItMakes) {
  const Personality& p = lto9();
  EXPECT_NEAR(transfer_s(p, 0, 400'000'000), 1.0, 1e-9);
  EXPECT_NEAR(transfer_s(p, p.bytes_per_wrap() - 200'000'000, 400'000'000), 1.0 + p.wrap_turn_s, 1e-9);
  EXPECT_NEAR(read_s(p, p.capacity_bytes) / 3600, 12.5, 0.2);  // native fill time
}

TEST(Cost, UnloadOfAnLto9GrowsWithUse) {
  const HeadPosition far{.wrap = 10, .metres = lto9().length_m / 2};
  EXPECT_NEAR(unload_s(lto9(), far, 1'000'000'000), 62 + 56, 1);
  EXPECT_NEAR(unload_s(lto9(), far, 10'000'000'000), 124 + 56, 1);
  EXPECT_NEAR(unload_s(lto9(), far, 100'000'000'000), 186 + 56, 1);
  EXPECT_NEAR(unload_s(lto8(), far, 100'000'000'000), unload_s(lto8(), far, 0), 1e-9);
  EXPECT_EQ(unload_s(lto9(), HeadPosition{}, 0), 56);
}

// TapeOBS: about 80 s for a full switch on LTO-8 near the beginning of tape in a large library.
TEST(Cost, TapeSwitchOfAnLto8) {
  const HeadPosition near{.wrap = 4, .metres = 100};
  const double seconds = unload_s(lto8(), near, 0) + 2 * robot_move_s(lto8()) + load_s(lto8());
  EXPECT_NEAR(seconds, 80, 8);
}

}  // namespace
}  // namespace reelway::media
