#include "tape/ltfs/volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tape/ltfs/attributes.h"
#include "testing/volume_rig.h"

namespace reelway::tape::ltfs {
namespace {

using base::Code;
using testing::code_of;
using ::testing::HasSubstr;
using testing::must;

class VolumeTest : public VolumeRig {};

class SmallVolumeTest : public VolumeRig {
 protected:
  SmallVolumeTest() : VolumeRig(small()) {}
  static vtl::Options small() {
    vtl::Options options;
    options.capacity_scale = 1e-5;
    return options;
  }
};

TEST_F(VolumeTest, AFreshVolumeHasTheLayoutOfTheStandard) {
  format();
  unmount();
  // Both partitions: VOL1, filemark, label, filemark, filemark, index, filemark, end of data.
  for (const std::uint32_t partition : {0U, 1U}) {
    EXPECT_EQ(kinds(partition), "BMBMMBM") << partition;
    EXPECT_EQ(block({partition, 0}).substr(0, 4), "VOL1");
    EXPECT_THAT(block({partition, 2}), HasSubstr("<ltfslabel version=\"2.4.0\">"));
    EXPECT_THAT(block({partition, 5}), HasSubstr("<generationnumber>1</generationnumber>"));
  }
  EXPECT_THAT(
      block({0, 5}),
      HasSubstr("<previousgenerationlocation>\n<partition>b</partition>\n<startblock>5</startblock>"));
  EXPECT_EQ(block({1, 5}).find("previousgenerationlocation"), std::string::npos);
}

TEST_F(VolumeTest, WritesAndReadsBackAfterUnmountAndMount) {
  format();
  const auto small = text(1000, 1);
  const auto large = text(3 * kBlock + 17, 2);
  put("/bucket/dir/small", small);
  put("/bucket/large", large);
  put("/bucket/empty", "");
  commit();
  unmount();

  mount();
  EXPECT_FALSE(volume().info().mounted_by_scan);
  EXPECT_EQ(get("/bucket/dir/small"), small);
  EXPECT_EQ(get("/bucket/large"), large);
  EXPECT_EQ(get("/bucket/empty"), "");
  EXPECT_EQ(volume().info().generation, 2U);
}

TEST_F(VolumeTest, ReadsRangesWithoutTheRest) {
  format();
  const auto content = text(5 * kBlock + 100, 3);
  put("/b/file", content);
  commit();
  for (const auto [offset, length] : {std::pair<std::size_t, std::size_t>{0, 10},
                                      {kBlock - 5, 10},
                                      {2 * kBlock, kBlock},
                                      {5 * kBlock + 90, 10}}) {
    EXPECT_EQ(get("/b/file", offset, length), content.substr(offset, length)) << offset;
  }
}

TEST_F(VolumeTest, AttributesAndOddNamesComeBack) {
  format();
  const std::vector<std::string> names{
      "a:b%c", "dir \xC3\xA9", " lead and trail ", "tab\tand\rreturn\n", "<&>\"'", std::string("\x01\x02"),
      "100%"};
  const ObjectAttributes attributes{.generation = "01J",
                                    .bucket = "b",
                                    .key = std::string("raw\xFF\0key", 8),
                                    .sha256 = std::string(64, 'a'),
                                    .metadata = base::Bytes(10'000, std::byte{0x81})};
  for (const auto& name : names) put("/b/" + name, "x" + name, to_extended_attributes(attributes));
  commit();
  unmount();
  mount();
  for (const auto& name : names) {
    EXPECT_EQ(get("/b/" + name), "x" + name);
    const auto* file = volume().index().find_file("/b/" + name);
    ASSERT_NE(file, nullptr) << name;
    const auto back = from_extended_attributes(*file);
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, attributes);
  }
}

TEST_F(VolumeTest, FastMountAndScanGiveTheSame) {
  format();
  for (int i = 0; i < 20; ++i)
    put("/b/" + std::to_string(i), text(static_cast<std::size_t>(i) * 700, static_cast<unsigned>(i)));
  commit();
  must(volume().checkpoint());
  put("/b/after", "after the checkpoint");
  commit();
  unmount();
  mount();
  const auto fast = tree_of(volume().index());
  EXPECT_FALSE(volume().info().mounted_by_scan);
  mount({.force_scan = true});
  EXPECT_TRUE(volume().info().mounted_by_scan);
  EXPECT_TRUE(tree_of(volume().index()) == fast);
}

TEST_F(VolumeTest, WhatAManifestNamesIsFoundWithoutAnIndex) {
  format();
  put("/b/one", text(100, 1));
  commit();
  put("/b/two", text(kBlock + 1, 2));
  put("/b/three", text(9, 3));
  commit();
  put("/b/four", text(10, 4));  // in no manifest

  remount_without_unmount();
  EXPECT_TRUE(volume().info().mounted_by_scan);
  EXPECT_EQ(volume().info().batches_recovered, 2U);
  EXPECT_EQ(volume().info().last_batch, 2U);
  EXPECT_THAT(volume().info().problems, ::testing::IsEmpty());
  EXPECT_EQ(get("/b/one"), text(100, 1));
  EXPECT_EQ(get("/b/two"), text(kBlock + 1, 2));
  EXPECT_EQ(get("/b/three"), text(9, 3));
  EXPECT_EQ(volume().index().find_file("/b/four"), nullptr);

  // Appending goes on behind everything, and the next index holds all of it.
  put("/b/five", text(11, 5));
  EXPECT_EQ(commit().number, 3U);
  unmount();
  mount();
  EXPECT_FALSE(volume().info().mounted_by_scan);
  EXPECT_EQ(get("/b/two"), text(kBlock + 1, 2));
  EXPECT_EQ(get("/b/five"), text(11, 5));
  EXPECT_EQ(get("/.reelway/batches/2").substr(0, 11), "manifest\t1\t");
}

TEST_F(VolumeTest, ALongTailAfterTheLastManifestIsSearched) {
  format();
  put("/b/one", text(100, 1));
  commit();
  for (int i = 0; i < 100; ++i) put("/b/tail" + std::to_string(i), text(50, static_cast<unsigned>(i)));
  remount_without_unmount();
  EXPECT_EQ(get("/b/one"), text(100, 1));
  EXPECT_EQ(volume().index().find_file("/b/tail5"), nullptr);
}

TEST_F(VolumeTest, RenamesAndRemovalsSurviveWithoutAnIndex) {
  format();
  put("/b/key", "old");
  put("/b/gone", "gone");
  commit();
  put("/b/key", "new", {}, "/.reelway/objects/b/01OLD");
  ASSERT_TRUE(volume().remove_file("/b/gone"));
  commit();
  remount_without_unmount();
  EXPECT_EQ(get("/b/key"), "new");
  EXPECT_EQ(get("/.reelway/objects/b/01OLD"), "old");
  EXPECT_EQ(volume().index().find_file("/b/gone"), nullptr);
}

TEST_F(VolumeTest, AnExistingPathIsNeverOverwritten) {
  format();
  put("/b/key", "old");
  EXPECT_EQ(code_of(volume().begin_file({.path = "/b/key", .displaced_path = {}})), Code::already_exists);
  EXPECT_EQ(code_of(volume().begin_file({.path = "/b", .displaced_path = {}})), Code::already_exists);
  EXPECT_EQ(code_of(volume().begin_file({.path = "/b/../x", .displaced_path = {}})), Code::invalid_argument);
  EXPECT_EQ(code_of(volume().begin_file({.path = "b/x", .displaced_path = {}})), Code::invalid_argument);
}

TEST_F(VolumeTest, AnAbandonedFileLeavesNoTrace) {
  format();
  must(volume().begin_file({.path = "/b/half", .displaced_path = {}}));
  const auto half = text(2 * kBlock + 5, 1);
  must(volume().append(base::as_bytes(half)));
  volume().abandon_file();
  put("/b/whole", "whole");
  commit();
  unmount();
  mount();
  EXPECT_EQ(volume().index().find_file("/b/half"), nullptr);
  EXPECT_EQ(get("/b/whole"), "whole");
}

TEST_F(VolumeTest, AppendsInPiecesOfAnySize) {
  format();
  const auto content = text(4 * kBlock + 123, 9);
  must(volume().begin_file({.path = "/b/pieces", .displaced_path = {}}));
  for (std::size_t at = 0, step = 1; at < content.size(); at += step, step = step * 3 + 1) {
    must(volume().append(base::as_bytes(content).subspan(at, std::min(step, content.size() - at))));
  }
  const auto stored = must(volume().finish_file({}));
  EXPECT_EQ(stored.length, content.size());
  EXPECT_EQ(get("/b/pieces"), content);
}

TEST_F(VolumeTest, BlankForeignAndHalfFormattedCartridgesAreToldApart) {
  rig_.load(rig_.barcode());
  EXPECT_EQ(code_of(Volume::mount(rig_.drive(), environment())), Code::not_found);
  must(rig_.drive().locate({0, 0}));
  must(rig_.drive().write_block(base::as_bytes("a tar archive, say")));
  EXPECT_EQ(code_of(Volume::mount(rig_.drive(), environment())), Code::unsupported);
  EXPECT_EQ(code_of(Volume::format(rig_.drive(), environment(), {})), Code::already_exists);
  must(rig_.drive().locate({0, 0}));
  must(rig_.drive().write_block(encode_vol1("ABC123")));
  EXPECT_EQ(code_of(Volume::mount(rig_.drive(), environment())), Code::unsupported);
}

TEST_F(VolumeTest, FormatRefusesAVolumeUnlessTold) {
  format();
  put("/b/precious", "precious");
  commit();
  unmount();
  EXPECT_EQ(code_of(Volume::format(rig_.drive(), environment(), {})), Code::already_exists);
  mount();
  EXPECT_EQ(get("/b/precious"), "precious");
}

TEST_F(VolumeTest, AWriteProtectedVolumeIsReadOnly) {
  format();
  put("/b/a", "a");
  commit();
  unmount();
  ASSERT_TRUE(rig_.vtl().set_write_protect(rig_.barcode(), true));
  mount();
  EXPECT_TRUE(volume().info().read_only);
  EXPECT_EQ(get("/b/a"), "a");
  EXPECT_EQ(code_of(volume().begin_file({.path = "/b/c", .displaced_path = {}})), Code::access_denied);
  unmount();
  EXPECT_EQ(code_of(Volume::format(rig_.drive(), environment(),
                                   {.barcode = {}, .volume_name = {}, .media_pool = {}, .overwrite = true})),
            Code::access_denied);
}

TEST_F(VolumeTest, ADamagedBlockIsDataLossAndOthersAreStillRead) {
  format();
  put("/b/bad", text(kBlock, 1));
  put("/b/good", text(kBlock, 2));
  commit();
  const auto bad = volume().index().find_file("/b/bad")->extents.front().start_block;
  unmount();
  ASSERT_TRUE(rig_.vtl().flip_bit(rig_.barcode(), 1, bad));
  mount();
  const auto result = try_get("/b/bad");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::data_loss);
  EXPECT_EQ(result.error().scope, base::Scope::cartridge);
  EXPECT_EQ(get("/b/good"), text(kBlock, 2));
}

TEST_F(VolumeTest, ADamagedIndexOnTheIndexPartitionIsReplaced) {
  format();
  put("/b/a", "a");
  commit();
  unmount();
  ASSERT_TRUE(rig_.vtl().flip_bit(rig_.barcode(), 0, 5));
  mount();
  EXPECT_TRUE(volume().info().mounted_by_scan);
  EXPECT_EQ(get("/b/a"), "a");
  unmount();
  mount();
  EXPECT_FALSE(volume().info().mounted_by_scan);
  EXPECT_EQ(get("/b/a"), "a");
}

TEST_F(VolumeTest, ADamagedManifestIsReportedAndTheOthersCount) {
  format();
  put("/b/one", "1");
  commit();
  put("/b/two", "2");
  const auto second = commit();
  put("/b/three", "3");
  commit();
  ASSERT_TRUE(rig_.vtl().flip_bit(rig_.barcode(), 1, second.trailer_block));
  remount_without_unmount();
  EXPECT_EQ(get("/b/one"), "1");
  EXPECT_EQ(get("/b/three"), "3");
  EXPECT_EQ(volume().info().problems.size(), 1U);
}

TEST_F(VolumeTest, AForeignTrailerInsideAnObjectIsNotBelieved) {
  format();
  put("/b/real", "real");
  commit();
  const auto forged = encode_trailer({.number = 99,
                                      .volume_uuid = "00000000-0000-4000-8000-000000000000",
                                      .start_block = 5,
                                      .own_block = 40,
                                      .previous_block = {},
                                      .body_bytes = 1});
  for (int i = 0; i < 60; ++i) put("/b/forged" + std::to_string(i), forged);
  remount_without_unmount();
  EXPECT_EQ(volume().info().last_batch, 1U);
  EXPECT_EQ(get("/b/real"), "real");
}

TEST_F(VolumeTest, ChecksTheDrivesPositionAfterEachSync) {
  format();
  put("/b/a", "a");
  must(volume().write_manifest({}));
  // The drive takes a block that we do not count: as if a command had been repeated behind our back.
  scsi::Device& device = rig_.vtl().drive(0);
  must(device.execute(scsi::write(base::as_bytes("stray"))));
  EXPECT_EQ(code_of(volume().sync()), Code::data_loss);
  EXPECT_EQ(code_of(volume().begin_file({.path = "/b/b", .displaced_path = {}})), Code::unavailable);
}

TEST_F(VolumeTest, AResetOfTheDriveStopsEverythingUntilMountedAgain) {
  format();
  put("/b/a", "a");
  commit();
  rig_.vtl().faults().add(
      {.device = vtl::DeviceId::drive(0), .opcode = {}, .sense = scsi::Sense{.key = 6, .asc = 0x29}});
  EXPECT_FALSE(try_get("/b/a"));
  EXPECT_EQ(code_of(volume().begin_file({.path = "/b/b", .displaced_path = {}})), Code::unavailable);
  mount();
  EXPECT_EQ(get("/b/a"), "a");
}

TEST_F(VolumeTest, AWriteErrorEndsWritingAndKeepsWhatCounted) {
  format();
  put("/b/a", text(100, 1));
  commit();
  rig_.vtl().faults().add({.device = vtl::DeviceId::drive(0),
                           .opcode = std::uint8_t{0x0a},
                           .sense = scsi::Sense{.key = 3, .asc = 0x0c}});
  must(volume().begin_file({.path = "/b/b", .displaced_path = {}}));
  const auto block = text(kBlock, 2);
  EXPECT_EQ(code_of(volume().append(base::as_bytes(block))), Code::data_loss);
  EXPECT_EQ(code_of(volume().write_manifest({})), Code::unavailable);
  EXPECT_EQ(code_of(volume().unmount()), Code::unavailable);
  mount();
  EXPECT_EQ(get("/b/a"), text(100, 1));
  EXPECT_EQ(volume().index().find_file("/b/b"), nullptr);
}

TEST_F(VolumeTest, CheckpointsByTheAmountOfData) {
  mount_options_.checkpoint_bytes = 3 * kBlock;
  format();
  put("/b/a", text(kBlock, 1));
  commit();
  EXPECT_FALSE(must(volume().checkpoint_if_due()));
  for (int i = 0; i < 60; ++i) put("/b/a" + std::to_string(i), text(kBlock, 1));
  commit();
  const auto generation = volume().info().generation;
  EXPECT_TRUE(must(volume().checkpoint_if_due()));
  EXPECT_FALSE(must(volume().checkpoint_if_due()));
  EXPECT_EQ(volume().info().generation, generation + 1);
  remount_without_unmount();
  EXPECT_EQ(volume().info().batches_recovered, 0U);
  EXPECT_EQ(get("/b/a59"), text(kBlock, 1));
}

TEST_F(SmallVolumeTest, AFullVolumeSaysSoAndCanStillBeFinished) {
  format();
  const auto chunk = text(8 * kBlock, 1);
  std::size_t stored = 0;
  base::Result<void> begun;
  while ((begun = testing::run_task(
              volume().begin_file({.path = "/b/" + std::to_string(stored), .displaced_path = {}})))) {
    base::Result<void> appended;
    for (int i = 0; i < 40 && appended; ++i)
      appended = testing::run_task(volume().append(base::as_bytes(chunk)));
    if (!appended) {
      EXPECT_EQ(appended.error().code, Code::no_space);
      break;
    }
    must(volume().finish_file({}));
    ++stored;
    ASSERT_LT(stored, 10'000U);
  }
  EXPECT_TRUE(volume().is_full());
  EXPECT_GT(stored, 0U);
  commit();
  unmount();
  mount();
  EXPECT_EQ(volume().index().find_directory("/b")->files.size(), stored);
  EXPECT_EQ(get("/b/0", 0, 10), chunk.substr(0, 10));
}

TEST_F(VolumeTest, ImportGivesTheMembersOfBundles) {
  format();
  const std::vector<Member> members{{.bucket = "b",
                                     .key = "k/1",
                                     .generation = "g1",
                                     .offset = 1024,
                                     .length = 5,
                                     .sha256 = std::string(64, '0'),
                                     .metadata = {}},
                                    {.bucket = "b",
                                     .key = std::string("\xFF\t\n", 3),
                                     .generation = "g2",
                                     .offset = 2048,
                                     .length = 0,
                                     .sha256 = "",
                                     .metadata = base::Bytes(3)}};
  put("/.reelway/bundles/1.tar", text(5000, 1));
  must(volume().write_manifest({{.path = "/.reelway/bundles/1.tar", .members = members}}));
  must(volume().sync());
  put("/.reelway/bundles/2.tar", text(100, 1));
  must(volume().write_manifest({}));
  must(volume().sync());
  EXPECT_EQ(volume().next_number("/.reelway/bundles"), 3U);
  for (const bool clean : {false, true}) {
    if (clean) unmount();
    mount();
    const auto imported = must(import_scan(volume()));
    ASSERT_EQ(imported.bundles.size(), 1U);
    EXPECT_EQ(imported.bundles[0].members, members);
    EXPECT_THAT(imported.undescribed_bundles, ::testing::ElementsAre("/.reelway/bundles/2.tar"));
    EXPECT_THAT(imported.problems, ::testing::IsEmpty());
  }
}

TEST_F(VolumeTest, CoherencyIsRevokedBeforeTheFirstWrite) {
  format();
  EXPECT_TRUE(must(rig_.drive().read_attribute(1, scsi::attribute::volume_coherency)));
  put("/b/a", "a");
  for (const std::uint32_t partition : {0U, 1U}) {
    EXPECT_FALSE(must(rig_.drive().read_attribute(partition, scsi::attribute::volume_coherency)));
  }
  commit();
  unmount();
  EXPECT_TRUE(must(rig_.drive().read_attribute(1, scsi::attribute::volume_coherency)));
}

TEST_F(VolumeTest, BlocksLargerThanTheLabelSaysAreAnError) {
  format();
  put("/b/a", "a");
  const auto block = volume().index().find_file("/b/a")->extents.front().start_block;
  const std::string large(2 * kBlock, 'x');
  must(rig_.drive().locate({1, block}));
  must(rig_.drive().write_block(base::as_bytes(large)));
  const auto read = try_get("/b/a");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::too_large);
  EXPECT_EQ(read.error().scope, base::Scope::cartridge);
}

TEST_F(VolumeTest, AVolumeWhoseDataPartitionWasCutShortIsReadToItsIndex) {
  format();
  put("/b/a", text(100, 1));
  commit();
  must(volume().checkpoint());
  put("/b/b", text(100, 2));
  commit();
  const auto cut = volume().index().find_file("/b/b")->extents.front().start_block;
  unmount();
  must(rig_.drive().locate({1, cut}));  // a foreign writer ends the partition here
  must(rig_.drive().write_filemarks(1, false));
  mount();
  EXPECT_TRUE(volume().info().mounted_by_scan);
  EXPECT_EQ(get("/b/a"), text(100, 1));
  EXPECT_FALSE(try_get("/b/b"));
}

TEST_F(VolumeTest, AnUnchangedVolumeIsNotWritten) {
  format();
  put("/b/a", "a");
  commit();
  unmount();
  const auto before = kinds(0) + kinds(1);
  mount();
  get("/b/a");
  unmount();
  EXPECT_EQ(kinds(0) + kinds(1), before);
  mount();
  EXPECT_EQ(volume().info().generation, 2U);
}

}  // namespace
}  // namespace reelway::tape::ltfs
