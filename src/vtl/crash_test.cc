// What a power cut or a killed process may take, and what not.

#include <gmock/gmock.h>

#include "base/rng.h"
#include "vtl/partition.h"
#include "vtl/test_library.h"

namespace reelway::vtl {
namespace {

std::string content(std::uint64_t number, std::uint64_t seed) {
  std::string text = "block " + std::to_string(number) + " of seed " + std::to_string(seed) + " ";
  text.resize(200 + (number * 7919 + seed) % 9000, static_cast<char>('a' + number % 26));
  return text;
}

class PowerCut : public LoadedDrive, public testing::WithParamInterface<std::uint64_t> {};

/// Writes, syncs, overwrites at random; cuts the power; whatever was synced must be there, nothing may be
/// false, and writing goes on.
TEST_P(PowerCut, KeepsWhatWasSyncedAndNeverLies) {
  const std::uint64_t seed = GetParam();
  SCOPED_TRACE("seed " + std::to_string(seed));
  base::SeededRng rng(seed);
  std::vector<std::string> expected;  // "" is a filemark
  std::size_t synced = 0;
  for (int round = 0; round < 6; ++round) {
    if (rng.below(3) == 0 && !expected.empty()) {
      const std::uint64_t back = rng.below(expected.size());
      ASSERT_EQ(locate(back), "good");
      expected.resize(back);
      synced = std::min(synced, expected.size());
    }
    const std::uint64_t steps = 1 + rng.below(40);
    for (std::uint64_t i = 0; i < steps; ++i) {
      const std::string text =
          rng.below(8) == 0 ? "" : content(expected.size(), seed + static_cast<std::uint64_t>(round));
      ASSERT_EQ(text.empty() ? mark() : write(text), "good");
      expected.push_back(text);
    }
    if (rng.below(2) == 0) {
      ASSERT_EQ(flush(), "good");
      synced = expected.size();
    }
    ASSERT_TRUE(library_->power_cut(rng.next_u64()).has_value());
    settle();
    EXPECT_EQ(position().block, 0U) << "rewound";
    ASSERT_EQ(run(scsi::space(scsi::SpaceOver::end_of_data, 0)), "good");
    const std::uint64_t end = position().block;
    ASSERT_GE(end, synced) << "what was synced is there";
    ASSERT_LE(end, expected.size()) << "nothing comes from nowhere";
    expected.resize(end);
    synced = end;
    ASSERT_EQ(run(scsi::rewind(scsi::Immediate::no)), "good");
    for (const std::string& text : expected) {
      ASSERT_EQ(read(16384), text.empty() ? "00/00/01" : text);
    }
    ASSERT_EQ(read(), "08/00/05");
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PowerCut, testing::Range<std::uint64_t>(1, 25));

class PowerCutOnce : public LoadedDrive {};

TEST_F(PowerCutOnce, TakesSomethingThatWasNotSynced) {
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    for (int i = 0; i < 20; ++i) ASSERT_EQ(write("not synced"), "good");
    const std::uint64_t before = position().block;
    ASSERT_TRUE(library_->power_cut(seed).has_value());
    settle();
    run(scsi::space(scsi::SpaceOver::end_of_data, 0));
    lost += before - position().block;
  }
  EXPECT_GT(lost, 0U);
}

TEST_F(PowerCutOnce, UnloadWritesTheBufferOut) {
  write("buffered");
  EXPECT_EQ(run(scsi::unload()), "good");
  ASSERT_TRUE(library_->power_cut(3).has_value());
  settle();
  run(scsi::load());
  EXPECT_EQ(read(), "buffered");
}

class PartitionFiles : public testing::Test {
 protected:
  Partition open() {
    auto opened = Partition::open(folder_.path(), 0, {});
    EXPECT_TRUE(opened.has_value());
    return std::move(*opened);
  }
  void append(Partition& partition, std::string_view text) {
    ASSERT_TRUE(partition.append(base::as_bytes(text)).has_value());
  }
  std::string read(Partition& partition, std::uint64_t number) {
    const auto record = partition.record(number);
    if (!record) return to_string(record.error());
    std::string text(record->length, '\0');
    const auto done = partition.read(*record, std::as_writable_bytes(std::span(text)));
    return done ? text : std::string(to_string(done.error().code));
  }
  std::string file(const char* name) { return *read_file(folder_.path() / name); }
  void put(const char* name, std::string_view bytes) {
    ASSERT_TRUE(replace_file(folder_.path() / name, bytes, Durable::no).has_value());
  }
  ScratchFolder folder_;
};

TEST_F(PartitionFiles, KilledProcessLeavesWhatItsFilesHold) {
  {
    Partition partition = open();
    append(partition, "one");
    append(partition, "two");
    ASSERT_TRUE(partition.append_filemark().has_value());
  }
  Partition partition = open();
  EXPECT_EQ(partition.count(), 3U);
  EXPECT_EQ(partition.filemarks(), 1U);
  EXPECT_EQ(read(partition, 1), "two");
  EXPECT_EQ(partition.unsynced_count(), 0U) << "what was found may be relied on";
}

// An overwritten tail: the process died after the header of the truncation was durable, and the old records
// are still in the file.
TEST_F(PartitionFiles, RecordsOfAnOverwrittenTailNeverComeBack) {
  std::string old_index;
  std::string old_data;
  {
    Partition partition = open();
    for (const char* text : {"aaaa", "bbbb", "cccc", "dddd"}) append(partition, text);
    ASSERT_TRUE(partition.sync().has_value());
    old_index = file("p0.index");
    old_data = file("p0.data");
    ASSERT_TRUE(partition.truncate(1).has_value());
  }
  const std::string header = file("p0.index").substr(0, 64);
  put("p0.index", header + old_index.substr(64));
  put("p0.data", old_data);
  Partition partition = open();
  EXPECT_EQ(partition.count(), 1U);
  append(partition, "BBBB");
  EXPECT_EQ(read(partition, 0), "aaaa");
  EXPECT_EQ(read(partition, 1), "BBBB");
  EXPECT_EQ(partition.count(), 2U);
}

TEST_F(PartitionFiles, TornTailIsCutAndNeverStandsAgain) {
  {
    Partition partition = open();
    append(partition, "kept");
    ASSERT_TRUE(partition.sync().has_value());
    for (const char* text : {"torn", "whole"}) append(partition, text);
  }
  std::string data = file("p0.data");
  data[5] = 'X';  // inside "torn"
  put("p0.data", data);
  {
    Partition partition = open();
    EXPECT_EQ(partition.count(), 1U);
    append(partition, "new!");
  }
  Partition partition = open();
  EXPECT_EQ(partition.count(), 2U);
  EXPECT_EQ(read(partition, 1), "new!");
}

TEST_F(PartitionFiles, LostHeaderCostsNothingThatProvesItself) {
  {
    Partition partition = open();
    for (const char* text : {"aaaa", "bbbb"}) append(partition, text);
    ASSERT_TRUE(partition.truncate(1).has_value());
    append(partition, "cccc");
    ASSERT_TRUE(partition.sync().has_value());
  }
  std::string index = file("p0.index");
  std::fill_n(index.begin(), 64, '\0');
  put("p0.index", index);
  Partition partition = open();
  EXPECT_EQ(partition.count(), 2U);
  EXPECT_EQ(read(partition, 1), "cccc");
}

TEST_F(PartitionFiles, SyncedBlockThatRotsIsReportedNotReturned) {
  {
    Partition partition = open();
    append(partition, "rotten");
    ASSERT_TRUE(partition.sync().has_value());
  }
  put("p0.data", "rotteN");
  Partition partition = open();
  EXPECT_EQ(read(partition, 0), "data_loss");
}

TEST_F(PartitionFiles, PatternBlocksTakeSixtyFourBytes) {
  auto opened = Partition::open(folder_.path(), 0, {.sync = true, .pattern = true});
  ASSERT_TRUE(opened.has_value());
  std::string pattern;
  while (pattern.size() < 100'000)
    pattern += "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789ABCDE" + std::string("\n");
  pattern.resize(100'001);
  append(*opened, pattern);
  append(*opened, "no pattern");
  EXPECT_EQ(file("p0.data").size(), 64U + 10U);
  EXPECT_EQ(read(*opened, 0), pattern);
  EXPECT_EQ(read(*opened, 1), "no pattern");
  EXPECT_EQ(opened->bytes(), 100'011U);
}

TEST_F(PartitionFiles, FilemarksAreFoundAmongManyBlocks) {
  Partition partition = open();
  std::vector<std::uint64_t> marks;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    if (i % 37 == 5) {
      marks.push_back(i);
      ASSERT_TRUE(partition.append_filemark().has_value());
    } else {
      append(partition, "x");
    }
  }
  for (std::uint64_t n = 0; n < marks.size(); ++n) ASSERT_EQ(*partition.filemark(n), marks[n]);
  EXPECT_FALSE(partition.filemark(marks.size()).has_value());
  EXPECT_EQ(*partition.filemarks_before(100), 3U);
  EXPECT_EQ(*partition.position_of(100), 97U);
}

}  // namespace
}  // namespace reelway::vtl
