#include "archive/catalog.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "archive/policy.h"

namespace reelway::archive {
namespace {

class CatalogTest : public ::testing::Test {
 protected:
  CatalogTest() {
    std::string name = (std::filesystem::temp_directory_path() / "catalog_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    reopen();
    Policy policy;
    policy.bucket = "b";
    policy.pools = {"one", "two"};
    policy_ = catalog_->put_policy(policy, {})->id;
    for (const char* pool : {"one", "two"}) {
      VolumeRow row;
      row.barcode = std::string(pool) + "L9";
      row.pool = pool;
      row.state = VolumeState::active;
      volumes_.push_back(catalog_->put_volume(row).value());
    }
  }
  ~CatalogTest() override {
    catalog_.reset();
    std::filesystem::remove_all(folder_);
  }
  void reopen() {
    catalog_.reset();
    auto opened = Catalog::open(folder_);
    ASSERT_TRUE(opened) << to_string(opened.error());
    catalog_ = std::move(*opened);
  }
  ObjectRow seen(std::string key, std::string generation, std::uint64_t size = 10) {
    ObjectRow row;
    row.name = {"b", std::move(key)};
    row.identity.generation = std::move(generation);
    row.identity.inode = 7;
    row.identity.size = size;
    row.identity.mtime = base::TimePoint{std::chrono::seconds{100}};
    row.missing = {"one", "two"};
    row.policy = policy_;
    row.noted = base::TimePoint{std::chrono::seconds{200}};
    return row;
  }
  ObjectRow noted(const ObjectRow& row) {
    EXPECT_TRUE(catalog_->note({row}));
    return catalog_->find(row.name).value().value();
  }
  void commit(const ObjectRow& row, std::size_t volume, std::string path = "/bundle") {
    BatchCommit batch;
    batch.volume = volumes_[volume];
    CommittedCopy copy;
    copy.object = row;
    copy.object.sha256 = "ab";
    copy.copy.path = std::move(path);
    copy.copy.length = row.identity.size;
    batch.copies.push_back(copy);
    auto done = catalog_->commit_batch(batch);
    EXPECT_TRUE(done) << to_string(done.error());
  }
  std::vector<CopyRow> copies(std::int64_t object) { return catalog_->copies({object}).value(); }

  std::filesystem::path folder_;
  std::unique_ptr<Catalog> catalog_;
  std::int64_t policy_ = 0;
  std::vector<VolumeRow> volumes_;
};

TEST_F(CatalogTest, KeepsEverythingAcrossARestart) {
  const std::string odd("k\xff\x01ey,'\"", 8);
  ObjectRow row = seen(odd, "G1");
  row.metadata = {std::byte{0}, std::byte{255}};
  const ObjectRow stored = noted(row);
  commit(stored, 0);
  reopen();
  const ObjectRow again = catalog_->find(row.name).value().value();
  EXPECT_EQ(again.name.key, odd);
  EXPECT_EQ(again.metadata, row.metadata);
  EXPECT_EQ(again.identity, row.identity);
  EXPECT_EQ(again.sha256, "ab");
  EXPECT_EQ(again.missing, std::vector<std::string>{"two"});
  EXPECT_EQ(catalog_->policies()->size(), 1U);
  EXPECT_EQ(catalog_->volumes()->size(), 2U);
}

TEST_F(CatalogTest, ACopyInEachPoolMakesAnObjectArchivedAndADamagedOneTakesThatBack) {
  const ObjectRow row = noted(seen("k", "G1"));
  commit(row, 0);
  commit(row, 1);
  EXPECT_TRUE(catalog_->find(row.name).value()->missing.empty());
  EXPECT_EQ(catalog_->counts()->archived, 1U);
  const CopyRow copy = copies(row.id).front();
  ASSERT_TRUE(catalog_->set_damaged(copy.id));
  const ObjectRow after = catalog_->find(row.name).value().value();
  EXPECT_EQ(after.missing, std::vector<std::string>{"one"});
  EXPECT_EQ(after.noted, base::TimePoint{}) << "a repair does not wait for a batch's age";
  // A second good copy in the same pool closes the gap again.
  commit(after, 0, "/another");
  EXPECT_TRUE(catalog_->find(row.name).value()->missing.empty());
}

TEST_F(CatalogTest, ANewGenerationBuriesTheOldAndTellsItsVolumes) {
  const ObjectRow old = noted(seen("k", "G1"));
  commit(old, 0);
  const ObjectRow fresh = noted(seen("k", "G2"));
  EXPECT_NE(fresh.id, old.id);
  EXPECT_EQ(fresh.missing.size(), 2U) << "copies of another version do not count";
  EXPECT_EQ(catalog_->find(old.name, "G1").value()->disk, Disk::removed);
  ASSERT_EQ(catalog_->unjournalled(volumes_[0].id, 10)->size(), 1U);
  EXPECT_TRUE(catalog_->unjournalled(volumes_[1].id, 10)->empty());
  ASSERT_TRUE(catalog_->journalled(volumes_[0].id, catalog_->unjournalled(volumes_[0].id, 10).value()));
  EXPECT_TRUE(catalog_->unjournalled(volumes_[0].id, 10)->empty());
}

TEST_F(CatalogTest, ACopyOfAReplacedObjectDoesNotCountForItsSuccessor) {
  const ObjectRow old = noted(seen("k", "G1"));
  const ObjectRow fresh = noted(seen("k", "G2"));
  commit(old, 0);  // the batch began before the overwrite
  commit(old, 1);
  EXPECT_EQ(catalog_->find(fresh.name).value()->missing.size(), 2U);
  EXPECT_TRUE(copies(fresh.id).empty());
}

TEST_F(CatalogTest, SeeingAFileAgainKeepsWhatWasArchived) {
  const ObjectRow row = noted(seen("k", "G1"));
  commit(row, 0);
  ObjectRow touched = seen("k", "G1");
  touched.identity.ctime = base::TimePoint{std::chrono::seconds{999}};
  ASSERT_TRUE(catalog_->note({touched}));
  // Were the new ctime believed, evict would drop a file whose bytes nobody compared with the tape.
  EXPECT_EQ(catalog_->find(row.name).value()->identity.ctime, row.identity.ctime);
}

TEST_F(CatalogTest, RemovingNamesAGeneration) {
  const ObjectRow row = noted(seen("k", "G2"));
  ASSERT_TRUE(catalog_->remove({seen("k", "G1")}));
  EXPECT_TRUE(catalog_->find(row.name).value());
  ASSERT_TRUE(catalog_->remove({seen("k", "G2")}));
  EXPECT_FALSE(catalog_->find(row.name).value());
}

TEST_F(CatalogTest, TakesWaitingOnesUpToCountAndBytesInKeyOrder) {
  std::vector<ObjectRow> rows;
  for (const char* key : {"c", "a", "d", "b"}) rows.push_back(seen(key, std::string("G") + key, 100));
  ASSERT_TRUE(catalog_->note(rows));
  const auto groups = catalog_->waiting(policy_, base::TimePoint::max()).value();
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].count, 4U);
  EXPECT_EQ(groups[0].bytes, 400U);
  TakeRequest request;
  request.policy = policy_;
  request.missing = groups[0].missing;
  request.born_before = request.now = base::TimePoint::max();
  request.count_max = 3;
  request.bytes_max = 250;
  const auto taken = catalog_->take_waiting(request).value();
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].name.key, "a");
  EXPECT_EQ(taken[1].name.key, "b");
  request.bytes_max = 10;
  EXPECT_EQ(catalog_->take_waiting(request)->size(), 1U) << "a large object must not wait for ever";
  ASSERT_TRUE(catalog_->postpone({taken[0].id}, base::TimePoint{std::chrono::seconds{5000}}));
  request.now = base::TimePoint{std::chrono::seconds{4000}};
  EXPECT_EQ(catalog_->take_waiting(request)->front().name.key, "b");
  EXPECT_TRUE(catalog_->waiting(policy_, base::TimePoint{std::chrono::seconds{50}})->empty())
      << "younger than the policy's age";
}

TEST_F(CatalogTest, ImportingTwiceAddsNothingAndTheYoungestVersionIsTheObject) {
  ObjectRow old = seen("k", "01A");
  ObjectRow fresh = seen("k", "01B");
  for (ObjectRow* row : {&old, &fresh}) {
    row->disk = Disk::lost;
    row->policy = 0;
    row->missing.clear();
  }
  for (int round = 0; round < 2; ++round) {
    commit(old, 0, "/old");
    commit(fresh, 0, "/new");
    commit(old, 1, "/old");
    EXPECT_EQ(catalog_->find(old.name).value()->identity.generation, "01B");
    EXPECT_EQ(catalog_->copies_on(volumes_[0].id)->size(), 2U);
    EXPECT_EQ(catalog_->copies_on(volumes_[1].id)->size(), 1U);
  }
}

TEST_F(CatalogTest, TheQueueOfRecallsSurvives) {
  const ObjectRow row = noted(seen("k", "G1"));
  RequestRow request;
  request.object = row.id;
  request.days = 3;
  const auto added = catalog_->add_requests({request, request}).value();
  EXPECT_NE(added[0].id, added[1].id);
  reopen();
  ASSERT_EQ(catalog_->open_requests()->size(), 2U);
  RequestRow done = added[0];
  done.state = object::RecallState::done;
  done.expiry = base::TimePoint{std::chrono::seconds{50}};
  ASSERT_TRUE(catalog_->put_requests({done}));
  EXPECT_EQ(catalog_->open_requests()->size(), 1U);
  EXPECT_TRUE(catalog_->expired_pins(base::TimePoint{std::chrono::seconds{49}}, 10)->empty());
  EXPECT_EQ(catalog_->expired_pins(base::TimePoint{std::chrono::seconds{50}}, 10)->size(), 1U);
  ASSERT_TRUE(catalog_->remove({row}));
  EXPECT_TRUE(catalog_->open_requests()->empty()) << "nobody recalls what was deleted";
}

TEST_F(CatalogTest, PolicyChangesAreOrderedWhateverTheClockDoes) {
  Policy policy;
  policy.bucket = "b";
  policy.prefix = "p/";
  policy.pools = {"one"};
  const base::TimePoint late{std::chrono::seconds{1000}};
  ASSERT_TRUE(catalog_->put_policy(policy, late));
  ASSERT_TRUE(catalog_->remove_policy("b", "p/", base::TimePoint{}));  // the clock went back
  ASSERT_TRUE(catalog_->remove_policy("b", "never there", late));
  const auto changes = catalog_->policy_changes(late).value();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_TRUE(changes[0].removed);
  EXPECT_GT(changes[0].at, late);
  EXPECT_EQ(catalog_->policies()->size(), 1U);
  EXPECT_EQ(catalog_->policy_changes({})->size(), 2U);
  reopen();
  EXPECT_EQ(catalog_->policy_changes({})->size(), 2U) << "a removal is remembered";

  PolicyChange told{.policy = policy, .removed = false, .at = late};
  EXPECT_FALSE(catalog_->take_policy(told).value()) << "a tape that knows less";
  told.at = changes[0].at + std::chrono::seconds{1};
  EXPECT_TRUE(catalog_->take_policy(told).value());
  EXPECT_FALSE(catalog_->take_policy(told).value()) << "known already";
  EXPECT_EQ(catalog_->policies()->size(), 2U);
  EXPECT_EQ(catalog_->policies()->back().policy, policy);
}

TEST_F(CatalogTest, UnreadCopiesAreThoseThatThePolicyWantsRead) {
  const ObjectRow row = noted(seen("k", "G1"));
  commit(row, 0);  // as an import: without a batch
  const CopyRow copy = copies(row.id).front();
  UnreadQuery everywhere;
  everywhere.with_imported = true;
  EXPECT_TRUE(catalog_->unread({})->empty());
  EXPECT_EQ(catalog_->unread(everywhere)->size(), 1U);
  UnreadQuery here = everywhere;
  here.volume = volumes_[0].id;
  here.bucket = "b";
  EXPECT_EQ(catalog_->unread(here)->size(), 1U);
  here.prefix = "l";
  EXPECT_TRUE(catalog_->unread(here)->empty());
  here = everywhere;
  here.volume = volumes_[1].id;
  EXPECT_TRUE(catalog_->unread(here)->empty());
  Policy policy = catalog_->policies()->front().policy;
  policy.verify = "none";
  ASSERT_TRUE(catalog_->put_policy(policy, {}));
  EXPECT_TRUE(catalog_->unread(everywhere)->empty());
  policy.verify = "read-back";
  ASSERT_TRUE(catalog_->put_policy(policy, {}));
  ASSERT_TRUE(catalog_->set_verified({copy.id}));
  EXPECT_TRUE(catalog_->unread(everywhere)->empty());
}

/// As the first version made it, with a row of each table that has changed since.
constexpr const char* kSchemaOne =
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "INSERT INTO meta VALUES ('schema', '1');"
    "CREATE TABLE policies (id INTEGER PRIMARY KEY, bucket TEXT NOT NULL, prefix TEXT NOT NULL, pools TEXT "
    "NOT "
    "NULL, minimum_age BIGINT NOT NULL, batch_age BIGINT NOT NULL, batch_count BIGINT NOT NULL, batch_bytes "
    "BIGINT NOT NULL, bundle_below BIGINT NOT NULL, verify TEXT NOT NULL, UNIQUE (bucket, prefix));"
    "INSERT INTO policies VALUES (5, 'b', '', 'one,two', 1, 2, 3, 4, 6, 'none');"
    "CREATE TABLE volumes (id INTEGER PRIMARY KEY, barcode TEXT NOT NULL UNIQUE, uuid TEXT NOT NULL, serial "
    "TEXT "
    "NOT NULL, pool TEXT NOT NULL, state INTEGER NOT NULL, bytes BIGINT NOT NULL, capacity BIGINT NOT NULL, "
    "batches BIGINT NOT NULL, end_block BIGINT NOT NULL, block_bytes BIGINT NOT NULL);"
    "INSERT INTO volumes VALUES (7, 'RW0001L9', 'some-uuid', 'RW0001', 'one', 1, 10, 20, 30, 40, 50);";

TEST(CatalogSchema, OneBecomesTwoAndKeepsItsRows) {
  std::string name = (std::filesystem::temp_directory_path() / "catalog_XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(name.data());
  sqlite3* old = nullptr;
  ASSERT_EQ(::sqlite3_open((folder / "catalog.sqlite").c_str(), &old), SQLITE_OK);
  ASSERT_EQ(::sqlite3_exec(old, kSchemaOne, nullptr, nullptr, nullptr), SQLITE_OK) << ::sqlite3_errmsg(old);
  ::sqlite3_close(old);
  for (int round = 0; round < 2; ++round) {  // the second one finds schema 2
    const auto catalog = Catalog::open(folder);
    ASSERT_TRUE(catalog) << to_string(catalog.error());
    const auto policies = (*catalog)->policies().value();
    ASSERT_EQ(policies.size(), 1U);
    EXPECT_EQ(policies[0].id, 5);
    EXPECT_EQ(policies[0].policy.pools, (std::vector<std::string>{"one", "two"}));
    EXPECT_EQ((*catalog)->policy_changes({})->size(), 1U) << "no tape has it yet";
    auto volumes = (*catalog)->volumes().value();
    ASSERT_EQ(volumes.size(), 1U);
    EXPECT_EQ(volumes[0].uuid, "some-uuid");
    EXPECT_EQ(volumes[0].end_block, 40U);
    EXPECT_EQ(volumes[0].medium_serial, round == 0 ? "" : "M1");
    EXPECT_EQ(volumes[0].policies_at, base::TimePoint{std::chrono::seconds{round}});
    volumes[0].medium_serial = "M1";
    volumes[0].policies_at = base::TimePoint{std::chrono::seconds{1}};
    ASSERT_TRUE((*catalog)->put_volume(volumes[0]));
  }
  std::filesystem::remove_all(folder);
}

TEST(CatalogPlace, IsRefusedOnNetworkFileSystemsWithTheCure) {
  for (const std::int64_t magic : {0x6969, 0x0bd00bd0, 0x00c36400, 0x01021997, 0x65735546}) {
    const auto reason = refuse_file_system(magic);
    ASSERT_TRUE(reason);
    EXPECT_NE(reason->find("--state"), std::string::npos);
  }
  EXPECT_FALSE(refuse_file_system(0xef53));      // ext4
  EXPECT_FALSE(refuse_file_system(0x58465342));  // XFS
}

TEST(PolicyRules, TheLongestPrefixOfTheBucketWins) {
  std::vector<PolicyRow> rows(3);
  rows[0] = {1, {.bucket = "b", .prefix = "", .pools = {"p"}}};
  rows[1] = {2, {.bucket = "b", .prefix = "deep/", .pools = {"p"}}};
  rows[2] = {3, {.bucket = "other", .prefix = "deep/er/", .pools = {"p"}}};
  EXPECT_EQ(policy_of(rows, {"b", "deep/er/x"})->id, 2);
  EXPECT_EQ(policy_of(rows, {"b", "x"})->id, 1);
  EXPECT_EQ(policy_of(rows, {"c", "x"}), nullptr);
}

TEST(PolicyRules, ABatchStartsByAgeCountOrBytes) {
  Policy policy;
  policy.batch_age_s = 60;
  policy.batch_count = 5;
  policy.batch_bytes = 1000;
  const base::TimePoint start{std::chrono::seconds{1000}};
  WaitingGroup group{.policy = 1, .missing = "p", .pools = {"p"}, .count = 4, .bytes = 999, .oldest = start};
  EXPECT_FALSE(is_batch_due(policy, group, start + std::chrono::seconds{59}));
  EXPECT_TRUE(is_batch_due(policy, group, start + std::chrono::seconds{60}));
  group.count = 5;
  EXPECT_TRUE(is_batch_due(policy, group, start));
  group.count = 1;
  group.bytes = 1000;
  EXPECT_TRUE(is_batch_due(policy, group, start));
  EXPECT_FALSE(is_batch_due(policy, WaitingGroup{}, start));
}

TEST(PolicyRules, NothingIsEvictedBeforeEnoughVerifiedCopiesCount) {
  Policy policy;
  policy.pools = {"one", "two"};
  ObjectRow object;
  std::vector<CopyRow> copies(2);
  copies[0].verified = copies[1].verified = true;
  EXPECT_TRUE(check_evictable(policy, object, copies));
  copies[1].damaged = true;
  EXPECT_FALSE(check_evictable(policy, object, copies));
  copies[1] = {};
  EXPECT_FALSE(check_evictable(policy, object, copies)) << "not read back yet";
  policy.verify = "none";
  EXPECT_TRUE(check_evictable(policy, object, copies));
  object.missing = {"two"};
  EXPECT_FALSE(check_evictable(policy, object, copies));
}

TEST(PolicyRules, SaysWhatIsWrong) {
  Policy policy;
  EXPECT_FALSE(check_policy(policy, {"p"}));
  policy.bucket = "b";
  EXPECT_FALSE(check_policy(policy, {"p"}));
  policy.pools = {"p"};
  EXPECT_TRUE(check_policy(policy, {"p"}));
  policy.pools = {"q"};
  EXPECT_NE(check_policy(policy, {"p"}).error().detail.find("'q'"), std::string::npos);
  policy.pools = {"p", "p"};
  EXPECT_FALSE(check_policy(policy, {"p"}));
  policy.pools = {"p"};
  policy.verify = "lbp";
  EXPECT_EQ(check_policy(policy, {"p"}).error().code, base::Code::unsupported);
}

}  // namespace
}  // namespace reelway::archive
