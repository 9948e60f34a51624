// CDBs byte by byte (SPC-5, SSC-5, SMC-3).

#include "scsi/commands.h"

#include <gtest/gtest.h>

#include "scsi/fields.h"

namespace reelway::scsi {
namespace {

std::byte memory[512];

std::string hex(const Command& command) { return base::to_hex(bytes_of(command.cdb)); }

struct Row {
  const char* name;
  Command command;
  const char* cdb;
};

class Cdb : public testing::TestWithParam<Row> {};

TEST_P(Cdb, IsByteExact) { EXPECT_EQ(hex(GetParam().command), GetParam().cdb); }

const base::MutableBytes kIn(memory, 0x120);

INSTANTIATE_TEST_SUITE_P(
    Commands, Cdb,
    testing::Values(
        Row{"test_unit_ready", test_unit_ready(), "000000000000"},
        Row{"inquiry", inquiry(kIn), "120000012000"},
        Row{"inquiry_page", inquiry_page(0x80, kIn), "120180012000"},
        Row{"request_sense", request_sense(base::MutableBytes(memory, 96)), "030000006000"},
        Row{"mode_sense", mode_sense(0x10, 1, kIn), "5a001001000000012000"},
        Row{"mode_select", mode_select(base::ByteView(memory, 24)), "55100000000000001800"},
        Row{"log_sense", log_sense(0x2e, kIn), "4d006e00000000012000"},
        Row{"prevent", prevent_removal(true), "1e0000000100"},
        Row{"allow", prevent_removal(false), "1e0000000000"}, Row{"reserve", reserve(), "160000000000"},
        Row{"release", release(), "170000000000"},
        Row{"report_opcodes", report_opcodes(kIn), "a30c80000000000001200000"},
        Row{"read", read(kIn, true), "080200012000"}, Row{"read_loud", read(kIn, false), "080000012000"},
        Row{"write", write(kIn), "0a0000012000"},
        Row{"flush", write_filemarks(0, Immediate::no), "100000000000"},
        Row{"filemarks", write_filemarks(0x010203, Immediate::yes), "100101020300"},
        Row{"position_short", read_position(PositionForm::short_form, kIn), "34000000000000000000"},
        Row{"position_long", read_position(PositionForm::long_form, kIn), "34060000000000000000"},
        Row{"position_extended", read_position(PositionForm::extended_form, kIn), "34080000000000012000"},
        Row{"locate", locate(LocateTo::object, 0x0102030405060708, std::nullopt),
            "92000000010203040506070800000000"},
        Row{"locate_partition", locate(LocateTo::object, 5, 1), "92020001000000000000000500000000"},
        Row{"locate_file", locate(LocateTo::file, 2, std::nullopt), "92080000000000000000000200000000"},
        Row{"locate_end", locate(LocateTo::end_of_data, 0, 0), "921a0000000000000000000000000000"},
        Row{"space_back", space(SpaceOver::filemarks, -1), "91010000ffffffffffffffff00000000"},
        Row{"space_end", space(SpaceOver::end_of_data, 0), "91030000000000000000000000000000"},
        Row{"rewind", rewind(Immediate::yes), "010100000000"}, Row{"load", load(), "1b0000000100"},
        Row{"load_hold", load_hold(), "1b0000000900"}, Row{"unload", unload(), "1b0000000000"},
        Row{"limits", read_block_limits(kIn), "050000000000"},
        Row{"format", format_medium(FormatKind::by_mode_page), "040001000000"},
        Row{"set_capacity", set_capacity(0x7fff), "0b00007fff00"}, Row{"erase", erase(true), "190100000000"},
        Row{"allow_overwrite", allow_overwrite(1, 1, 4), "82000101000000000000000400000000"},
        Row{"read_attribute", read_attribute(1, 0x080c, kIn), "8c00000000000001080c000001200000"},
        Row{"list_attributes", list_attributes(0, kIn), "8c010000000000000000000001200000"},
        Row{"write_attribute", write_attribute(1, base::ByteView(memory, 79)),
            "8d0100000000000100000000004f0000"},
        Row{"density", report_density(true, kIn), "44010000000000012000"},
        Row{"elements",
            read_element_status({.type = ElementType::slot, .first = 0x1000, .count_max = 16}, kIn),
            "b8121000001001000120"
            "0000"},
        Row{"move", move_medium({.picker = 1, .source = 0x1002, .destination = 0x100}),
            "a50000011002010000000000"},
        Row{"initialize", initialize_element_status(), "070000000000"},
        Row{"initialize_range", initialize_element_status_range(0x1000, 8), "37011000000000080000"}),
    [](const auto& info) { return info.param.name; });

TEST(Commands, CarryTheirMemory) {
  EXPECT_EQ(read(kIn, true).data_in.data(), memory);
  EXPECT_EQ(read(kIn, true).data_in.size(), kIn.size());
  EXPECT_EQ(write(kIn).data_out.size(), kIn.size());
  EXPECT_TRUE(write(kIn).data_in.empty());
}

TEST(Commands, WaitLongerForMediumWorkThanForQuestions) {
  EXPECT_GT(load().timeout, std::chrono::minutes{132}) << "LTO-9 characterizes a new cartridge";
  EXPECT_GT(locate(LocateTo::object, 0, std::nullopt).timeout, test_unit_ready().timeout);
}

}  // namespace
}  // namespace reelway::scsi
