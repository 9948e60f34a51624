#include "store/archive/archive_store.h"

#include <gtest/gtest.h>

#include "testing/archive_rig.h"

namespace reelway::store {
namespace {

using testing::ArchiveRig;
using namespace std::chrono_literals;

class ArchiveStoreTest : public ::testing::Test {
 protected:
  ArchiveStoreTest() {
    rig_.options().gather = 5s;
    rig_.start();
    rig_.set_policy();
  }
  void make(bool recall_on_read) {
    store_ = std::make_unique<ArchiveStore>(
        rig_.disk(), rig_.manager(), ArchiveStoreOptions{.recall_on_read = recall_on_read, .patience = 45s});
  }
  void put_and_evict() {
    rig_.put("k", rig_.bytes(5000));
    rig_.archive_now();
    ASSERT_EQ(rig_.evict().evicted, 1U);
    rig_.pass(200s);  // no cartridge is loaded any more
  }
  base::Result<std::string> get(std::string key) {
    object::GetRequest request;
    request.name = {"b", std::move(key)};
    TRY(const auto reader, rig_.run(store_->get(request)));
    base::Bytes bytes(static_cast<std::size_t>(reader->range().length));
    TRY_VOID(rig_.run(object::read_full(*reader, bytes)));
    return std::string(base::as_text(bytes));
  }
  object::ObjectInfo head(std::string key) {
    return rig_.run(store_->head({.name = {"b", std::move(key)}, .conditions = {}})).value();
  }

  ArchiveRig rig_;
  std::unique_ptr<ArchiveStore> store_;
};

TEST_F(ArchiveStoreTest, WithoutRecallOnReadAnEvictedObjectIsNotResident) {
  make(false);
  put_and_evict();
  EXPECT_EQ(get("k").error().code, base::Code::not_resident);
  EXPECT_FALSE(head("k").restore);
}

TEST_F(ArchiveStoreTest, WithRecallOnReadTheReaderWaitsAndReads) {
  make(true);
  put_and_evict();
  const auto bytes = get("k");
  ASSERT_TRUE(bytes) << to_string(bytes.error());
  EXPECT_TRUE(*bytes == rig_.content().at("k"));
}

TEST_F(ArchiveStoreTest, PastItsPatienceTheReaderIsToldToComeBackAndJoins) {
  put_and_evict();
  store_ = std::make_unique<ArchiveStore>(rig_.disk(), rig_.manager(),
                                          ArchiveStoreOptions{.recall_on_read = true, .patience = 1s});
  const auto early = get("k");
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, base::Code::unavailable);
  EXPECT_EQ(early.error().retry, base::Retry::later);
  const std::size_t begun = rig_.store().tier().recalls_begun;
  base::Result<std::string> later = early;
  for (int i = 0; i < 20 && !later; ++i) later = get("k");
  EXPECT_TRUE(later);
  EXPECT_EQ(rig_.store().tier().recalls_begun - begun, 1U);
}

TEST_F(ArchiveStoreTest, AStubThatTheCatalogDoesNotOwnIsNeverServed) {
  make(true);
  object::ObjectInfo foreign;
  foreign.name = {"b", "foreign"};
  foreign.size = 10;
  foreign.generation = "01HZZZZZZZZZZZZZZZZZZZZZZZ";
  foreign.residency = object::Residency::evicted;
  ASSERT_TRUE(rig_.run(rig_.disk().tiered()->create_stub(foreign)));
  EXPECT_EQ(get("foreign").error().code, base::Code::data_loss);
}

TEST_F(ArchiveStoreTest, HeadShowsTheRestoreWhileItRunsAndUntilItExpires) {
  make(false);
  put_and_evict();
  const std::string generation = head("k").generation;
  ASSERT_TRUE(rig_.run(rig_.manager().submit({.name = {"b", "k"}, .generation = generation, .days = 1})));
  ASSERT_TRUE(head("k").restore);
  EXPECT_TRUE(head("k").restore->ongoing);
  ASSERT_TRUE(rig_.run(rig_.manager().wait({"b", "k"}, generation, 1h)));
  ASSERT_TRUE(head("k").restore);
  EXPECT_FALSE(head("k").restore->ongoing);
  EXPECT_TRUE(head("k").restore->expiry);
}

TEST_F(ArchiveStoreTest, TellsTheArchiverOfWhatItStoresAndRemoves) {
  make(false);
  object::PutRequest request;
  request.name = {"b", "new"};
  request.seal = [] { return base::Result<object::Seal>(object::Seal{.etag = "e", .checksums = {}}); };
  object::MemorySource source(base::as_bytes("hello"));
  ASSERT_TRUE(rig_.run(store_->put(std::move(request), source)));
  EXPECT_NE(rig_.why("new").explanation.find("waits for pool"), std::string::npos)
      << rig_.why("new").explanation;
  object::RemoveRequest removal;
  removal.name = {"b", "new"};
  EXPECT_TRUE(rig_.run(store_->remove(removal)).value());
  EXPECT_EQ(rig_.why("new").state, "absent");
}

}  // namespace
}  // namespace reelway::store
