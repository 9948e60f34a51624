// The changer at CDB level: rules of SMC-3.

#include <gmock/gmock.h>

#include "vtl/test_library.h"

namespace reelway::vtl {
namespace {

using scsi::ElementType;

class Changer : public LoadedDrive {
 protected:
  scsi::Device& changer() { return library_->changer(); }
  std::string tell(const scsi::Command& command) { return sense_of(ask(changer(), command)); }
  std::vector<scsi::Element> elements(const scsi::ElementQuery& query = {}) {
    base::Bytes reply(16384);
    const scsi::Reply answer = ask(changer(), scsi::read_element_status(query, reply));
    EXPECT_EQ(sense_of(answer), "good");
    auto parsed = scsi::parse_element_status(base::ByteView(reply).first(answer.data_in_bytes));
    EXPECT_TRUE(parsed.has_value()) << to_string(parsed.error());
    return parsed.value_or(std::vector<scsi::Element>{});
  }
  scsi::Element element(std::uint16_t address) {
    const auto found = elements({.first = address, .count_max = 1});
    return found.empty() ? scsi::Element{} : found.front();
  }
};

TEST_F(Changer, TellsItsElementAddresses) {
  base::Bytes reply(64);
  const scsi::Reply answer = ask(changer(), scsi::mode_sense(0x1d, 0, reply));
  const auto data = scsi::parse_mode_data(base::ByteView(reply).first(answer.data_in_bytes));
  const auto addresses = scsi::parse_element_addresses(data->find(0x1d)->bytes);
  ASSERT_TRUE(addresses.has_value());
  EXPECT_EQ(addresses->first_slot, 0x1000);
  EXPECT_EQ(addresses->slot_count, 8);
  EXPECT_EQ(addresses->first_drive_bay, 0x100);
  EXPECT_EQ(addresses->drive_bay_count, 2);
  EXPECT_EQ(addresses->mail_slot_count, 2);
  EXPECT_EQ(addresses->picker_count, 1);
}

TEST_F(Changer, ReportsEveryElementWithTagsAndSerialNumbers) {
  const auto all = elements();
  ASSERT_EQ(all.size(), 1U + 2 + 2 + 8);
  const scsi::Element bay = element(kBay);
  EXPECT_EQ(bay.type, ElementType::drive_bay);
  EXPECT_TRUE(bay.full);
  EXPECT_FALSE(bay.accessible) << "a threaded cartridge is out of the robot's reach";
  EXPECT_EQ(bay.barcode, kBarcode);
  EXPECT_EQ(bay.source, kSlot);
  EXPECT_EQ(bay.device_id, "RWDRV00000");
  EXPECT_FALSE(element(kSlot).full);
  EXPECT_EQ(element(kSlot + 1).barcode, "RW0002L9");
}

TEST_F(Changer, FiltersByTypeFirstAndCount) {
  EXPECT_EQ(elements({.type = ElementType::slot}).size(), 8U);
  const auto some = elements({.type = ElementType::slot, .first = 0x1003, .count_max = 2});
  ASSERT_EQ(some.size(), 2U);
  EXPECT_EQ(some[0].address, 0x1003);
  const auto bare = elements({.type = ElementType::drive_bay, .volume_tags = false, .device_ids = false});
  EXPECT_EQ(bare[0].barcode, "");
  EXPECT_EQ(bare[0].device_id, "");
  base::Bytes reply(64);
  EXPECT_EQ(tell(scsi::read_element_status({.first = 0x7000}, reply)), "05/21/01");
}

TEST_F(Changer, MovesAndRefusesToMove) {
  EXPECT_EQ(move(kSlot, kBay + 1), "05/3b/0e") << "source empty";
  EXPECT_EQ(move(kSlot + 1, kBay), "05/3b/0d") << "destination full";
  EXPECT_EQ(move(kSlot + 1, 0x0999), "05/21/01") << "no such element";
  EXPECT_EQ(move(kSlot + 1, 1), "05/21/01") << "a picker holds nothing for long";
  EXPECT_EQ(move(kBay, kSlot), "05/53/01") << "not unloaded";
  EXPECT_EQ(run(scsi::prevent_removal(true)), "good");
  EXPECT_EQ(move(kBay, kSlot), "05/53/02") << "locked in";
  EXPECT_EQ(run(scsi::prevent_removal(false)), "good");
  EXPECT_EQ(run(scsi::unload()), "good");
  EXPECT_TRUE(element(kBay).accessible);
  EXPECT_EQ(move(kBay, kSlot + 9), "05/21/01");
  EXPECT_EQ(move(kBay, kSlot), "good");
  EXPECT_EQ(element(kSlot).barcode, kBarcode);
  EXPECT_FALSE(element(kBay).full);
  EXPECT_EQ(run(scsi::test_unit_ready()), "02/3a/00");
}

TEST_F(Changer, LoadedCartridgeBringsAnAttentionAndItsData) {
  write("travels");
  flush();
  run(scsi::unload());
  EXPECT_EQ(move(kBay, kBay + 1), "good");
  scsi::Device& other = library_->drive(1);
  EXPECT_EQ(sense_of(ask(other, scsi::test_unit_ready())), "06/29/00");
  EXPECT_EQ(sense_of(ask(other, scsi::test_unit_ready())), "06/28/00");
  base::Bytes block(64);
  EXPECT_EQ(ask(other, scsi::read(block, true)).data_in_bytes, 7U);
  EXPECT_EQ(element(kBay + 1).source, kSlot) << "the slot it came from, not the other drive";
}

TEST_F(Changer, MailSlotTakesCartridgesInAndOut) {
  EXPECT_EQ(library_->put_in("RW0002L9").error().code, base::Code::already_exists);
  EXPECT_EQ(library_->put_in("bad code").error().code, base::Code::invalid_argument);
  ASSERT_TRUE(library_->put_in("GUEST1L9").has_value());
  EXPECT_EQ(tell(scsi::test_unit_ready()), "06/28/01");
  EXPECT_EQ(element(kMailSlot).barcode, "GUEST1L9");
  EXPECT_TRUE(element(kMailSlot).by_operator);
  EXPECT_EQ(move(kMailSlot, kSlot), "good");
  ASSERT_TRUE(library_->take_out("GUEST1L9").has_value());
  EXPECT_EQ(tell(scsi::test_unit_ready()), "06/28/00");
  EXPECT_EQ(move(kSlot, kBay + 1), "05/3b/0e") << "the cartridge is missing";
  EXPECT_EQ(library_->take_out("GUEST1L9").error().code, base::Code::not_found);
}

TEST_F(Changer, CartridgeTakenFromADriveIsGone) {
  write("lost in the hand");
  ASSERT_TRUE(library_->take_out(kBarcode).has_value());
  EXPECT_EQ(read(), "02/3a/00");
  tell(scsi::test_unit_ready());
  ASSERT_TRUE(library_->put_in(kBarcode).has_value());
  tell(scsi::test_unit_ready());
  EXPECT_EQ(move(kMailSlot, kBay), "good");
  settle();
  EXPECT_EQ(read(), "lost in the hand");
}

TEST_F(Changer, ShelfSurvivesAReopen) {
  EXPECT_EQ(move(kSlot + 2, kMailSlot), "good");
  reopen();
  EXPECT_EQ(element(kBay).barcode, kBarcode);
  EXPECT_EQ(element(kMailSlot).barcode, "RW0003L9");
  EXPECT_EQ(element(kBay).source, kSlot);
  EXPECT_EQ(library_->barcodes().size(), 8U);
}

TEST_F(Changer, ReopenedWithOtherNumbersLosesNoCartridge) {
  options_.drives = 1;
  options_.cartridges = 9;
  run(scsi::unload());
  EXPECT_EQ(move(kBay, kBay + 1), "good");
  library_.reset();
  open();
  EXPECT_EQ(library_->barcodes().size(), 9U);
  EXPECT_NE(std::ranges::count(library_->barcodes(), kBarcode), 0) << "its drive is gone, it is in a slot";
}

TEST_F(Changer, SecondOpenerIsRefused) {
  const auto second = Library::open(options_);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, base::Code::busy);
}

TEST_F(Changer, DamagedStateIsRefusedNotGuessed) {
  library_.reset();
  {
    std::FILE* state = std::fopen((options_.directory / "library").c_str(), "w");
    std::fputs("reelway-vtl 1\nnonsense\n", state);
    std::fclose(state);
  }
  const auto opened = Library::open(options_);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, base::Code::data_loss);
}

TEST_F(Changer, UnreadableCartridgeStaysInItsSlot) {
  std::FILE* memory = std::fopen((library_->cartridge_folder("RW0004L9") / "memory").c_str(), "w");
  std::fputs("partitions 7\n", memory);
  std::fclose(memory);
  EXPECT_EQ(move(kSlot + 3, kBay + 1), "03/52/00");
  EXPECT_EQ(element(kSlot + 3).barcode, "RW0004L9");
  EXPECT_FALSE(element(kBay + 1).full);
}

TEST_F(Changer, PowerOnAttentionAndIdentity) {
  ASSERT_TRUE(library_->power_cut(7).has_value());
  base::Bytes reply(96);
  EXPECT_EQ(tell(scsi::inquiry(reply)), "good");
  EXPECT_EQ(scsi::parse_inquiry(reply)->device_type, 8);
  EXPECT_EQ(tell(scsi::test_unit_ready()), "06/29/00");
  EXPECT_EQ(tell(scsi::initialize_element_status()), "good");
  EXPECT_EQ(tell(scsi::initialize_element_status_range(0x1000, 4)), "good");
  EXPECT_EQ(tell(scsi::rewind(scsi::Immediate::no)), "05/20/00");
  EXPECT_EQ(element(kBay).barcode, kBarcode);
}

}  // namespace
}  // namespace reelway::vtl
