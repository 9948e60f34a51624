#include "archive/trust.h"

#include <gtest/gtest.h>

namespace reelway::archive {
namespace {

VolumeRow known_volume() {
  VolumeRow row;
  row.barcode = "RW0001L9";
  row.uuid = "uuid-1";
  row.serial = "RW0001";
  row.medium_serial = "M1";
  return row;
}

const CartridgeMarks kRight{.label = "RW0001", .uuid = "uuid-1", .medium_serial = "M1"};

TEST(Trust, AllThreeMarksMustAgree) {
  EXPECT_TRUE(marks_that_differ(known_volume(), kRight).empty());
  struct Wrong {
    const char* what;
    CartridgeMarks seen;
  };
  CartridgeMarks label = kRight, uuid = kRight, medium = kRight;
  label.label = "RW0002";
  uuid.uuid = "uuid-2";
  medium.medium_serial = "";
  for (const auto& [what, seen] :
       {Wrong{"label", label}, Wrong{"UUID", uuid}, Wrong{"medium serial", medium}}) {
    const auto differing = marks_that_differ(known_volume(), seen);
    ASSERT_EQ(differing.size(), 1U) << what;
    EXPECT_NE(differing[0].find(what), std::string::npos) << differing[0];
    EXPECT_NE(differing[0].find("the catalog has"), std::string::npos) << differing[0];
  }
  EXPECT_EQ(marks_that_differ(known_volume(), {.label = "A", .uuid = "B", .medium_serial = "C"}).size(), 3U);
}

TEST(Trust, WhatTheCatalogDoesNotKnowIsNotCompared) {
  VolumeRow fresh;
  fresh.barcode = "RW0001L9";
  EXPECT_TRUE(marks_that_differ(fresh, kRight).empty());
  EXPECT_TRUE(marks_that_differ(fresh, {.label = "", .uuid = "u", .medium_serial = "m"}).empty());
  EXPECT_EQ(marks_that_differ(fresh, {.label = "RW0002", .uuid = "u", .medium_serial = "m"}).size(), 1U)
      << "a cartridge under another one's barcode";
  VolumeRow from_schema_one = known_volume();
  from_schema_one.medium_serial.clear();
  EXPECT_TRUE(marks_that_differ(from_schema_one, kRight).empty());
}

}  // namespace
}  // namespace reelway::archive
