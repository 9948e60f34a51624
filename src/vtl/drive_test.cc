// A drive at CDB level: rules of SSC-5, each by the bytes that an initiator sees.

#include <gmock/gmock.h>

#include "scsi/fields.h"
#include "vtl/test_library.h"

namespace reelway::vtl {
namespace {

using scsi::Immediate;
using scsi::PositionForm;
using scsi::SpaceOver;

class Drive : public LoadedDrive {};

TEST_F(Drive, BlocksComeBackAsWritten) {
  EXPECT_EQ(write("first"), "good");
  EXPECT_EQ(write("second, longer"), "good");
  EXPECT_EQ(mark(), "good");
  EXPECT_EQ(write("third"), "good");
  EXPECT_EQ(run(scsi::rewind(Immediate::no)), "good");
  EXPECT_EQ(read(), "first");
  EXPECT_EQ(read(), "second, longer");
  EXPECT_EQ(read(), "00/00/01");
  EXPECT_EQ(read(), "third");
  EXPECT_EQ(read(), "08/00/05");
  EXPECT_EQ(position().block, 4U);
}

TEST_F(Drive, LargestBlockIsEightMebibytes) {
  std::byte limits[6];
  ask(drive(), scsi::read_block_limits(limits));
  EXPECT_EQ(scsi::parse_block_limits(limits)->max_bytes, 8U << 20);
  base::Bytes block(8U << 20, std::byte{0x5a});
  block[12345] = std::byte{1};
  EXPECT_EQ(run(scsi::write(block)), "good");
  run(scsi::rewind(Immediate::no));
  base::Bytes back(block.size());
  EXPECT_EQ(ask(drive(), scsi::read(back, false)).data_in_bytes, block.size());
  EXPECT_EQ(back, block);
  block.push_back(std::byte{0});
  EXPECT_EQ(run(scsi::write(block)), "05/24/00");
}

TEST_F(Drive, ShortBlockSetsIncorrectLengthUnlessSuppressed) {
  write("0123456789");
  run(scsi::rewind(Immediate::no));
  base::Bytes block(64);
  scsi::Reply reply = ask(drive(), scsi::read(block, false));
  EXPECT_EQ(sense_of(reply), "00/00/00");
  EXPECT_TRUE(reply.sense.incorrect_length);
  EXPECT_TRUE(reply.sense.information_valid);
  EXPECT_EQ(reply.sense.information, 54);
  EXPECT_EQ(reply.data_in_bytes, 10U);
  EXPECT_EQ(reply.residual, 54U);
  EXPECT_EQ(*scsi::parse_sense(reply.raw_sense), reply.sense);
  run(scsi::rewind(Immediate::no));
  reply = ask(drive(), scsi::read(block, true));
  EXPECT_EQ(sense_of(reply), "good");
  EXPECT_EQ(reply.residual, 54U);
}

TEST_F(Drive, OverlengthBlockGivesItsFirstBytesAndANegativeResidual) {
  write("0123456789");
  write("next");
  run(scsi::rewind(Immediate::no));
  base::Bytes block(4);
  const scsi::Reply reply = ask(drive(), scsi::read(block, false));
  EXPECT_EQ(sense_of(reply), "00/00/00");
  EXPECT_EQ(reply.sense.information, -6);
  EXPECT_EQ(base::as_text(block), "0123");
  EXPECT_EQ(read(), "next") << "the position is after the block";
}

TEST_F(Drive, FixedBlocksAreRefused) {
  scsi::Command command = scsi::write(base::as_bytes("x"));
  command.cdb.bytes[1] |= 0x01;
  EXPECT_EQ(run(command), "05/24/00");
  const base::Bytes list = bytes_of_text(std::string("\0\0\0\x10\0\0\0\x08\0\0\0\0\0\0\x02\0", 16));
  EXPECT_EQ(run(scsi::mode_select(list)), "05/26/00");
}

TEST_F(Drive, WritingInTheMiddleEndsTheDataThere) {
  for (const char* text : {"a", "b", "c", "d"}) write(text);
  EXPECT_EQ(locate(1), "good");
  EXPECT_EQ(write("B"), "good");
  EXPECT_EQ(read(), "08/00/05");
  run(scsi::rewind(Immediate::no));
  EXPECT_EQ(read(), "a");
  EXPECT_EQ(read(), "B");
  EXPECT_EQ(read(), "08/00/05");
}

TEST_F(Drive, FilemarkInTheMiddleEndsTheDataThere) {
  for (const char* text : {"a", "b", "c"}) write(text);
  locate(1);
  EXPECT_EQ(mark(), "good");
  EXPECT_EQ(run(scsi::space(SpaceOver::end_of_data, 0)), "good");
  EXPECT_EQ(position().block, 2U);
  EXPECT_EQ(position().filemarks, 1U);
}

TEST_F(Drive, SpaceOverBlocksStopsAtFilemarksAndEnds) {
  for (const char* text : {"0", "1", "2"}) write(text);
  mark();
  write("4");  // 0 1 2 FM 4 EOD
  run(scsi::rewind(Immediate::no));
  EXPECT_EQ(run(scsi::space(SpaceOver::blocks, 2)), "good");
  EXPECT_EQ(position().block, 2U);
  scsi::Reply reply = ask(drive(), scsi::space(SpaceOver::blocks, 3));
  EXPECT_EQ(sense_of(reply), "00/00/01");
  EXPECT_TRUE(reply.sense.filemark);
  EXPECT_EQ(reply.sense.information, 2);
  EXPECT_EQ(position().block, 4U) << "past the filemark";
  reply = ask(drive(), scsi::space(SpaceOver::blocks, 5));
  EXPECT_EQ(sense_of(reply), "08/00/05");
  EXPECT_EQ(reply.sense.information, 4);
  EXPECT_EQ(position().block, 5U);
  reply = ask(drive(), scsi::space(SpaceOver::blocks, -3));
  EXPECT_EQ(sense_of(reply), "00/00/01");
  EXPECT_EQ(reply.sense.information, 2);
  EXPECT_EQ(position().block, 3U) << "before the filemark";
  reply = ask(drive(), scsi::space(SpaceOver::blocks, -9));
  EXPECT_EQ(sense_of(reply), "00/00/04");
  EXPECT_TRUE(reply.sense.end_of_medium);
  EXPECT_EQ(reply.sense.information, 6);
  EXPECT_TRUE(position().beginning_of_partition);
}

TEST_F(Drive, SpaceOverFilemarks) {
  write("0");
  mark();
  write("2");
  mark();
  mark();  // 0 FM 2 FM FM EOD
  run(scsi::rewind(Immediate::no));
  EXPECT_EQ(run(scsi::space(SpaceOver::filemarks, 2)), "good");
  EXPECT_EQ(position().block, 4U);
  EXPECT_EQ(run(scsi::space(SpaceOver::filemarks, -1)), "good");
  EXPECT_EQ(position().block, 3U);
  EXPECT_EQ(read(), "00/00/01");
  scsi::Reply reply = ask(drive(), scsi::space(SpaceOver::filemarks, 3));
  EXPECT_EQ(sense_of(reply), "08/00/05");
  EXPECT_EQ(reply.sense.information, 2);
  reply = ask(drive(), scsi::space(SpaceOver::filemarks, -5));
  EXPECT_EQ(sense_of(reply), "00/00/04");
  EXPECT_EQ(reply.sense.information, 2);
  EXPECT_EQ(position().block, 0U);
}

TEST_F(Drive, SixByteSpaceSignExtendsItsCount) {
  for (const char* text : {"0", "1", "2"}) write(text);
  scsi::Command command{.cdb = {.bytes = {scsi::op::space_6, 0x00, 0xff, 0xff, 0xfe, 0}, .length = 6}};
  EXPECT_EQ(run(command), "good");
  EXPECT_EQ(position().block, 1U);
}

TEST_F(Drive, LocateByFileAndToTheEnd) {
  write("0");
  mark();
  write("2");
  mark();
  write("4");
  EXPECT_EQ(run(scsi::locate(scsi::LocateTo::file, 1, std::nullopt)), "good");
  EXPECT_EQ(position().block, 2U);
  EXPECT_EQ(run(scsi::locate(scsi::LocateTo::file, 0, std::nullopt)), "good");
  EXPECT_EQ(position().block, 0U);
  EXPECT_EQ(run(scsi::locate(scsi::LocateTo::end_of_data, 0, std::nullopt)), "good");
  EXPECT_EQ(position().block, 5U);
  EXPECT_EQ(run(scsi::locate(scsi::LocateTo::file, 3, std::nullopt)), "08/00/05");
  EXPECT_EQ(locate(2), "good");
  EXPECT_EQ(read(), "2");
  EXPECT_EQ(locate(99), "08/00/05");
  EXPECT_EQ(position().block, 5U) << "a locate past the end stays at end of data";
  EXPECT_EQ(locate(0, 1), "05/24/00") << "one partition only";
}

TEST_F(Drive, LocateTenKnowsPartitions) {
  format_two();
  scsi::Command command{.cdb = {.bytes = {scsi::op::locate_10, 0x02, 0, 0, 0, 0, 0, 0, 1, 0}, .length = 10}};
  EXPECT_EQ(run(command), "good");
  EXPECT_EQ(position().partition, 1U);
}

TEST_F(Drive, PartitionsAreSeparateTapes) {
  format_two();
  EXPECT_EQ(write("index"), "good");
  EXPECT_EQ(locate(0, 1), "good");
  EXPECT_EQ(write("data"), "good");
  mark();
  EXPECT_EQ(position().partition, 1U);
  EXPECT_EQ(position().block, 2U);
  EXPECT_EQ(locate(0, 0), "good");
  EXPECT_EQ(read(), "index");
  EXPECT_EQ(read(), "08/00/05");
  EXPECT_EQ(locate(0, 1), "good");
  EXPECT_EQ(read(), "data");
}

TEST_F(Drive, FormatNeedsTheBeginningOfPartitionZero) {
  format_two();
  locate(0, 1);
  EXPECT_EQ(run(scsi::format_medium(scsi::FormatKind::one_partition)), "05/3b/0c");
  locate(0, 0);
  write("gone");
  locate(0, 0);
  EXPECT_EQ(run(scsi::format_medium(scsi::FormatKind::one_partition)), "good");
  EXPECT_EQ(read(), "08/00/05");
  EXPECT_EQ(locate(0, 1), "05/24/00");
}

TEST_F(Drive, MediumPartitionPageTellsAndRefuses) {
  format_two();
  base::Bytes reply(255);
  const scsi::Reply answer = ask(drive(), scsi::mode_sense(0x11, 0, reply));
  const auto data = scsi::parse_mode_data(base::ByteView(reply).first(answer.data_in_bytes));
  ASSERT_TRUE(data.has_value());
  EXPECT_EQ(data->density_code, 0x60);
  EXPECT_EQ(data->medium_type, 0x98);
  EXPECT_EQ(data->block_length, 0U);
  ASSERT_NE(data->find(0x11), nullptr);
  const auto partitions = scsi::parse_medium_partitions(data->find(0x11)->bytes);
  EXPECT_EQ(partitions->additional, 1);
  EXPECT_EQ(partitions->additional_max, 1);
  for (const scsi::MediumPartitions& bad : {scsi::MediumPartitions{.additional = 2, .sizes = {1, 1, 0xffff}},
                                            scsi::MediumPartitions{.additional = 1, .sizes = {0xffff, 1}}}) {
    const base::Bytes list = scsi::encode_mode_select({scsi::encode_medium_partitions(bad)});
    EXPECT_EQ(run(scsi::mode_select(list)), "05/26/00");
  }
}

TEST_F(Drive, ModeSenseKnowsItsPagesAndNoOthers) {
  base::Bytes reply(512);
  const scsi::Reply all = ask(drive(), scsi::mode_sense(0x3f, 0xff, reply));
  const auto data = scsi::parse_mode_data(base::ByteView(reply).first(all.data_in_bytes));
  ASSERT_TRUE(data.has_value());
  for (const std::uint8_t page : std::initializer_list<std::uint8_t>{0x0f, 0x10, 0x11, 0x1d})
    EXPECT_NE(data->find(page), nullptr);
  EXPECT_NE(data->find(0x10, 1), nullptr);
  EXPECT_EQ(run(scsi::mode_sense(0x05, 0, reply)), "05/24/00");
  scsi::Command saved = scsi::mode_sense(0x0f, 0, reply);
  saved.cdb.bytes[2] |= 0xc0;
  EXPECT_EQ(run(saved), "05/39/00");
}

TEST_F(Drive, ModeSelectChangesCompressionAndEarlyWarning) {
  base::Bytes reply(255);
  scsi::Reply answer = ask(drive(), scsi::mode_sense(0x0f, 0, reply));
  auto data = scsi::parse_mode_data(base::ByteView(reply).first(answer.data_in_bytes));
  scsi::ModePage page = *data->find(0x0f);
  EXPECT_EQ(page.bytes[2], std::byte{0xc0});
  page.bytes[2] = std::byte{0x40};
  base::Bytes list = scsi::encode_mode_select({page});
  EXPECT_EQ(run(scsi::mode_select(list)), "good");
  answer = ask(drive(), scsi::mode_sense(0x0f, 0, reply));
  data = scsi::parse_mode_data(base::ByteView(reply).first(answer.data_in_bytes));
  EXPECT_EQ(data->find(0x0f)->bytes[2], std::byte{0x40});
  list.resize(list.size() - 1);
  EXPECT_EQ(run(scsi::mode_select(list)), "05/1a/00");
}

/// 360 MB of capacity; repeating blocks take no space.
class SmallDrive : public LoadedDrive {
 protected:
  SmallDrive() : LoadedDrive({.capacity_scale = 2e-5, .payload = Payload::pattern}) {}
};

TEST_F(SmallDrive, EarlyWarningThenFull) {
  // The warning comes at 99.5 %: 1.8 MB before the end.
  base::Bytes block(1U << 20, std::byte{7});
  std::size_t written = 0;
  std::string said = "good";
  while (said == "good") {
    said = run(scsi::write(block));
    ++written;
  }
  EXPECT_EQ(said, "00/00/02");
  EXPECT_TRUE(position().early_warning);
  EXPECT_EQ(position().block, written) << "the block that was warned about is written";
  scsi::Reply reply = ask(drive(), scsi::write(block));
  if (sense_of(reply) == "00/00/02") reply = ask(drive(), scsi::write(block));
  EXPECT_EQ(sense_of(reply), "0d/00/02");
  EXPECT_TRUE(reply.sense.end_of_medium);
  EXPECT_EQ(reply.sense.information, 1 << 20);
  const std::uint64_t full_at = position().block;
  EXPECT_EQ(write("small ones still fit"), "00/00/02");
  EXPECT_EQ(mark(), "00/00/02");
  EXPECT_EQ(position().block, full_at + 2);
}

TEST_F(SmallDrive, ProgrammableEarlyWarningIsToldOnce) {
  base::Bytes page(32);
  scsi::put_field(page, 0, 1, 0x50);
  scsi::put_field(page, 1, 1, 1);
  scsi::put_field(page, 2, 2, 28);
  scsi::put_field(page, 6, 2, 348);  // MB before early warning
  const base::Bytes list = scsi::encode_mode_select({{.page = 0x10, .subpage = 1, .bytes = page}});
  ASSERT_EQ(run(scsi::mode_select(list)), "good");
  base::Bytes block(4U << 20, std::byte{7});
  std::vector<std::string> said;
  for (int i = 0; i < 6; ++i) said.push_back(run(scsi::write(block)));
  EXPECT_THAT(said, testing::ElementsAre("good", "good", "00/00/07", "good", "good", "good"));
  EXPECT_TRUE(position().programmable_early_warning);
  EXPECT_FALSE(position().early_warning);
}

TEST_F(Drive, ReadPositionTellsWhatIsStillInTheBuffer) {
  write("a");
  flush();
  write("bcd");
  write("ef");
  std::byte reply[32];
  ask(drive(), scsi::read_position(PositionForm::extended_form, reply));
  scsi::Position at = *scsi::parse_position(PositionForm::extended_form, reply);
  EXPECT_EQ(at.block, 3U);
  EXPECT_EQ(at.blocks_in_buffer, 2U);
  EXPECT_EQ(at.bytes_in_buffer, 5U);
  EXPECT_EQ(mark(), "good") << "an immediate filemark flushes nothing";
  ask(drive(), scsi::read_position(PositionForm::short_form, reply));
  at = *scsi::parse_position(PositionForm::short_form, reply);
  EXPECT_EQ(at.block, 4U);
  EXPECT_EQ(at.blocks_in_buffer, 3U);
  EXPECT_EQ(flush(), "good");
  ask(drive(), scsi::read_position(PositionForm::extended_form, reply));
  EXPECT_EQ(scsi::parse_position(PositionForm::extended_form, reply)->blocks_in_buffer, 0U);
}

TEST_F(Drive, WriteProtectedCartridgeRefusesEveryChange) {
  write("kept");
  ASSERT_TRUE(library_->set_write_protect(kBarcode, true).has_value());
  run(scsi::rewind(Immediate::no));
  EXPECT_EQ(write("x"), "07/27/00");
  EXPECT_EQ(mark(), "07/27/00");
  EXPECT_EQ(run(scsi::erase(false)), "07/27/00");
  EXPECT_EQ(run(scsi::format_medium(scsi::FormatKind::one_partition)), "07/27/00");
  const base::Bytes list = scsi::encode_attributes({{.id = 0x0806, .value = bytes_of_text("x")}});
  EXPECT_EQ(run(scsi::write_attribute(0, list)), "07/27/00");
  EXPECT_EQ(flush(), "good") << "nothing to write";
  EXPECT_EQ(read(), "kept");
}

TEST_F(Drive, EraseEndsTheDataHere) {
  for (const char* text : {"a", "b", "c"}) write(text);
  locate(1);
  EXPECT_EQ(run(scsi::erase(false)), "good");
  EXPECT_EQ(read(), "08/00/05");
  locate(0);
  EXPECT_EQ(run(scsi::erase(true)), "good");
  EXPECT_EQ(read(), "08/00/05");
}

TEST_F(Drive, FlippedBitIsAReadErrorNeverFalseData) {
  write("first");
  write("second");
  write("third");
  flush();
  ASSERT_TRUE(library_->flip_bit(kBarcode, 0, 1).has_value());
  run(scsi::rewind(Immediate::no));
  EXPECT_EQ(read(), "first");
  EXPECT_EQ(read(), "03/11/00");
  EXPECT_EQ(read(), "third") << "the position is after the bad block";
  base::Bytes log(1024);
  const scsi::Reply reply = ask(drive(), scsi::log_sense(0x2e, log));
  const auto page = scsi::parse_log_page(base::ByteView(log).first(reply.data_in_bytes));
  EXPECT_THAT(scsi::tape_alerts(*page), testing::ElementsAre(5)) << "read failure";
  ask(drive(), scsi::log_sense(0x2e, log));
  EXPECT_TRUE(scsi::tape_alerts(*scsi::parse_log_page(log)).empty()) << "reading clears";
  EXPECT_EQ(library_->flip_bit(kBarcode, 0, 99).error().code, base::Code::not_found);
}

TEST_F(Drive, LoadUnloadAndHold) {
  write("x");
  EXPECT_EQ(run(scsi::unload()), "good");
  EXPECT_EQ(run(scsi::test_unit_ready()), "02/3a/00");
  EXPECT_EQ(read(), "02/3a/00");
  EXPECT_EQ(run(scsi::load_hold()), "good");
  EXPECT_EQ(run(scsi::test_unit_ready()), "02/3a/04");
  base::Bytes attributes(512);
  EXPECT_EQ(run(scsi::read_attribute(0, 0x0401, attributes)), "good") << "the memory is readable unthreaded";
  EXPECT_EQ(read(), "02/3a/04");
  EXPECT_EQ(run(scsi::load()), "good");
  EXPECT_TRUE(position().beginning_of_partition);
  EXPECT_EQ(read(), "x");
  EXPECT_EQ(run(scsi::prevent_removal(true)), "good");
  EXPECT_EQ(run(scsi::unload()), "05/53/02");
  EXPECT_EQ(run(scsi::prevent_removal(false)), "good");
  EXPECT_EQ(run(scsi::unload()), "good");
}

TEST_F(Drive, EmptyDriveHasNoMedium) {
  scsi::Device& empty = library_->drive(1);
  EXPECT_EQ(sense_of(ask(empty, scsi::test_unit_ready())), "06/29/00");
  EXPECT_EQ(sense_of(ask(empty, scsi::test_unit_ready())), "02/3a/00");
  EXPECT_EQ(sense_of(ask(empty, scsi::load())), "02/3a/00");
  EXPECT_EQ(sense_of(ask(empty, scsi::unload())), "good");
}

TEST_F(Drive, AttentionsComeOnceAndNotToInquiry) {
  ASSERT_TRUE(library_->power_cut(1).has_value());
  base::Bytes reply(96);
  EXPECT_EQ(run(scsi::inquiry(reply)), "good");
  EXPECT_EQ(run(scsi::test_unit_ready()), "06/29/00");
  EXPECT_EQ(run(scsi::test_unit_ready()), "good");
  ASSERT_TRUE(library_->power_cut(1).has_value());
  EXPECT_EQ(run(scsi::request_sense(reply)), "good");
  EXPECT_EQ(scsi::parse_sense(reply)->asc, 0x29) << "REQUEST SENSE takes the attention";
  EXPECT_EQ(run(scsi::test_unit_ready()), "good");
}

TEST_F(Drive, IdentityAndSerialNumber) {
  base::Bytes reply(96);
  ask(drive(), scsi::inquiry(reply));
  const auto identity = scsi::parse_inquiry(reply);
  EXPECT_EQ(identity->device_type, 1);
  EXPECT_EQ(identity->vendor, "REELWAY");
  EXPECT_EQ(identity->product, "VIRTUAL LTO-9");
  ask(drive(), scsi::inquiry_page(0x80, reply));
  EXPECT_EQ(*scsi::parse_unit_serial(reply), "RWDRV00000");
  for (const std::uint8_t page : std::initializer_list<std::uint8_t>{0x00, 0x83, 0xb0, 0xb1})
    EXPECT_EQ(run(scsi::inquiry_page(page, reply)), "good");
  EXPECT_EQ(run(scsi::inquiry_page(0xc7, reply)), "05/24/00");
}

TEST_F(Drive, UnknownCommandIsRefused) {
  EXPECT_EQ(run({.cdb = {.bytes = {0xff}, .length = 16}}), "05/20/00");
}

TEST_F(Drive, TimeoutsAreReported) {
  base::Bytes reply(4096);
  const scsi::Reply answer = ask(drive(), scsi::report_opcodes(reply));
  const auto timeouts = scsi::parse_opcodes(base::ByteView(reply).first(answer.data_in_bytes));
  ASSERT_TRUE(timeouts.has_value());
  const auto at = std::ranges::find(*timeouts, scsi::op::locate_16, &scsi::CommandTimeout::opcode);
  ASSERT_NE(at, timeouts->end());
  EXPECT_EQ(at->recommended_s, 2940U);
}

TEST_F(Drive, CapacitiesAndStatistics) {
  format_two();
  locate(0, 1);
  base::Bytes block(8U << 20, std::byte{7});
  for (int i = 0; i < 4; ++i) run(scsi::write(block));
  base::Bytes log(4096);
  scsi::Reply answer = ask(drive(), scsi::log_sense(0x31, log));
  const auto capacities =
      scsi::tape_capacities(*scsi::parse_log_page(base::ByteView(log).first(answer.data_in_bytes)));
  ASSERT_EQ(capacities->size(), 2U);
  EXPECT_EQ((*capacities)[1].maximum_mib - (*capacities)[1].remaining_mib, 32U);
  EXPECT_NEAR(static_cast<double>((*capacities)[1].maximum_mib), 1.8e9 * 276 / 280 / (1 << 20), 1);
  answer = ask(drive(), scsi::log_sense(0x17, log));
  const auto page = scsi::parse_log_page(base::ByteView(log).first(answer.data_in_bytes));
  EXPECT_EQ(page->find(0x000e)->number(), 33U);  // MB written since the load
  EXPECT_EQ(page->find(0x0001)->number(), 1U);
  EXPECT_EQ(run(scsi::log_sense(0x3e, log)), "05/24/00");
}

TEST_F(Drive, SetCapacityShortensTheCartridge) {
  write("gone");
  EXPECT_EQ(run(scsi::set_capacity(0x7fff)), "05/3b/0c");
  run(scsi::rewind(Immediate::no));
  EXPECT_EQ(run(scsi::set_capacity(0x7fff)), "good");
  EXPECT_EQ(read(), "08/00/05");
  base::Bytes log(64);
  ask(drive(), scsi::log_sense(0x31, log));
  EXPECT_NEAR(static_cast<double>((*scsi::tape_capacities(*scsi::parse_log_page(log)))[0].maximum_mib),
              0.9e9 / (1 << 20), 2);
}

}  // namespace
}  // namespace reelway::vtl
