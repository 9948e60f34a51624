#include "tape/drive.h"

#include <gtest/gtest.h>

#include "testing/tape_rig.h"

namespace reelway::tape {
namespace {

using base::Code;
using testing::code_of;
using testing::must;

class DriveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    rig_.load(rig_.barcode());
    must(drive().locate({0, 0}));
  }
  Drive& drive() { return rig_.drive(); }
  void write(std::string_view text) { must(drive().write_block(base::as_bytes(text))); }
  void fault(std::uint8_t opcode, scsi::Sense sense) {
    rig_.vtl().faults().add({.device = vtl::DeviceId::drive(0), .opcode = opcode, .sense = sense});
  }
  std::string read(std::size_t bytes_max = 4096) {
    base::Bytes block(bytes_max);
    const auto result = must(drive().read_block(block));
    if (result.end == ReadEnd::filemark) return "FM";
    if (result.end == ReadEnd::end_of_data) return "EOD";
    return std::string(base::as_text(base::ByteView(block).first(result.bytes)));
  }

  testing::TapeRig rig_;
};

TEST_F(DriveTest, IdentifiesItself) {
  const auto identity = must(drive().identify());
  EXPECT_FALSE(identity.serial.empty());
  EXPECT_FALSE(identity.vendor.empty());
}

TEST_F(DriveTest, ReadsBackBlocksMarksAndTheEnd) {
  write("first");
  must(drive().write_filemarks(1, true));
  write("second, longer");
  must(drive().write_filemarks(0, false));
  must(drive().confirm_position());
  EXPECT_EQ(drive().position(), (Position{0, 3}));

  must(drive().locate({0, 0}));
  EXPECT_EQ(read(), "first");
  EXPECT_EQ(read(), "FM");
  EXPECT_EQ(read(14), "second, longer");
  EXPECT_EQ(read(), "EOD");
  must(drive().confirm_position());
}

TEST_F(DriveTest, ABlockLargerThanAskedIsAnErrorAndIsPassed) {
  write("large block");
  write("next");
  must(drive().locate({0, 0}));
  base::Bytes small(4);
  EXPECT_EQ(code_of(drive().read_block(small)), Code::too_large);
  EXPECT_EQ(drive().position(), (Position{0, 1}));
  EXPECT_EQ(read(), "next");
}

TEST_F(DriveTest, LocateBeyondTheEndOfDataIsOutOfRange) {
  write("only");
  EXPECT_EQ(code_of(drive().locate({0, 7})), Code::out_of_range);
  must(drive().locate_end_of_data(0));
  EXPECT_EQ(drive().position(), (Position{0, 1}));
}

TEST_F(DriveTest, SpacesOverFilemarksBothWays) {
  write("a");
  must(drive().write_filemarks(1, true));
  write("b");
  must(drive().write_filemarks(1, true));
  must(drive().space_filemarks(-1));
  EXPECT_EQ(drive().position(), (Position{0, 3}));
  must(drive().space_filemarks(-1));
  EXPECT_EQ(drive().position(), (Position{0, 1}));
  EXPECT_EQ(code_of(drive().space_filemarks(-1)), Code::not_found);
  EXPECT_EQ(drive().position(), (Position{0, 0}));
  must(drive().space_filemarks(1));
  EXPECT_EQ(drive().position(), (Position{0, 2}));
}

TEST_F(DriveTest, FormatsTwoPartitions) {
  must(drive().format_two_partitions());
  must(drive().locate({1, 0}));
  write("in the second");
  EXPECT_EQ(drive().position(), (Position{1, 1}));
  must(drive().confirm_position());
  EXPECT_GT(must(drive().capacity(1)).maximum, must(drive().capacity(0)).maximum);
}

TEST_F(DriveTest, KeepsAttributesOfTheCartridgeMemory) {
  const auto text = base::as_bytes("pool-a");
  must(drive().write_attribute(
      0, {.id = 0x0808, .format = scsi::AttributeFormat::text, .value = {text.begin(), text.end()}}));
  const auto value = must(drive().read_attribute(0, 0x0808));
  ASSERT_TRUE(value);
  EXPECT_EQ(base::as_text(*value).substr(0, 6), "pool-a");
  EXPECT_FALSE(must(drive().read_attribute(0, 0x0807)));
}

TEST_F(DriveTest, AModeChangeAttentionIsRetriedUnseen) {
  fault(0x0a, {.key = 6, .asc = 0x2a, .ascq = 1});
  const auto changes = drive().change_count();
  write("written all the same");
  EXPECT_EQ(drive().change_count(), changes);
  EXPECT_EQ(drive().position().block, 1U);
}

TEST_F(DriveTest, AResetBeforeAWriteLosesThePosition) {
  fault(0x0a, {.key = 6, .asc = 0x29, .ascq = 0});
  const auto changes = drive().change_count();
  EXPECT_EQ(code_of(drive().write_block(base::as_bytes("not written"))), Code::busy);
  EXPECT_GT(drive().change_count(), changes);
  EXPECT_EQ(code_of(drive().write_block(base::as_bytes("refused"))), Code::precondition_failed);
  must(drive().locate({0, 0}));
  write("written again");
}

TEST_F(DriveTest, WriteErrorsTellTheScope) {
  fault(0x0a, {.key = 3, .asc = 0x0c, .ascq = 0});
  const auto result = testing::run_task(drive().write_block(base::as_bytes("x")));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::data_loss);
  EXPECT_EQ(result.error().scope, base::Scope::cartridge);
  EXPECT_EQ(code_of(drive().write_block(base::as_bytes("x"))), Code::precondition_failed);
}

TEST_F(DriveTest, EarlyWarningIsAStateNotAnError) {
  fault(0x0a, {.key = 0, .asc = 0, .ascq = 2, .end_of_medium = true});
  EXPECT_FALSE(drive().early_warning());
  write("still written");
  EXPECT_TRUE(drive().early_warning());
}

TEST_F(DriveTest, AFullPartitionIsNoSpace) {
  fault(0x0a, {.key = 0xd, .asc = 0, .ascq = 2, .end_of_medium = true});
  EXPECT_EQ(code_of(drive().write_block(base::as_bytes("x"))), Code::no_space);
}

TEST_F(DriveTest, AnAnswerThatIsLostLeavesThePositionUnknown) {
  rig_.vtl().faults().add({.device = vtl::DeviceId::drive(0),
                           .opcode = 0x0a,
                           .when = vtl::Fault::When::after,
                           .sense = {},
                           .hang = true});
  EXPECT_EQ(code_of(drive().write_block(base::as_bytes("x"))), Code::deadline_exceeded);
  EXPECT_EQ(code_of(drive().confirm_position()), Code::precondition_failed);
}

TEST_F(DriveTest, WriteProtectionIsSeen) {
  EXPECT_FALSE(must(drive().is_write_protected()));
  ASSERT_TRUE(rig_.vtl().set_write_protect(rig_.barcode(), true));
  EXPECT_TRUE(must(drive().is_write_protected()));
}

TEST_F(DriveTest, AnEmptyDriveSaysSo) {
  must(rig_.library().unload(0));
  EXPECT_EQ(must(drive().load_state()), LoadState::empty);
  EXPECT_EQ(code_of(drive().wait_ready(std::chrono::seconds(1))), Code::not_found);
}

}  // namespace
}  // namespace reelway::tape
