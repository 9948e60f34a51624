// The cartridge memory as a host sees it.

#include <gmock/gmock.h>

#include "scsi/fields.h"
#include "vtl/test_library.h"

namespace reelway::vtl {
namespace {

class CartridgeMemory : public LoadedDrive {};

TEST_F(CartridgeMemory, HostAttributesAreKeptPerPartition) {
  format_two();
  const base::Bytes list = scsi::encode_attributes(
      {{.id = scsi::attribute::barcode,
        .format = scsi::AttributeFormat::ascii,
        .value = bytes_of_text("RW0001L9")},
       {.id = scsi::attribute::volume_coherency, .value = base::Bytes(70, std::byte{3})}});
  EXPECT_EQ(run(scsi::write_attribute(1, list)), "good");
  base::Bytes reply(1024);
  EXPECT_EQ(run(scsi::read_attribute(0, scsi::attribute::volume_coherency, reply)), "05/24/00");
  reopen();
  const scsi::Reply answer = ask(drive(), scsi::read_attribute(1, scsi::attribute::volume_coherency, reply));
  EXPECT_EQ(sense_of(answer), "good");
  const auto read_back = scsi::parse_attributes(base::ByteView(reply).first(answer.data_in_bytes));
  ASSERT_FALSE(read_back->empty());
  EXPECT_EQ(read_back->front().value, base::Bytes(70, std::byte{3}));
  const base::Bytes removal = scsi::encode_attributes({{.id = scsi::attribute::barcode, .value = {}}});
  EXPECT_EQ(run(scsi::write_attribute(1, removal)), "good");
  EXPECT_EQ(run(scsi::read_attribute(1, scsi::attribute::barcode, reply)), "05/24/00");
}

TEST_F(CartridgeMemory, AttributeListAndMediumSerial) {
  base::Bytes reply(1024);
  ask(drive(), scsi::list_attributes(0, reply));
  const auto ids = scsi::parse_attribute_list(reply);
  EXPECT_THAT(*ids, testing::IsSupersetOf(
                        {scsi::attribute::volume_change_reference, scsi::attribute::medium_serial}));
  ask(drive(), scsi::read_attribute(0, scsi::attribute::medium_serial, reply));
  EXPECT_EQ(scsi::parse_attributes(reply)->front().text(), "RWMEDRW0001L9");
}

TEST_F(CartridgeMemory, WriteAttributeIsAllOrNone) {
  base::Bytes list =
      scsi::encode_attributes({{.id = scsi::attribute::barcode, .value = bytes_of_text("AAAA")},
                               {.id = scsi::attribute::medium_serial, .value = bytes_of_text("forged")}});
  EXPECT_EQ(run(scsi::write_attribute(0, list)), "05/26/00");
  base::Bytes reply(1024);
  EXPECT_EQ(run(scsi::read_attribute(0, scsi::attribute::barcode, reply)), "05/24/00");
  list = scsi::encode_attributes({{.id = scsi::attribute::barcode, .value = bytes_of_text("AAAA")}});
  list[8] = std::byte{0x40};  // value longer than the list
  EXPECT_EQ(run(scsi::write_attribute(0, list)), "05/1a/00");
}

TEST_F(CartridgeMemory, ChangeReferenceChangesBeforeTheMediumDoes) {
  const auto reference = [&] {
    base::Bytes reply(1024);
    ask(drive(), scsi::read_attribute(0, scsi::attribute::volume_change_reference, reply));
    return scsi::get_field(scsi::parse_attributes(reply)->front().value, 0, 4);
  };
  const std::uint64_t at_start = reference();
  EXPECT_EQ(reference(), at_start) << "reading changes nothing";
  write("a");
  const std::uint64_t after_write = reference();
  EXPECT_NE(after_write, at_start);
  write("b");
  EXPECT_NE(reference(), after_write) << "somebody has seen the old one";
  const std::uint64_t last = reference();
  reopen();
  EXPECT_EQ(reference(), last);
  locate(2);
  mark();
  EXPECT_NE(reference(), last);
}

}  // namespace
}  // namespace reelway::vtl
