#include "tape/library.h"

#include <gtest/gtest.h>

#include "testing/tape_rig.h"

namespace reelway::tape {
namespace {

using base::Code;
using testing::code_of;
using testing::must;

class LibraryTest : public ::testing::Test {
 protected:
  Library& library() { return rig_.library(); }
  testing::TapeRig rig_;
};

TEST_F(LibraryTest, SeesSlotsDrivesAndBarcodes) {
  must(library().refresh());
  EXPECT_EQ(library().view().bays.size(), rig_.vtl().drive_count());
  std::size_t cartridges = 0;
  for (const auto& slot : library().view().slots) cartridges += slot.full;
  EXPECT_EQ(cartridges, rig_.vtl().barcodes().size());
}

TEST_F(LibraryTest, LoadAndUnloadAreIdempotent) {
  const auto barcode = rig_.barcode(2);
  for (int i = 0; i < 2; ++i) must(library().load(barcode, 1));
  EXPECT_EQ(library().drive_of(barcode), 1U);
  EXPECT_EQ(must(rig_.drive(1).load_state()), LoadState::ready);
  for (int i = 0; i < 2; ++i) must(library().unload(1));
  EXPECT_EQ(library().drive_of(barcode), std::nullopt);
}

TEST_F(LibraryTest, ACartridgeGoesBackToItsSlot) {
  const auto barcode = rig_.barcode(3);
  must(library().refresh());
  const auto slot_of = [this, &barcode] {
    for (const auto& slot : library().view().slots) {
      if (slot.barcode == barcode) return slot.address;
    }
    return std::uint16_t{0};
  };
  const auto home = slot_of();
  must(library().load(barcode, 0));
  EXPECT_EQ(slot_of(), 0);
  must(library().unload(0));
  EXPECT_EQ(slot_of(), home);
}

TEST_F(LibraryTest, ADriveThatIsTakenIsEmptiedFirst) {
  must(library().load(rig_.barcode(0), 0));
  const auto second = "RW0002L9";
  must(library().load(second, 0));
  EXPECT_EQ(library().drive_of(second), 0U);
}

TEST_F(LibraryTest, SaysWhatItCannotLoad) {
  must(library().load("RW0001L9", 0));
  EXPECT_EQ(code_of(library().load("RW0001L9", 1)), Code::busy);
  EXPECT_EQ(code_of(library().load("NOSUCHL9", 1)), Code::not_found);
  EXPECT_EQ(code_of(library().load("RW0001L9", 99)), Code::invalid_argument);
}

TEST_F(LibraryTest, ACartridgePutInByHandIsFound) {
  must(library().refresh());
  ASSERT_TRUE(rig_.vtl().put_in("NEW001L9"));
  must(library().refresh());  // a person put it there: the changer tells at its next command
  must(library().load("NEW001L9", 0));
  EXPECT_EQ(library().drive_of("NEW001L9"), 0U);
}

TEST_F(LibraryTest, AMoveWhileContentsChangeIsDecidedAgain) {
  must(library().refresh());
  rig_.vtl().faults().add({.device = vtl::DeviceId::changer(),
                           .opcode = 0xa5,
                           .sense = scsi::Sense{.key = 6, .asc = 0x28, .ascq = 1}});
  must(library().load("RW0001L9", 0));
  EXPECT_EQ(library().drive_of("RW0001L9"), 0U);
}

TEST_F(LibraryTest, AMoveWhoseAnswerIsLostIsNotDoneTwice) {
  must(library().refresh());
  rig_.vtl().faults().add({.device = vtl::DeviceId::changer(),
                           .opcode = 0xa5,
                           .when = vtl::Fault::When::after,
                           .sense = {},
                           .hang = true});
  must(library().load("RW0001L9", 0));
  EXPECT_EQ(library().drive_of("RW0001L9"), 0U);
}

TEST_F(LibraryTest, FindsCartridgesInDrivesAfterARestart) {
  must(library().load("RW0003L9", 1));
  rig_.reopen();
  must(library().load("RW0003L9", 1));
  EXPECT_EQ(library().drive_of("RW0003L9"), 1U);
}

}  // namespace
}  // namespace reelway::tape
