// Replies byte by byte, and cut short at every length.

#include "scsi/replies.h"

#include <gmock/gmock.h>

#include "scsi/fields.h"

namespace reelway::scsi {
namespace {

base::Bytes bytes(std::string_view hex) { return *base::from_hex(hex); }

const char* const kTwoElements =
    "1000000200000090"  // header: from 1000h, 2 elements
    "0280003000000030"  // slots, with tags
    "10000900000000000080"
    "1000"
    "5257303030314c39"
    "202020202020202020202020202020202020202020202020"
    "00000000"
    "0480004800000048"  // drive bays
    "01000100000000000080"
    "1000"
    "5257303030314c39"
    "202020202020202020202020202020202020202020202020"
    "00000000"
    "0200000a"
    "5257445256303030303000"
    "0000000000000000"
    "0000";

TEST(ElementStatus, TagsSourcesAndSerialNumbers) {
  base::Bytes reply = bytes(kTwoElements);
  reply.resize(8 + 8 + 0x30 + 8 + 0x48);
  put_field(reply, 5, 3, reply.size() - 8);
  const auto elements = parse_element_status(reply);
  ASSERT_TRUE(elements.has_value()) << to_string(elements.error());
  ASSERT_EQ(elements->size(), 2U);
  const Element& slot = (*elements)[0];
  EXPECT_EQ(slot.type, ElementType::slot);
  EXPECT_EQ(slot.address, 0x1000);
  EXPECT_TRUE(slot.full);
  EXPECT_TRUE(slot.accessible);
  EXPECT_EQ(slot.barcode, "RW0001L9");
  const Element& bay = (*elements)[1];
  EXPECT_EQ(bay.type, ElementType::drive_bay);
  EXPECT_FALSE(bay.accessible);
  EXPECT_EQ(bay.source, 0x1000);
  EXPECT_EQ(bay.device_id, "RWDRV00000");
}

TEST(ElementStatus, LengthsThatDisagreeAreRefused) {
  base::Bytes reply = bytes(kTwoElements);
  reply.resize(8 + 8 + 0x30 + 8 + 0x48);
  put_field(reply, 5, 3, reply.size() - 8);
  for (std::size_t length = 0; length < reply.size(); ++length) {
    EXPECT_FALSE(parse_element_status(base::ByteView(reply).first(length)).has_value()) << length;
  }
  base::Bytes zero = reply;
  put_field(zero, 10, 2, 0);  // descriptors of no bytes would never end
  EXPECT_FALSE(parse_element_status(zero).has_value());
  base::Bytes odd = reply;
  put_field(odd, 10, 2, 0x2f);
  EXPECT_FALSE(parse_element_status(odd).has_value());
  base::Bytes unknown = reply;
  put_field(unknown, 8, 1, 9);
  EXPECT_FALSE(parse_element_status(unknown).has_value());
}

TEST(Positions, LongForm) {
  const auto at = parse_position(PositionForm::long_form, bytes("41000000"
                                                                "00000001"
                                                                "0102030405060708"
                                                                "0000000000000009"
                                                                "0000000000000000"));
  ASSERT_TRUE(at.has_value());
  EXPECT_FALSE(at->beginning_of_partition);
  EXPECT_TRUE(at->early_warning);
  EXPECT_TRUE(at->programmable_early_warning);
  EXPECT_EQ(at->partition, 1U);
  EXPECT_EQ(at->block, 0x0102030405060708U);
  EXPECT_EQ(at->filemarks, 9U);
  EXPECT_TRUE(parse_position(PositionForm::long_form, bytes("08" + std::string(62, '0')))->unknown)
      << "partition unknown";
  EXPECT_TRUE(parse_position(PositionForm::long_form, bytes("04" + std::string(62, '0')))->unknown)
      << "number unknown";
}

TEST(Positions, ShortAndExtendedForms) {
  const auto brief = parse_position(PositionForm::short_form, bytes("8001"
                                                                    "0000"
                                                                    "0000000a"
                                                                    "00000008"
                                                                    "00"
                                                                    "000002"
                                                                    "00000400"));
  ASSERT_TRUE(brief.has_value());
  EXPECT_TRUE(brief->beginning_of_partition);
  EXPECT_EQ(brief->partition, 1U);
  EXPECT_EQ(brief->block, 10U);
  EXPECT_EQ(brief->blocks_in_buffer, 2U);
  EXPECT_EQ(brief->bytes_in_buffer, 1024U);
  EXPECT_TRUE(parse_position(PositionForm::short_form, bytes("04" + std::string(38, '0')))->unknown);
  const auto wide = parse_position(PositionForm::extended_form, bytes("0001"
                                                                      "001c"
                                                                      "00"
                                                                      "000003"
                                                                      "0000000100000000"
                                                                      "00000000fffffffd"
                                                                      "0000000000000800"));
  ASSERT_TRUE(wide.has_value());
  EXPECT_EQ(wide->block, 0x100000000U);
  EXPECT_EQ(wide->blocks_in_buffer, 3U);
  EXPECT_EQ(wide->bytes_in_buffer, 2048U);
  EXPECT_FALSE(parse_position(PositionForm::short_form, bytes(std::string(38, '0'))).has_value());
  EXPECT_FALSE(parse_position(PositionForm::extended_form, bytes(std::string(62, '0'))).has_value());
}

TEST(ModePages, HeaderDescriptorAndBothPageForms) {
  // LTO-9, write protected, variable blocks; page 0Fh of 2 bytes, page 10h subpage 1 of 4.
  const auto data =
      parse_mode_data(bytes("001a98900000"
                            "0008"
                            "6000000000000000"
                            "0f02c080"
                            "50010004"
                            "00000064"));
  ASSERT_TRUE(data.has_value());
  EXPECT_EQ(data->medium_type, 0x98);
  EXPECT_TRUE(data->write_protected);
  EXPECT_EQ(data->density_code, 0x60);
  EXPECT_EQ(data->block_length, 0U);
  ASSERT_EQ(data->pages.size(), 2U);
  EXPECT_EQ(base::to_hex(data->find(0x0f)->bytes), "0f02c080");
  EXPECT_EQ(base::to_hex(data->find(0x10, 1)->bytes), "5001000400000064");
  EXPECT_EQ(data->find(0x10), nullptr);
}

TEST(ModePages, CutShortIsRefused) {
  EXPECT_FALSE(parse_mode_data(bytes("00069800000000")).has_value());
  EXPECT_FALSE(parse_mode_data(bytes("000a980000000008"
                                     "6000"))
                   .has_value())
      << "descriptor";
  EXPECT_FALSE(parse_mode_data(bytes("0009980000000000"
                                     "0f02c0"))
                   .has_value())
      << "page";
  EXPECT_FALSE(parse_mode_data(bytes("0008980000000000"
                                     "50010004"))
                   .has_value())
      << "page with subpage";
}

TEST(ModePages, SelectListClearsTheSavedBit) {
  const base::Bytes list = encode_mode_select({{.page = 0x0f, .bytes = bytes("8f02c080")}});
  EXPECT_EQ(base::to_hex(list),
            "0000001000000000"
            "0f02c080");
}

TEST(ModePages, MediumPartitionsAsLtfsSetsThem) {
  const ModePage page = encode_medium_partitions({.additional = 1, .sizes = {1, 0xffff}});
  EXPECT_EQ(base::to_hex(page.bytes),
            "110a0001"
            "38000900"
            "0001ffff");
  const auto back = parse_medium_partitions(page.bytes);
  EXPECT_EQ(back->additional, 1);
  EXPECT_EQ(back->unit_power, 9);
  EXPECT_THAT(back->sizes, testing::ElementsAre(1, 0xffff));
  EXPECT_FALSE(parse_medium_partitions(bytes("0f0200000000000000")).has_value());
}

TEST(ModePages, ElementAddresses) {
  const auto addresses =
      parse_element_addresses(bytes("1d12"
                                    "00010001"
                                    "10000008"
                                    "00100002"
                                    "01000002"
                                    "0000"));
  ASSERT_TRUE(addresses.has_value());
  EXPECT_EQ(addresses->first_slot, 0x1000);
  EXPECT_EQ(addresses->slot_count, 8);
  EXPECT_EQ(addresses->first_drive_bay, 0x100);
  EXPECT_FALSE(parse_element_addresses(bytes("1d12000100011000")).has_value());
}

TEST(Attributes, RoundTripAndCut) {
  const base::Bytes list =
      encode_attributes({{.id = 0x0806, .format = AttributeFormat::ascii, .value = bytes("414220")},
                         {.id = 0x080c, .value = bytes("0102")}});
  EXPECT_EQ(base::to_hex(list),
            "0000000f"
            "0806010003414220"
            "080c0000020102");
  const auto all = parse_attributes(list);
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ((*all)[0].text(), "AB");
  EXPECT_EQ((*all)[0].format, AttributeFormat::ascii);
  EXPECT_EQ((*all)[1].value, bytes("0102"));
  EXPECT_EQ(parse_attributes(base::ByteView(list).first(list.size() - 1))->size(), 1U)
      << "only what arrived whole";
  EXPECT_TRUE(parse_attributes(bytes("00000005"
                                     "0009800004"))
                  ->empty());
  EXPECT_FALSE(parse_attributes(bytes("000000")).has_value());
  EXPECT_THAT(*parse_attribute_list(bytes("00000004"
                                          "00000401")),
              testing::ElementsAre(0x0000, 0x0401));
}

TEST(LogPages, AlertsAndCapacities) {
  const auto alerts =
      parse_log_page(bytes("2e00000f"
                           "0003000101"
                           "0004000100"
                           "0005000101"));
  EXPECT_THAT(tape_alerts(*alerts), testing::ElementsAre(3, 5));
  const auto capacity =
      parse_log_page(bytes("31000020"
                           "0001030400000064"
                           "00020304000000c8"
                           "0003030400000065"
                           "00040304000000c9"));
  const auto partitions = tape_capacities(*capacity);
  ASSERT_TRUE(partitions.has_value());
  ASSERT_EQ(partitions->size(), 2U);
  EXPECT_EQ((*partitions)[1].remaining_mib, 200U);
  EXPECT_EQ((*partitions)[0].maximum_mib, 101U);
  EXPECT_FALSE(tape_capacities(*alerts).has_value());
  EXPECT_FALSE(tape_capacities(*parse_log_page(bytes("31000008"
                                                     "0001030400000064")))
                   .has_value());
}

TEST(Others, InquirySerialLimitsTimeouts) {
  const base::Bytes inquiry = bytes(
      "0180060233000000"
      "49424d2020202020"
      "554c54333538302d54443920202020"
      "20"
      "51334631");
  EXPECT_EQ(parse_inquiry(inquiry)->vendor, "IBM");
  EXPECT_EQ(parse_inquiry(inquiry)->product, "ULT3580-TD9");
  EXPECT_EQ(parse_inquiry(inquiry)->revision, "Q3F1");
  EXPECT_FALSE(parse_inquiry(bytes("0180060233000000")).has_value());
  EXPECT_EQ(*parse_unit_serial(bytes("01800004"
                                     "31323334")),
            "1234");
  EXPECT_FALSE(parse_unit_serial(bytes("01800005"
                                       "31323334"))
                   .has_value());
  EXPECT_FALSE(parse_unit_serial(bytes("01830004"
                                       "31323334"))
                   .has_value());
  EXPECT_EQ(parse_block_limits(bytes("008000000001"))->max_bytes, 8U << 20);
  EXPECT_FALSE(parse_block_limits(bytes("0080000000")).has_value());
  const auto timeouts =
      parse_opcodes(bytes("0000001c"
                          "9200000000020010"
                          "000a0000"
                          "00000041"
                          "00000b7c"
                          "a300000c0001000c"));
  ASSERT_EQ(timeouts->size(), 2U);
  EXPECT_EQ((*timeouts)[0].nominal_s, 65U);
  EXPECT_EQ((*timeouts)[0].recommended_s, 2940U);
  EXPECT_EQ((*timeouts)[1].service_action, 0x0c);
}

}  // namespace
}  // namespace reelway::scsi
