#include "scsi/sense.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace reelway::scsi {
namespace {

base::Bytes bytes(std::string_view hex) { return *base::from_hex(hex); }

TEST(SenseData, FixedFormat) {
  // Filemark met with 64 KiB left of the request.
  const auto sense =
      parse_sense(bytes("f000800001"
                        "00000a000000000001"
                        "00000000"));
  ASSERT_TRUE(sense.has_value());
  EXPECT_EQ(
      *sense,
      (Sense{
          .key = 0, .asc = 0, .ascq = 1, .filemark = true, .information_valid = true, .information = 65536}));
}

TEST(SenseData, FixedFormatNegativeInformation) {
  const auto sense =
      parse_sense(bytes("f00020fffffffa0a000000000000"
                        "00000000"));
  ASSERT_TRUE(sense.has_value());
  EXPECT_TRUE(sense->incorrect_length);
  EXPECT_EQ(sense->information, -6);
}

TEST(SenseData, DeferredErrorsAndShortReplies) {
  EXPECT_EQ(parse_sense(bytes("710003000000000a00000000"
                              "0c000000"))
                ->asc,
            0x0c);
  const auto short_one = parse_sense(bytes("7000030000000000"));
  ASSERT_TRUE(short_one.has_value()) << "the additional length says that there is no more";
  EXPECT_EQ(short_one->key, 3);
  EXPECT_EQ(short_one->asc, 0);
  EXPECT_EQ(parse_sense(bytes("7000030000000020"
                              "00000000"
                              "1100"))
                ->asc,
            0x11)
      << "cut by the allocation length";
}

TEST(SenseData, DescriptorFormat) {
  const auto sense =
      parse_sense(bytes("7200000100000010"
                        "000a800000000000"
                        "00010000"
                        "04020080"));
  ASSERT_TRUE(sense.has_value());
  EXPECT_EQ(
      *sense,
      (Sense{
          .key = 0, .asc = 0, .ascq = 1, .filemark = true, .information_valid = true, .information = 65536}));
}

TEST(SenseData, UnknownDescriptorsAreSkipped) {
  const auto sense =
      parse_sense(bytes("720b000000000008"
                        "80020102"
                        "04020040"));
  ASSERT_TRUE(sense.has_value());
  EXPECT_TRUE(sense->end_of_medium);
}

TEST(SenseData, NonsenseIsRefused) {
  for (const char* hex : {"", "00", "7f0000000000000000", "70", "7200"})
    EXPECT_FALSE(parse_sense(bytes(hex)).has_value()) << hex;
}

TEST(SenseData, RoundTripInBothFormats) {
  base::SeededRng rng(1);
  for (int i = 0; i < 2000; ++i) {
    Sense sense{.key = static_cast<std::uint8_t>(rng.below(16)),
                .asc = static_cast<std::uint8_t>(rng.below(256)),
                .ascq = static_cast<std::uint8_t>(rng.below(256)),
                .filemark = rng.below(2) == 0,
                .end_of_medium = rng.below(2) == 0,
                .incorrect_length = rng.below(2) == 0,
                .information_valid = rng.below(2) == 0};
    if (sense.information_valid) sense.information = static_cast<std::int32_t>(rng.next_u64());
    EXPECT_EQ(*parse_sense(encode_fixed_sense(sense)), sense);
    if (sense.information_valid) sense.information = static_cast<std::int64_t>(rng.next_u64());
    EXPECT_EQ(*parse_sense(encode_descriptor_sense(sense)), sense);
  }
}

struct Expected {
  Sense sense;
  base::Code code;
  base::Scope scope;
  SenseAction action;
};

TEST(SenseTable, SaysWhatToDo) {
  using base::Code;
  using base::Scope;
  using A = SenseAction;
  const Expected rows[] = {
      {{.key = 0, .asc = 0x00, .ascq = 0x01}, Code::internal, Scope::request, A::none},
      {{.key = 0, .asc = 0x00, .ascq = 0x02}, Code::internal, Scope::request, A::none},
      {{.key = 1, .asc = 0x5d, .ascq = 0x00}, Code::internal, Scope::drive, A::log},
      {{.key = 2, .asc = 0x04, .ascq = 0x01}, Code::busy, Scope::drive, A::poll},
      {{.key = 2, .asc = 0x3a, .ascq = 0x00}, Code::not_found, Scope::cartridge, A::insert},
      {{.key = 2, .asc = 0x3a, .ascq = 0x04}, Code::unavailable, Scope::drive, A::load},
      {{.key = 3, .asc = 0x0c, .ascq = 0x00}, Code::data_loss, Scope::cartridge, A::close_volume},
      {{.key = 3, .asc = 0x11, .ascq = 0x01}, Code::data_loss, Scope::cartridge, A::other_drive},
      {{.key = 3, .asc = 0x52, .ascq = 0x00}, Code::data_loss, Scope::cartridge, A::drop_volume},
      {{.key = 4, .asc = 0x10, .ascq = 0x01}, Code::checksum_mismatch, Scope::request, A::retry},
      {{.key = 4, .asc = 0x15, .ascq = 0x01}, Code::unavailable, Scope::library, A::drive_down},
      {{.key = 5, .asc = 0x3b, .ascq = 0x0d}, Code::already_exists, Scope::request, A::take_inventory},
      {{.key = 5, .asc = 0x3b, .ascq = 0x0e}, Code::not_found, Scope::request, A::take_inventory},
      {{.key = 5, .asc = 0x53, .ascq = 0x02}, Code::busy, Scope::cartridge, A::give_up},
      {{.key = 6, .asc = 0x28, .ascq = 0x00}, Code::busy, Scope::cartridge, A::take_inventory},
      {{.key = 6, .asc = 0x29, .ascq = 0x04}, Code::busy, Scope::drive, A::check_position},
      {{.key = 7, .asc = 0x27, .ascq = 0x00}, Code::access_denied, Scope::cartridge, A::close_volume},
      {{.key = 8, .asc = 0x00, .ascq = 0x05}, Code::out_of_range, Scope::request, A::give_up},
      {{.key = 8, .asc = 0x14, .ascq = 0x03}, Code::data_loss, Scope::cartridge, A::other_drive},
      {{.key = 0xb, .asc = 0x4b, .ascq = 0x00}, Code::unavailable, Scope::drive, A::retry},
      {{.key = 0xd, .asc = 0x00, .ascq = 0x02}, Code::no_space, Scope::cartridge, A::close_volume},
      {{.key = 0xe, .asc = 0x1d, .ascq = 0x00}, Code::unavailable, Scope::drive, A::drive_down},
  };
  for (const Expected& row : rows) {
    const SenseRow& found = classify(row.sense);
    EXPECT_EQ(found.code, row.code) << found.text;
    EXPECT_EQ(found.scope, row.scope) << found.text;
    EXPECT_EQ(found.action, row.action) << found.text;
  }
}

TEST(SenseTable, ErrorsNameCommandMeaningAndCodes) {
  const base::Error error = to_error(Sense{.key = 3, .asc = 0x14, .ascq = 0x03}, "LOCATE");
  EXPECT_EQ(error.detail, "LOCATE: end of data not found (03/14/03)");
  EXPECT_EQ(error.code, base::Code::data_loss);
}

TEST(SenseTable, CheckPassesInformationAndStopsErrors) {
  EXPECT_TRUE(check({}, "READ").has_value());
  EXPECT_TRUE(check({.status = Status::check_condition, .sense = {.filemark = true}}, "READ").has_value());
  EXPECT_TRUE(
      check({.status = Status::check_condition, .sense = {.key = 1, .asc = 0x17}}, "READ").has_value());
  EXPECT_FALSE(
      check({.status = Status::check_condition, .sense = {.key = 3, .asc = 0x11}}, "READ").has_value());
  EXPECT_EQ(check({.status = Status::busy}, "READ").error().retry, base::Retry::later);
  EXPECT_EQ(check({.status = Status::reservation_conflict}, "READ").error().code, base::Code::busy);
  EXPECT_EQ(check({.status = Status::task_aborted}, "READ").error().code, base::Code::unavailable);
}

}  // namespace
}  // namespace reelway::scsi
