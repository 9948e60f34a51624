// Lost disks, conflicts and the end of commands: what must not cost data or hang, whatever was being done.

#include <gtest/gtest.h>

#include "archive/join.h"
#include "archive/manager.h"
#include "testing/archive_rig.h"

namespace reelway::archive {
namespace {

using testing::ArchiveRig;
using namespace std::chrono_literals;

/// The archive did not see it.
void lose(ArchiveRig& rig, const std::string& key) {
  object::RemoveRequest request;
  request.name = {"b", key};
  ASSERT_TRUE(rig.run(rig.disk().remove(request)));
}

void put_past(ArchiveRig& rig, const std::string& key, const std::string& bytes) {
  object::PutRequest request;
  request.name = {"b", key};
  request.seal = [] { return base::Result<object::Seal>(object::Seal{.etag = "e", .checksums = {}}); };
  object::MemorySource source(base::as_bytes(bytes));
  ASSERT_TRUE(rig.run(rig.disk().put(std::move(request), source)));
}

void put_many_and_evict_half(ArchiveRig& rig, int count) {
  for (int i = 0; i < count; ++i) rig.put("k" + std::to_string(1000 + i), rig.bytes(200));
  rig.archive_now();
  ASSERT_GT(rig.evict("k10").evicted, 0U);
}

TEST(Scan, GivesNothingUpWhenTheDiskWasLost) {
  for (const int count : {12, 150}) {  // all of a small bucket, most of a larger one
    SCOPED_TRACE(count);
    ArchiveRig rig;
    rig.start();
    rig.set_policy();
    put_many_and_evict_half(rig, count);
    for (int i = 0; i < count; ++i) {
      if (count < 100 || i % 5 != 0) lose(rig, "k" + std::to_string(1000 + i));
    }
    rig.pass(25min);  // two scans
    EXPECT_EQ(rig.events().count("reelway:ObjectsMissing"), 1U);
    EXPECT_NE(rig.last_error().find("nothing is given up"), std::string::npos) << rig.last_error();
    EXPECT_EQ(rig.why("k1001").state, "lost");
    EXPECT_EQ(rig.why("k1001").copies.size(), 2U);
    rig.put("z", rig.bytes(100));  // a batch would carry deaths to the tapes
    rig.archive_now();
    const auto view = rig.run(rig.manager().import_volumes(true));
    ASSERT_TRUE(view) << to_string(view.error());
    EXPECT_EQ(view->stubs, static_cast<std::uint64_t>(count < 100 ? count : count * 4 / 5));
    rig.recall_all();
    rig.expect_content();
  }
}

TEST(Scan, BelievesAFewDeletesByPosixAndManyThroughUs) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy();
  put_many_and_evict_half(rig, 150);
  lose(rig, "k1003");
  for (int i = 5; i < 145; ++i) rig.remove("k" + std::to_string(1000 + i));
  rig.pass(11min);
  EXPECT_EQ(rig.why("k1003").state, "absent");
  EXPECT_EQ(rig.why("k1005").state, "absent");
  EXPECT_EQ(rig.events().count("reelway:ObjectsMissing"), 0U);
}

TEST(Conflict, AFileInAStubsPlaceIsReportedOnceAndLeavesTheArchivedObjectAlone) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy();
  const std::string bytes = rig.bytes(500);
  rig.put("k", bytes);
  rig.put("overwritten", rig.bytes(500));
  rig.archive_now();
  ASSERT_EQ(rig.evict().evicted, 2U);
  rig.store().tier().born_by_posix.insert("k");
  put_past(rig, "k", "by cp");
  put_past(rig, "overwritten", "through us, but the note was lost");
  rig.pass(25min);
  EXPECT_EQ(rig.events().count("reelway:Conflict"), 1U);
  EXPECT_NE(rig.last_error().find("conflict at b/k"), std::string::npos) << rig.last_error();
  EXPECT_EQ(rig.why("k").state, "conflict");
  EXPECT_EQ(rig.why("k").copies.size(), 2U);
  EXPECT_EQ(rig.why("overwritten").state, "dual");
  // The way out that `archive why` names.
  rig.store().tier().born_by_posix.clear();
  lose(rig, "k");
  rig.pass(11min);
  EXPECT_EQ(rig.why("k").state, "lost");
  ASSERT_TRUE(rig.run(rig.manager().import_volumes(true)));
  ASSERT_TRUE(rig.run(rig.manager().recall("b", "k", {}, 1)));
  ASSERT_TRUE(rig.run(rig.manager().wait({"b", "k"}, rig.info("k").generation, 1h)));
  EXPECT_EQ(rig.get("k").value_or(""), bytes);
}

TEST(Conflict, EndsWhenTheKeyIsStoredAnew) {
  ArchiveRig rig;
  rig.start();
  rig.set_policy();
  rig.put("k", rig.bytes(500));
  rig.archive_now();
  ASSERT_EQ(rig.evict().evicted, 1U);
  rig.store().tier().born_by_posix.insert("k");
  put_past(rig, "k", "by cp");
  rig.pass(11min);
  ASSERT_EQ(rig.why("k").state, "conflict");
  rig.store().tier().born_by_posix.clear();
  rig.put("k", rig.bytes(300));
  rig.archive_now();
  EXPECT_EQ(rig.why("k").state, "dual");
  EXPECT_EQ(rig.why("k").copies.front().bytes, 300U);
}

template <class T>
async::Task<void> expect_closed(async::Task<T> task) {
  const auto ended = co_await std::move(task);
  EXPECT_FALSE(ended.has_value());
  if (!ended.has_value()) EXPECT_EQ(ended.error().code, base::Code::closed);
  co_return base::Result<void>{};
}

async::Task<void> run_all(std::vector<async::Task<void>> tasks) {
  const auto ended = co_await join_all(std::move(tasks));
  for (const auto& result : ended) CO_TRY_VOID(result);
  co_return base::Result<void>{};
}

TEST(Stop, EndsCommandsThatAreUnderWay) {
  for (const std::string command : {"archive now", "tape import", "tape verify"}) {
    SCOPED_TRACE(command);
    ArchiveRig rig;
    rig.start();
    rig.set_policy();
    for (int i = 0; i < 6; ++i) rig.put("k" + std::to_string(i), rig.bytes(200'000));
    if (command != "archive now") rig.archive_now();
    rig.pass(400s);  // nothing is loaded any more
    if (command == "archive now") rig.put("late", rig.bytes(200'000));
    const auto begin = rig.timer().clock().steady_now();
    std::vector<async::Task<void>> both;
    if (command == "archive now") both.push_back(expect_closed(rig.manager().archive_now("b", "")));
    if (command == "tape import") both.push_back(expect_closed(rig.manager().import_volumes(true)));
    if (command == "tape verify") both.push_back(expect_closed(rig.manager().verify("b", "")));
    both.push_back(rig.manager().stop());  // begins when the command first waits
    ArchiveRig::expect_ok(rig.run(run_all(std::move(both))));
    EXPECT_LT(rig.timer().clock().steady_now() - begin, 10min);
  }
}

}  // namespace
}  // namespace reelway::archive
