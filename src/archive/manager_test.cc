#include "archive/manager.h"

#include <gtest/gtest.h>

#include "testing/archive_rig.h"

namespace reelway::archive {
namespace {

using testing::ArchiveRig;
using namespace std::chrono_literals;

constexpr std::uint8_t kRead = 0x08;
constexpr std::uint8_t kWriteFilemarks = 0x10;
constexpr std::uint8_t kReadPosition = 0x34;

scsi::Sense medium_error() { return {.key = 0x3, .asc = 0x11, .ascq = 0x00}; }

/// Small ones for bundles, one of exactly a block, an empty one, some with files of their own, one that needs
/// several buffers.
void put_some(ArchiveRig& rig) {
  for (int i = 0; i < 12; ++i)
    rig.put("small/" + std::to_string(i), rig.bytes(1000 + static_cast<std::size_t>(i) * 37));
  rig.put("empty", "");
  rig.put("block", rig.bytes(64 << 10));
  rig.put("odd//key", rig.bytes(100));
  rig.put("large/1", rig.bytes(300'000));
  rig.put("large/2", rig.bytes(3'000'000));
}

TEST(Archive, GoesToTwoTapesLeavesTheDiskAndComesBackTheSame) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy();
  put_some(rig);
  const StatusView archived = rig.archive_now();
  EXPECT_EQ(archived.objects_waiting, 0U);
  EXPECT_EQ(archived.objects_archived, rig.content().size());
  for (const auto& [key, bytes] : rig.content()) {
    const ObjectView why = rig.why(key);
    ASSERT_EQ(why.copies.size(), 2U) << key;
    EXPECT_NE(why.copies[0].pool, why.copies[1].pool);
    EXPECT_TRUE(why.copies[0].verified && why.copies[1].verified) << key;
    EXPECT_EQ(why.state, "dual");
  }
  const EvictOutcome evicted = rig.evict();
  EXPECT_EQ(evicted.evicted, rig.content().size())
      << (evicted.skipped.empty() ? "" : evicted.skipped.front());
  EXPECT_TRUE(rig.is_evicted("large/2"));
  EXPECT_EQ(rig.get("large/2").error().code, base::Code::not_resident);
  rig.recall_all();
  rig.expect_content();
  EXPECT_EQ(rig.events().count("s3:ObjectRestore:Completed"), rig.content().size());
}

TEST(Archive, ATrickleDoesNotLoadATapeForEachObject) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy();
  for (int i = 0; i < 20; ++i) rig.put("k" + std::to_string(i), rig.bytes(100));
  EXPECT_TRUE(rig.why("k0").copies.empty()) << "300 s have not passed";
  EXPECT_NE(rig.why("k0").explanation.find("waits for pool"), std::string::npos);
  rig.pass(400s);
  EXPECT_EQ(rig.why("k0").copies.size(), 2U);
  EXPECT_EQ(rig.why("k0").copies[0].path.substr(0, rig.why("k0").copies[0].path.find('!')),
            rig.why("k19").copies[0].path.substr(0, rig.why("k19").copies[0].path.find('!')));
}

TEST(Archive, NothingCountsWithoutTheFlush) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy({"one"});
  rig.put("k", rig.bytes(1000));
  // Every WRITE FILEMARKS of the first attempt fails, the flush among them; the archive tries again on
  // another volume.
  for (std::uint32_t drive = 0; drive < 2; ++drive) {
    vtl::Fault fault{.device = vtl::DeviceId::drive(drive),
                     .opcode = kWriteFilemarks,
                     .nth = 12,
                     .sense = scsi::Sense{.key = 0x3, .asc = 0x0c, .ascq = 0}};
    rig.vtl().faults().add(fault);
  }
  rig.archive_now();
  rig.evict();
  rig.recall_all();
  rig.expect_content();
}

TEST(Archive, WhatCountsSurvivesAPowerCut) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    ArchiveRig rig(2, seed);
    rig.start();
    // Without read-back: a locate would flush as well, and hide a missing flush of ours (rule 2).
    rig.set_policy({"one", "two"}, 64 << 10, "none");
    put_some(rig);
    rig.archive_now();
    ASSERT_EQ(rig.evict().evicted, rig.content().size());
    // No orderly end: no index, no unmount. What was committed must be found all the same.
    rig.crash_after(1);
    rig.restart_after_crash(seed);
    rig.recall_all();
    rig.expect_content();
  }
}

TEST(Archive, AWrongPositionAfterTheFlushMeansThatNothingCounts) {
  ArchiveRig rig(1);
  rig.start();
  rig.set_policy({"one"}, 64 << 10, "none");
  rig.put("warm", rig.bytes(10));
  rig.archive_now();
  const std::string first = rig.why("warm").copies.front().barcode;
  rig.vtl().faults().add({.device = vtl::DeviceId::drive(0),
                          .opcode = kReadPosition,
                          .sense = scsi::Sense{.key = 0x3, .asc = 0x0c, .ascq = 0}});
  rig.put("k", rig.bytes(1000));
  rig.archive_now();
  EXPECT_EQ(rig.vtl().faults().pending(), 0U) << "nobody asked where the drive stands";
  // What was written before the failed check is not believed: the copy that counts lies elsewhere.
  const ObjectView why = rig.why("k");
  ASSERT_EQ(why.copies.size(), 1U);
  EXPECT_NE(why.copies.front().barcode, first);
  EXPECT_EQ(rig.evict().evicted, 2U);
  rig.recall_all();
  rig.expect_content();
}

TEST(Evict, IsRefusedWithTheReason) {
  ArchiveRig rig;
  rig.start();
  rig.put("no policy", "x");
  EXPECT_EQ(rig.evict().evicted, 0U);
  rig.set_policy();
  rig.put("k", rig.bytes(1000));
  const EvictOutcome early = rig.evict();
  EXPECT_EQ(early.evicted, 0U);
  ASSERT_FALSE(early.skipped.empty());
  EXPECT_NE(early.skipped.front().find("no counted copy"), std::string::npos);
  rig.archive_now();
  rig.put("k", rig.bytes(2000));  // another version
  const EvictOutcome replaced = rig.evict("k");
  EXPECT_EQ(replaced.evicted, 0U) << "copies of the old version do not count for the new one";
  rig.archive_now();
  EXPECT_EQ(rig.evict("k").evicted, 1U);
}

TEST(Recall, ASecondReaderJoinsTheRunningOne) {
  ArchiveRig rig;
  rig.options().gather = 5s;
  rig.start();
  rig.set_policy();
  rig.put("k", rig.bytes(5000));
  rig.archive_now();
  ASSERT_EQ(rig.evict().evicted, 1U);
  rig.pass(200s);  // nothing is loaded any more
  const std::string generation = rig.info("k").generation;
  object::RecallRequest request{.name = {"b", "k"}, .generation = generation, .for_reader = true};
  const auto first = rig.run(rig.manager().submit(request));
  const auto second = rig.run(rig.manager().submit(request));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->id, second->id);
  const std::size_t before = rig.store().tier().recalls_begun;
  const auto waited = rig.run(rig.manager().wait({"b", "k"}, generation, 45s));
  ASSERT_TRUE(waited);
  EXPECT_EQ(waited->state, object::RecallState::done);
  EXPECT_EQ(rig.store().tier().recalls_begun - before, 1U);
  EXPECT_FALSE(rig.manager().restore_status({"b", "k"}, generation)) << "a reader's recall pins nothing";
}

TEST(Recall, PatienceEndsTheWaitNotTheRecall) {
  ArchiveRig rig;
  rig.options().gather = 60s;
  rig.start();
  rig.set_policy();
  rig.put("k", rig.bytes(5000));
  rig.archive_now();
  ASSERT_EQ(rig.evict().evicted, 1U);
  rig.pass(200s);  // nothing is loaded any more
  const std::string generation = rig.info("k").generation;
  ASSERT_TRUE(
      rig.run(rig.manager().submit({.name = {"b", "k"}, .generation = generation, .for_reader = true})));
  const auto waited = rig.run(rig.manager().wait({"b", "k"}, generation, 3s));
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, base::Code::deadline_exceeded);
  EXPECT_EQ(rig.run(rig.manager().wait({"b", "k"}, generation, 100s))->state, object::RecallState::done);
}

TEST(Recall, IsGroupedByVolumeAndReadInOrderOfPosition) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy({"one"});
  for (int i = 0; i < 30; ++i) rig.put("k" + std::to_string(i), rig.bytes(100'000));  // a file each
  rig.archive_now();
  ASSERT_EQ(rig.evict().evicted, 30U);
  rig.pass(200s);
  const auto before = rig.vtl().changer_seconds().robot;
  std::vector<std::string> shuffled;
  for (int i = 0; i < 30; ++i) shuffled.push_back("k" + std::to_string((i * 7) % 30));
  EXPECT_EQ(rig.run(rig.manager().recall("b", "", shuffled, 1)).value(), 30U);
  for (int i = 0; i < 30; ++i) {
    const std::string key = "k" + std::to_string(i);
    ASSERT_TRUE(rig.run(rig.manager().wait({"b", key}, rig.info(key).generation, 1h)));
  }
  rig.expect_content();
  const auto moved = rig.vtl().changer_seconds().robot - before;
  rig.pass(200s);
  const auto with_return = rig.vtl().changer_seconds().robot - before;
  EXPECT_LE(moved, with_return) << "one load serves them all";
  const auto estimate = rig.run(rig.manager().estimate("b", shuffled)).value();
  EXPECT_EQ(estimate.objects, 30U);
  EXPECT_LT(estimate.planned_s, estimate.as_asked_s);
  EXPECT_LE(estimate.planned_s, estimate.by_position_s + 1e-6);
  EXPECT_LE(estimate.lower_bound_s, estimate.planned_s + 1e-6);
}

TEST(Recall, ATourInBulkGivesWayToAReader) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy({"one"}, 0);
  for (int i = 10; i < 40; ++i) rig.put("k" + std::to_string(i), rig.bytes(100'000));
  rig.archive_now();
  ASSERT_EQ(rig.evict().evicted, 30U);
  rig.pass(200s);
  const auto key_of = [](std::size_t n) { return "k" + std::to_string(n + 10); };
  std::size_t landed = 0;
  rig.store().tier().before_commit = [&] {
    ++landed;
    return rig.timer().sleep_for(1s);
  };
  ASSERT_EQ(rig.run(rig.manager().recall("b", "", {}, 1)).value(), 30U);
  while (landed == 0) rig.pass(1s);
  object::RecallRequest request{.name = {"b", key_of(29)}, .generation = rig.info(key_of(29)).generation};
  request.for_reader = true;
  request.tier = object::RestoreTier::expedited;
  const auto followed = rig.run(rig.manager().follow(request, 2'000'000, 1h));
  ASSERT_TRUE(followed) << to_string(followed.error());
  EXPECT_FALSE(rig.is_evicted(key_of(29)));
  std::size_t left = 0;
  for (std::size_t n = 0; n < 30; ++n) left += rig.is_evicted(key_of(n)) ? 1 : 0;
  EXPECT_GE(left, 15U) << "it did not wait for all of them";
  rig.recall_all();
  rig.expect_content();
}

TEST(Recall, ADamagedCopyIsReadFromTheOtherTapeAndRepaired) {
  for (const bool bundled : {true, false}) {
    SCOPED_TRACE(bundled ? "in a bundle" : "a file of its own");
    ArchiveRig rig;
    rig.start();
    rig.set_policy({"one", "two"}, bundled ? 1 << 20 : 0);
    for (int i = 0; i < 6; ++i) rig.put("k" + std::to_string(i), rig.bytes(200'000));
    rig.archive_now();
    ASSERT_EQ(rig.evict().evicted, 6U);
    // The same object's block on whichever cartridge is read first: damage pool one, and forbid pool two
    // until it has been noticed.
    const ObjectView before = rig.why("k3");
    rig.pass(400s);
    for (const CopyView& copy : before.copies) {
      if (copy.pool == "one") ASSERT_TRUE(rig.vtl().flip_bit(copy.barcode, 1, copy.block + 1));
    }
    const auto verified = rig.run(rig.manager().verify("b", ""));
    ASSERT_TRUE(verified) << to_string(verified.error());
    std::size_t damaged = 0;
    for (const CopyView& copy : rig.why("k3").copies) damaged += copy.damaged ? 1 : 0;
    EXPECT_EQ(damaged, 1U);
    EXPECT_EQ(rig.why("k0").copies.size(), 2U);
    rig.recall_all();
    rig.expect_content();
    rig.archive_now();
    const ObjectView after = rig.why("k3");
    ASSERT_EQ(after.copies.size(), 3U) << "a new copy in the pool";
    EXPECT_FALSE(after.copies[2].damaged);
    EXPECT_EQ(after.copies[2].pool, "one");
  }
}

TEST(Recall, AReadErrorInTheMiddleOfATourSendsOnlyThatObjectToTheOtherTape) {
  ArchiveRig rig(1);
  rig.start();
  rig.set_policy({"one", "two"}, 0);
  for (int i = 0; i < 6; ++i) rig.put("k" + std::to_string(i), rig.bytes(200'000));
  rig.archive_now();
  ASSERT_EQ(rig.evict().evicted, 6U);
  rig.vtl().faults().add(
      {.device = vtl::DeviceId::drive(0), .opcode = kRead, .nth = 9, .sense = medium_error()});
  rig.recall_all();
  rig.expect_content();
}

TEST(Recall, OfWhatNoCopyCanBeReadFailsAndSaysSo) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy({"one"});
  rig.put("k", rig.bytes(5000));
  rig.archive_now();
  ASSERT_EQ(rig.evict().evicted, 1U);
  rig.pass(400s);
  const CopyView copy = rig.why("k").copies.front();
  ASSERT_TRUE(rig.vtl().flip_bit(copy.barcode, 1, copy.block));
  EXPECT_TRUE(rig.run(rig.manager().recall("b", "", {}, 1)));
  const auto ended = rig.run(rig.manager().wait({"b", "k"}, rig.info("k").generation, 1h));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->state, object::RecallState::failed);
  EXPECT_EQ(rig.events().count("reelway:DataLoss"), 1U);
  EXPECT_TRUE(rig.is_evicted("k")) << "no false byte on disk";
}

TEST(Recall, WaitsForACartridgeThatIsOutAndTakesTheOtherCopyWhenThereIsOne) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy({"one"});
  rig.put("k", rig.bytes(5000));
  rig.archive_now();
  ASSERT_EQ(rig.evict().evicted, 1U);
  rig.pass(400s);
  const std::string barcode = rig.why("k").copies.front().barcode;
  ASSERT_TRUE(rig.vtl().take_out(barcode));
  rig.pass(60s);
  EXPECT_TRUE(rig.run(rig.manager().recall("b", "", {}, 1)));
  rig.pass(60s);
  EXPECT_NE(rig.why("k").explanation.find("not in the library"), std::string::npos)
      << rig.why("k").explanation;
  ASSERT_TRUE(rig.vtl().put_in(barcode));
  rig.pass(60s);
  rig.recall_all();
  rig.expect_content();
}

TEST(Restore, IsPinnedForItsDaysAndThenEvictedAgain) {
  ArchiveRig rig;
  rig.options().gather = 5s;
  rig.start();
  rig.set_policy();
  rig.put("k", rig.bytes(5000));
  rig.archive_now();
  ASSERT_EQ(rig.evict().evicted, 1U);
  rig.pass(200s);
  const std::string generation = rig.info("k").generation;
  ASSERT_TRUE(rig.run(rig.manager().submit({.name = {"b", "k"}, .generation = generation, .days = 2})));
  EXPECT_TRUE(rig.manager().restore_status({"b", "k"}, generation)->ongoing);
  ASSERT_TRUE(rig.run(rig.manager().wait({"b", "k"}, generation, 1h)));
  const auto status = rig.manager().restore_status({"b", "k"}, generation);
  ASSERT_TRUE(status && status->expiry);
  EXPECT_FALSE(status->ongoing);
  EXPECT_EQ(status->expiry->time_since_epoch() % 24h, 0ns) << "midnight UTC";
  EXPECT_EQ(rig.evict().evicted, 0U) << "pinned";
  rig.stop();
  rig.start();
  EXPECT_TRUE(rig.manager().restore_status({"b", "k"}, generation)) << "survives a restart";
  rig.pass(73h);
  EXPECT_TRUE(rig.is_evicted("k"));
  EXPECT_FALSE(rig.manager().restore_status({"b", "k"}, generation));
}

TEST(List, NamesWhatLiesOnAVolumeInOrderOfPosition) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy({"one"});
  for (int i = 0; i < 1100; ++i) rig.put("small/" + std::to_string(10'000 + i), "x");  // more than a page
  rig.put("large", rig.bytes(100'000));
  rig.archive_now();
  rig.remove("small/10007");
  const std::string barcode = rig.why("large").copies.front().barcode;
  std::vector<VolumeEntry> entries;
  std::string after;
  do {
    const auto page = rig.run(rig.manager().list_volume(barcode, "", after));
    ASSERT_TRUE(page) << to_string(page.error());
    EXPECT_EQ(page->pool, "one");
    entries.insert(entries.end(), page->entries.begin(), page->entries.end());
    after = page->next;
  } while (!after.empty());
  ASSERT_EQ(entries.size(), 1101U);
  EXPECT_TRUE(std::is_sorted(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.partition, a.block) < std::tie(b.partition, b.block);
  }));
  std::map<std::string, const VolumeEntry*> by_key;
  for (const VolumeEntry& entry : entries) by_key[entry.name.key] = &entry;
  EXPECT_EQ(by_key.at("large")->path, "/b/large");
  EXPECT_EQ(by_key.at("large")->member, "");
  EXPECT_EQ(by_key.at("large")->bytes, 100'000U);
  EXPECT_EQ(by_key.at("large")->generation, rig.info("large").generation);
  EXPECT_EQ(by_key.at("small/10006")->member, "b/small/10006");
  EXPECT_EQ(by_key.at("small/10006")->state, "verified");
  EXPECT_EQ(by_key.at("small/10007")->state, "dead");

  const std::string uuid = rig.run(rig.manager().list_volume(barcode, "", ""))->uuid;
  EXPECT_EQ(rig.run(rig.manager().list_volume(uuid, "b/la", ""))->entries.size(), 1U);
  EXPECT_EQ(rig.run(rig.manager().list_volume(uuid, "b/small/1000", ""))->entries.size(), 10U);
  EXPECT_TRUE(rig.run(rig.manager().list_volume(uuid, "other", ""))->entries.empty());
  EXPECT_EQ(rig.run(rig.manager().list_volume("XX0001L9", "", "")).error().code, base::Code::not_found);
  EXPECT_EQ(rig.run(rig.manager().list_volume(uuid, "", "x")).error().code, base::Code::invalid_argument);
}

TEST(Import, RebuildsTheCatalogFromTheTapesAlone) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy();
  put_some(rig);
  rig.archive_now();
  rig.evict("large/");
  rig.put("doomed", rig.bytes(500));
  rig.archive_now();
  rig.delete_catalog();
  rig.start();
  const auto view = rig.run(rig.manager().import_volumes(false));
  ASSERT_TRUE(view) << to_string(view.error());
  EXPECT_EQ(view->objects, rig.content().size()) << (view->problems.empty() ? "" : view->problems.front());
  EXPECT_EQ(view->copies, 2 * rig.content().size());
  EXPECT_TRUE(view->problems.empty());
  EXPECT_EQ(rig.why("large/1").state, "evicted");
  rig.recall_all();
  rig.expect_content();
}

TEST(Import, MakesStubsOnAnEmptyDiskAndRaisesNoDead) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy();
  put_some(rig);
  rig.put("dead", rig.bytes(500));
  rig.archive_now();
  rig.remove("dead");
  rig.put("later", rig.bytes(500));  // carries the death to both tapes
  rig.archive_now();
  rig.stop();
  for (const auto& [key, bytes] : rig.content()) {
    object::RemoveRequest request;
    request.name = {"b", key};
    ASSERT_TRUE(rig.run(rig.disk().remove(request)));
  }
  rig.delete_catalog();
  rig.start();
  const auto view = rig.run(rig.manager().import_volumes(true));
  ASSERT_TRUE(view) << to_string(view.error());
  EXPECT_EQ(view->stubs, rig.content().size()) << (view->problems.empty() ? "" : view->problems.front());
  const auto head = rig.run(rig.disk().head({.name = {"b", "dead"}, .conditions = {}}));
  EXPECT_FALSE(head) << "a deleted object came back";
  rig.recall_all();
  rig.expect_content();
}

TEST(Crash, AtAnyStepOfArchivingEvictingAndRecallingLosesNothing) {
  // One history, the power going at every k-th step of it.
  std::uint64_t steps = 0;
  {
    ArchiveRig rig;
    rig.start();
    rig.set_policy({"one", "two"}, 10'000);
    rig.put("small", rig.bytes(1000));
    rig.put("large", rig.bytes(200'000));
    const std::uint64_t begin = rig.crash().steps;
    rig.archive_now();
    rig.evict();
    rig.recall_all();
    steps = rig.crash().steps - begin;
  }
  ASSERT_GT(steps, 50U);
  for (std::uint64_t at = 1; at <= steps; at += std::max<std::uint64_t>(1, steps / 60)) {
    SCOPED_TRACE("crash at step " + std::to_string(at));
    ArchiveRig rig(2, at);
    rig.start();
    rig.set_policy({"one", "two"}, 10'000);
    rig.put("small", rig.bytes(1000));
    rig.put("large", rig.bytes(200'000));
    rig.crash_after(at);
    (void)rig.run(rig.manager().archive_now("b", ""));
    if (!rig.crash().dead) (void)rig.run(rig.manager().evict("b", ""));
    if (!rig.crash().dead) rig.recall_all(false);
    rig.restart_after_crash(at);
    rig.archive_now();
    for (const auto& [key, bytes] : rig.content()) {
      const ObjectView why = rig.why(key);
      EXPECT_TRUE(why.state == "dual" || why.state == "evicted" || why.state == "recalling")
          << key << ": " << why.state << ", " << why.explanation;
    }
    rig.pass(10s);
    rig.evict();
    rig.recall_all();
    rig.expect_content();
    if (::testing::Test::HasFailure()) break;
  }
}

TEST(Faults, OfDrivesMediaAndRobotDelayButLoseNothing) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ArchiveRig rig(2, seed);
    rig.start();
    rig.set_policy({"one", "two"}, 10'000);
    const auto plan_faults = [&rig] {
      for (int i = 0; i < 4; ++i) {
        const auto which = rig.rng().below(5);
        const auto device = which == 4 ? vtl::DeviceId::changer()
                                       : vtl::DeviceId::drive(static_cast<std::uint32_t>(which % 2));
        // Unrecovered read or write error, hardware error, aborted command.
        static constexpr scsi::Sense kSenses[] = {
            {.key = 3, .asc = 0x11}, {.key = 3, .asc = 0x0c}, {.key = 4, .asc = 0x44}, {.key = 0xb}};
        rig.vtl().faults().add(
            {.device = device, .nth = 1 + rig.rng().below(60), .sense = kSenses[rig.rng().below(4)]});
      }
    };
    plan_faults();
    for (int i = 0; i < 6; ++i) rig.put("k" + std::to_string(i), rig.bytes(500 + rig.rng().below(60'000)));
    (void)rig.run(rig.manager().archive_now("b", ""));
    plan_faults();
    (void)rig.evict();
    rig.recall_all(false);
    rig.vtl().faults().clear();
    rig.pass(1h);
    rig.archive_now();
    (void)rig.evict();
    rig.recall_all();
    rig.expect_content();
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace reelway::archive
