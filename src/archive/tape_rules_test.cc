// Which cartridges are trusted, what the tapes carry besides objects, and that every copy is read back and
// repaired.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "archive/catalog.h"
#include "archive/lto_costs.h"
#include "archive/manager.h"
#include "media/cost.h"
#include "testing/archive_rig.h"

namespace reelway::archive {
namespace {

using testing::ArchiveRig;
using namespace std::chrono_literals;

std::string barcode_of(ArchiveRig& rig, const std::string& key, const std::string& pool) {
  for (const CopyView& copy : rig.why(key).copies) {
    if (copy.pool == pool && !copy.damaged) return copy.barcode;
  }
  ADD_FAILURE() << key << " has no copy in pool " << pool;
  return {};
}

/// Everything that is written on it. Its memory counts loads, and is left out.
std::string written_on(ArchiveRig& rig, const std::string& barcode) {
  std::string all;
  for (const char* name : {"p0.data", "p0.index", "p1.data", "p1.index"}) {
    std::ifstream file(rig.vtl().cartridge_folder(barcode) / name, std::ios::binary);
    all += std::string{std::istreambuf_iterator<char>(file), {}} + "\n" + name;
  }
  return all;
}

/// The manager is stopped, and what its catalog says of one volume is another thing then.
void alter(ArchiveRig& rig, const std::string& barcode, const std::function<void(VolumeRow&)>& change) {
  rig.stop();
  const auto catalog = Catalog::open(rig.state()).value();
  for (VolumeRow row : catalog->volumes().value()) {
    if (row.barcode != barcode) continue;
    change(row);
    ASSERT_TRUE(catalog->put_volume(row));
  }
}

std::string state_of(ArchiveRig& rig, const std::string& barcode) {
  for (const CartridgeView& cartridge : rig.run(rig.manager().library_view())->cartridges) {
    if (cartridge.barcode == barcode) return cartridge.state;
  }
  return "not there";
}

bool is_complained_of(ArchiveRig& rig, const std::string& text) {
  const auto view = rig.run(rig.manager().status_view());
  return std::any_of(view->last_errors.begin(), view->last_errors.end(),
                     [&](const std::string& error) { return error.find(text) != std::string::npos; });
}

bool all_verified(ArchiveRig& rig, const std::string& key) {
  const std::vector<CopyView> copies = rig.why(key).copies;
  return !copies.empty() &&
         std::all_of(copies.begin(), copies.end(), [](const CopyView& copy) { return copy.verified; });
}

// ---- trust

TEST(Trust, ACartridgeWithAWrongMarkIsNeitherWrittenNorReadUntilTheRightOneIsBack) {
  struct Mark {
    const char* name;
    std::string VolumeRow::* field;
  };
  for (const auto& [name, field] :
       {Mark{"label (VOL1)", &VolumeRow::serial}, Mark{"LTFS volume UUID", &VolumeRow::uuid},
        Mark{"medium serial", &VolumeRow::medium_serial}}) {
    SCOPED_TRACE(name);
    ArchiveRig rig;
    rig.start();
    rig.set_policy();
    for (int i = 0; i < 4; ++i) rig.put("k" + std::to_string(i), rig.bytes(2000));
    rig.archive_now();
    const std::string swapped = barcode_of(rig, "k0", "one");
    ASSERT_EQ(rig.evict("k0").evicted, 1U);
    std::string right;
    alter(rig, swapped, [&](VolumeRow& row) {
      right = row.*field;
      row.*field = "ANOTHER";
    });
    ASSERT_FALSE(right.empty());
    const std::string before = written_on(rig, swapped);
    rig.start();
    rig.put("later", rig.bytes(2000));
    rig.archive_now();
    EXPECT_NE(barcode_of(rig, "later", "one"), swapped);
    EXPECT_TRUE(is_complained_of(rig, std::string("its ") + name)) << rig.last_error();
    EXPECT_TRUE(is_complained_of(rig, "run `reelway tape import`"));
    EXPECT_EQ(state_of(rig, swapped), "foreign");
    EXPECT_EQ(rig.evict("k1").evicted, 0U) << "its copy there is not to be relied on";
    rig.recall_all();  // k0 from the other pool
    rig.expect_content();
    EXPECT_TRUE(written_on(rig, swapped) == before) << "something was written to it";
    alter(rig, swapped, [&](VolumeRow& row) { row.*field = right; });
    rig.start();
    EXPECT_EQ(state_of(rig, swapped), "foreign");
    ASSERT_TRUE(rig.run(rig.manager().import_volumes(true)));
    EXPECT_EQ(state_of(rig, swapped), "active");
    EXPECT_EQ(rig.evict("k1").evicted, 1U);
  }
}

TEST(Trust, ABlankCartridgeInAKnownOnesPlaceIsNotFormatted) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy({"one"});
  rig.put("k", rig.bytes(2000));
  rig.archive_now();
  const std::string known = barcode_of(rig, "k", "one");
  rig.stop();
  const auto folder = rig.vtl().cartridge_folder(known);
  rig.close_library();
  std::filesystem::remove_all(folder);
  rig.open_library();
  rig.start();
  rig.put("later", rig.bytes(2000));
  rig.archive_now();
  EXPECT_NE(barcode_of(rig, "later", "one"), known);
  EXPECT_TRUE(is_complained_of(rig, "it is blank"));
  EXPECT_FALSE(written_on(rig, known).contains("LTFS"));
}

TEST(Trust, AVolumeThatTheCatalogDoesNotKnowIsNotAppendedTo) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy({"one"});
  rig.put("k", rig.bytes(2000));
  rig.archive_now();
  const std::string unknown = barcode_of(rig, "k", "one");
  rig.delete_catalog();
  const std::string before = written_on(rig, unknown);
  rig.start();
  rig.set_policy({"one"});
  rig.put("later", rig.bytes(2000));
  rig.archive_now();
  EXPECT_NE(barcode_of(rig, "later", "one"), unknown);
  EXPECT_TRUE(is_complained_of(rig, "the catalog does not know"));
  rig.stop();
  EXPECT_TRUE(written_on(rig, unknown) == before);
  rig.start();
  ASSERT_TRUE(rig.run(rig.manager().import_volumes(true)));
  EXPECT_EQ(state_of(rig, unknown), "active");
  EXPECT_EQ(rig.why("k").copies.size(), 2U) << "the import took the first one in";
}

// ---- policies on tape

Policy policy_for(std::string prefix) {
  Policy policy;
  policy.bucket = "b";
  policy.prefix = std::move(prefix);
  policy.pools = {"two"};
  policy.minimum_age_s = 7;
  return policy;
}

std::vector<Policy> policies(ArchiveRig& rig) { return rig.run(rig.manager().policies()).value(); }

TEST(PoliciesOnTape, ComeBackByImportAndRemovedOnesDoNot) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy();
  ArchiveRig::expect_ok(rig.run(rig.manager().set_policy(policy_for("gone/"))));
  rig.put("k", rig.bytes(500));
  rig.archive_now();
  ArchiveRig::expect_ok(rig.run(rig.manager().remove_policy("b", "gone/")));
  ArchiveRig::expect_ok(rig.run(rig.manager().set_policy(policy_for("kept/"))));
  rig.put("later", rig.bytes(500));
  rig.archive_now();
  const std::vector<Policy> before = policies(rig);
  ASSERT_EQ(before.size(), 2U);
  rig.delete_catalog();
  rig.start();
  EXPECT_TRUE(policies(rig).empty());
  const auto view = rig.run(rig.manager().import_volumes(true));
  ASSERT_TRUE(view) << to_string(view.error());
  EXPECT_EQ(view->policies, 2U);
  EXPECT_EQ(policies(rig), before);
  // The catalog's own word is the later one.
  ArchiveRig::expect_ok(rig.run(rig.manager().remove_policy("b", "kept/")));
  EXPECT_EQ(rig.run(rig.manager().import_volumes(true))->policies, 0U);
  EXPECT_EQ(policies(rig).size(), 1U);
}

TEST(PoliciesOnTape, AChangeThatNoBatchCarriesGoesThereAlone) {
  for (const bool orderly : {true, false}) {
    SCOPED_TRACE(orderly ? "stopped at once" : "the power goes later");
    ArchiveRig rig;
    rig.start();
    rig.set_policy();
    rig.put("k", rig.bytes(500));
    rig.archive_now();
    if (!orderly) rig.pass(400s);  // nothing is loaded any more
    ArchiveRig::expect_ok(rig.run(rig.manager().remove_policy("b", "")));
    if (!orderly) {
      rig.pass(2min);
      rig.crash_after(1);
      rig.restart_after_crash(1);
    }
    rig.delete_catalog();
    rig.start();
    ASSERT_TRUE(rig.run(rig.manager().import_volumes(true)));
    EXPECT_TRUE(policies(rig).empty()) << "a removed policy came back";
    EXPECT_EQ(rig.why("k").copies.size(), 2U);
  }
}

TEST(PoliciesOnTape, OneWhosePoolIsNotHereIsNamed) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy();
  rig.put("k", rig.bytes(500));
  rig.archive_now();
  rig.delete_catalog();
  auto& pools = rig.options().pools;
  pools["renamed"] = pools["two"];
  pools.erase("two");
  rig.start();
  const auto view = rig.run(rig.manager().import_volumes(true));
  ASSERT_TRUE(view);
  EXPECT_EQ(view->policies, 0U);
  ASSERT_EQ(view->problems.size(), 1U);
  EXPECT_NE(view->problems[0].find("there is no pool 'two'"), std::string::npos) << view->problems[0];
}

// ---- reading back

/// Committed and not read, as a stop or a crash between the two leaves it.
void archive_without_reading(ArchiveRig& rig) {
  rig.set_policy({"one", "two"}, 64 << 10, "none");
  for (int i = 0; i < 5; ++i) rig.put("k" + std::to_string(i), rig.bytes(50'000));
  rig.archive_now();
  ASSERT_FALSE(all_verified(rig, "k3"));
  rig.set_policy();
}

TEST(ReadBack, ThatWasCutIsMadeUpForByTheServerItself) {
  ArchiveRig rig;
  rig.start();
  archive_without_reading(rig);
  EXPECT_EQ(rig.evict().evicted, 0U);
  rig.stop();
  rig.start();
  rig.pass(2min);
  EXPECT_TRUE(all_verified(rig, "k3"));
  EXPECT_EQ(rig.evict().evicted, 5U);
}

TEST(ReadBack, WhatWasAheadOfTheCatalogIsReadToo) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy();
  rig.put("first", rig.bytes(500));
  rig.archive_now();
  rig.stop();
  const auto older = rig.state().parent_path() / "older";
  std::filesystem::copy(rig.state(), older);
  rig.start();
  rig.put("k", rig.bytes(500));
  rig.archive_now();
  rig.delete_catalog();
  std::filesystem::copy(older, rig.state());
  rig.start();
  rig.put("later", rig.bytes(500));
  rig.archive_now();  // mounts the volumes, finds the batch of k, and writes after it
  rig.pass(2min);
  EXPECT_EQ(rig.why("k").copies.size(), 2U);
  EXPECT_TRUE(all_verified(rig, "k"));
}

TEST(ReadBack, OfImportedCopiesIsWhatArchiveNowAndVerifyDo) {
  for (const bool by_verify : {true, false}) {
    SCOPED_TRACE(by_verify);
    ArchiveRig rig;
    rig.start();
    rig.set_policy();
    for (int i = 0; i < 5; ++i) rig.put("k" + std::to_string(i), rig.bytes(50'000));
    rig.archive_now();
    rig.delete_catalog();
    rig.start();
    ASSERT_TRUE(rig.run(rig.manager().import_volumes(true)));
    rig.pass(30min);
    EXPECT_FALSE(all_verified(rig, "k3")) << "a whole library is read only when somebody asks for it";
    if (by_verify)
      ASSERT_TRUE(rig.run(rig.manager().verify("b", "")));
    else
      rig.archive_now();
    EXPECT_TRUE(all_verified(rig, "k3"));
    EXPECT_EQ(rig.evict().evicted, 5U);
  }
}

TEST(ReadBack, ADamagedCopyFoundByArchiveNowIsWrittenAgain) {
  ArchiveRig rig;
  rig.start();
  archive_without_reading(rig);
  rig.pass(400s);
  const CopyView copy = rig.why("k3").copies.front();
  ASSERT_TRUE(rig.vtl().flip_bit(copy.barcode, 1, copy.block));
  rig.archive_now();
  const std::vector<CopyView> copies = rig.why("k3").copies;
  ASSERT_EQ(copies.size(), 3U);
  EXPECT_TRUE(copies[0].damaged);
  EXPECT_TRUE(copies[1].verified && copies[2].verified);
  EXPECT_EQ(rig.evict("k3").evicted, 1U);
}

// ---- repairing

TEST(Verify, RepairsAnEvictedObjectFromItsOtherCopyAndLeavesItEvicted) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy({"one", "two"}, 0);
  for (int i = 0; i < 4; ++i) rig.put("k" + std::to_string(i), rig.bytes(200'000));
  rig.archive_now();
  ASSERT_EQ(rig.evict().evicted, 4U);
  rig.pass(400s);
  for (const CopyView& copy : rig.why("k2").copies) {
    if (copy.pool == "one") ASSERT_TRUE(rig.vtl().flip_bit(copy.barcode, 1, copy.block + 1));
  }
  ASSERT_TRUE(rig.run(rig.manager().verify("b", "")));
  const ObjectView repaired = rig.why("k2");
  EXPECT_EQ(repaired.state, "evicted");
  ASSERT_EQ(repaired.copies.size(), 3U);
  for (const CopyView& copy : repaired.copies) {
    EXPECT_NE(copy.verified, copy.damaged);
    if (copy.damaged) EXPECT_EQ(copy.pool, "one");
  }
  EXPECT_EQ(repaired.copies[2].pool, "one");
  EXPECT_EQ(rig.store().tier().recalls_begun, 1U) << "only what is damaged";
  rig.recall_all();
  rig.expect_content();
}

TEST(Batch, AnObjectThatChangesPastUsMeanwhileIsArchivedAsItIsThen) {
  ArchiveRig rig;
  rig.options().rescan = {};  // no scan helps
  rig.start();
  rig.set_policy();
  rig.put("k", rig.bytes(1000));
  rig.put("other", rig.bytes(1000));
  rig.pass(1min);
  object::PutRequest request;
  request.name = {"b", "k"};
  request.seal = [] { return base::Result<object::Seal>(object::Seal{.etag = "e", .checksums = {}}); };
  const std::string changed = rig.bytes(2000);
  object::MemorySource source(base::as_bytes(changed));
  ASSERT_TRUE(rig.run(rig.disk().put(std::move(request), source)));
  rig.pass(15min);
  ASSERT_EQ(rig.why("other").copies.size(), 2U);
  ASSERT_EQ(rig.why("k").copies.size(), 2U) << rig.why("k").explanation;
  EXPECT_EQ(rig.why("k").copies.front().bytes, 2000U);
}

TEST(Costs, AreThoseOfTheCartridgesGeneration) {
  const LtoCostTable costs(512 << 10, 1);
  EXPECT_NEAR(costs.of("RW0001L9").read_s(1'000'000'000'000), media::read_s(media::lto9(), 1'000'000'000'000),
              1e-6);
  EXPECT_NEAR(costs.of("RW0001L8").read_s(1'000'000'000'000), media::read_s(media::lto8(), 1'000'000'000'000),
              1e-6);
  EXPECT_NE(costs.of("RW0001L8").unload_s(1'000'000), costs.of("RW0001L9").unload_s(1'000'000));
  EXPECT_EQ(costs.of("unknown").load_s(), costs.of("RW0001L9").load_s());
}

}  // namespace
}  // namespace reelway::archive
