// Readers that follow a recall while the tape is read: rules 5, 6 and 9, on a virtual clock.

#include <gtest/gtest.h>

#include "store/archive/archive_store.h"
#include "testing/archive_rig.h"

namespace reelway::store {
namespace {

using object::kWithheldBytes;
using testing::ArchiveRig;
using namespace std::chrono_literals;

constexpr std::size_t kSize = 5'000'000;  // several parcels
constexpr std::size_t kFree = kSize - kWithheldBytes;

class RecallOnRead : public ::testing::Test {
 protected:
  RecallOnRead() {
    rig_.start();
    rig_.set_policy();
    rig_.put("k", rig_.bytes(kSize));
    rig_.archive_now();
    EXPECT_EQ(rig_.evict().evicted, 1U);
    rig_.pass(200s);  // no cartridge is loaded any more
    generation_ = rig_.info("k").generation;
    original_ = rig_.content().at("k");
    begun_ = tier().recalls_begun;
    store_ = std::make_unique<ArchiveStore>(rig_.disk(), rig_.manager(),
                                            ArchiveStoreOptions{.recall_on_read = true, .patience = 45s});
  }
  ~RecallOnRead() override { release(); }

  // The recall stops before it would become the object (or before a write) until released.
  void hold_commit() {
    tier().before_commit = [this] { return held(); };
  }
  void hold_write(std::size_t nth) {
    tier().before_write = [this, nth](std::size_t n) { return n == nth ? held() : pass_on(); };
  }
  void release() {
    tier().before_commit = nullptr;
    tier().before_write = nullptr;
    held_->wake();
  }
  async::Task<void> held() { return wait_for(held_); }
  static async::Task<void> wait_for(std::shared_ptr<async::Waiter> waiter) {
    co_return co_await waiter->wait();
  }
  static async::Task<void> pass_on() { co_return base::Result<void>{}; }
  testing::SwitchedTier& tier() { return rig_.store().tier(); }

  using ReaderResult = base::Result<std::unique_ptr<object::Reader>>;
  object::GetRequest request(std::optional<object::RangeRequest> range = std::nullopt) {
    object::GetRequest made;
    made.name = {"b", "k"};
    made.range = range;
    return made;
  }
  ReaderResult open(std::optional<object::RangeRequest> range = std::nullopt) {
    return rig_.run(store_->get(request(range)));
  }
  base::Result<std::string> read(object::Reader& reader, std::size_t count) {
    base::Bytes bytes(count);
    TRY(const std::size_t read, rig_.run(object::read_full(reader, bytes)));
    return std::string(base::as_text(bytes).substr(0, read));
  }
  std::string original(std::size_t offset = 0, std::size_t count = kSize) {
    return original_.substr(offset, count);
  }
  std::size_t recalls() { return tier().recalls_begun - begun_; }

  ArchiveRig rig_;
  std::string generation_;
  std::unique_ptr<ArchiveStore> store_;
  std::shared_ptr<async::Waiter> held_ = std::make_shared<async::Waiter>();
  std::string original_;
  std::size_t begun_ = 0;
};

TEST_F(RecallOnRead, BeginsBeforeTheRecallHasEndedAndWithholdsTheTail) {
  hold_commit();
  const auto reader = open();
  ASSERT_TRUE(reader) << to_string(reader.error());
  EXPECT_EQ((*reader)->info().residency, object::Residency::evicted);
  const auto head = read(**reader, kFree);
  ASSERT_TRUE(head) << to_string(head.error());
  EXPECT_TRUE(*head == original(0, kFree));
  EXPECT_TRUE(rig_.is_evicted("k"));
  EXPECT_TRUE((*reader)->tape_wait()) << "the last bytes wait for the checksum and the exchange";

  base::Bytes tail(kWithheldBytes);
  const auto rest = rig_.begin(object::read_full(**reader, tail));
  rig_.pass(1h);
  EXPECT_FALSE(rest->has_value());
  release();
  ASSERT_EQ(rig_.end(rest).value_or(0), kWithheldBytes);
  EXPECT_TRUE(base::as_text(tail) == original(kFree));
  EXPECT_FALSE(rig_.is_evicted("k"));
  EXPECT_FALSE(rig_.manager().restore_status({"b", "k"}, generation_)) << "a reader's recall pins nothing";
}

TEST_F(RecallOnRead, ARangeIsServedAsSoonAsItsBytesAreThere) {
  hold_write(2);
  const auto first = open(object::RangeRequest{.first = 1000, .last = 1999});
  ASSERT_TRUE(first) << to_string(first.error());
  EXPECT_EQ(read(**first, 2000).value_or(""), original(1000, 1000));
  // What has not come yet is waited for, and no longer than the patience.
  const auto later = open(object::RangeRequest{.first = kSize / 2, .last = kSize / 2 + 9});
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, base::Code::unavailable);
  EXPECT_EQ(later.error().retry, base::Retry::later);

  const auto middle = rig_.begin(store_->get(request(object::RangeRequest{.first = kSize / 2, .last = {}})));
  const auto last = rig_.begin(store_->get(request(object::RangeRequest{.first = {}, .last = 100})));
  rig_.pass(1s);
  EXPECT_FALSE(middle->has_value() || last->has_value());
  hold_commit();
  tier().before_write = nullptr;
  std::exchange(held_, std::make_shared<async::Waiter>())->wake();
  const auto opened = rig_.end(middle);
  ASSERT_TRUE(opened) << to_string(opened.error());
  rig_.pass(1s);
  EXPECT_FALSE(last->has_value()) << "it lies in the withheld tail";
  release();
  const auto tail = rig_.end(last);
  ASSERT_TRUE(tail) << to_string(tail.error());
  EXPECT_EQ(read(**tail, 200).value_or(""), original(kSize - 100));
  EXPECT_TRUE(read(**opened, kSize).value_or("") == original(kSize / 2));
  EXPECT_EQ(recalls(), 1U);
}

TEST_F(RecallOnRead, AReaderWithoutTapeWaitsIsGivenWhenAllOfItsBytesMayBeRead) {
  hold_commit();
  object::GetRequest whole = request();
  whole.without_tape_waits = true;
  const auto too_late = rig_.run(store_->get(whole));
  ASSERT_FALSE(too_late);
  EXPECT_EQ(too_late.error().code, base::Code::unavailable);
  object::GetRequest beginning = request(object::RangeRequest{.first = 0, .last = kFree - 1});
  beginning.without_tape_waits = true;
  EXPECT_TRUE(rig_.run(store_->get(beginning))) << "the withheld tail is none of its bytes";

  const auto waiting = rig_.begin(store_->get(whole));
  rig_.pass(1s);
  EXPECT_FALSE(waiting->has_value());
  release();
  const auto reader = rig_.end(waiting);
  ASSERT_TRUE(reader) << to_string(reader.error());
  EXPECT_FALSE((*reader)->tape_wait());
  EXPECT_TRUE(read(**reader, kSize).value_or("") == original());
  EXPECT_EQ(recalls(), 1U);
}

TEST_F(RecallOnRead, WhatIsReplacedJustBeforeItsRecallIsReadAnew) {
  ArchiveStore store(rig_.store(), rig_.manager(),
                     ArchiveStoreOptions{.recall_on_read = true, .patience = 45s});
  object::MemorySource source(base::as_bytes("new bytes"));
  const auto overwrite = [&]() -> async::Task<void> {
    object::PutRequest put;
    put.name = {"b", "k"};
    put.seal = [] { return base::Result<object::Seal>(object::Seal{.etag = "e", .checksums = {}}); };
    CO_TRY(const auto info, co_await rig_.disk().put(std::move(put), source));
    rig_.manager().notify_stored(info);
    co_return co_await rig_.timer().sleep_for(1s);  // until the archive has heard of it
  };
  rig_.store().after_head = overwrite;
  const auto reader = rig_.run(store.get(request()));
  ASSERT_TRUE(reader) << to_string(reader.error());
  EXPECT_EQ(read(**reader, 100).value_or(""), "new bytes");
}

TEST_F(RecallOnRead, ReadersAndRetriesJoinOneRecallAndMayLeave) {
  hold_commit();
  const auto first = open();
  const auto second = open();
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(read(**first, 1000).value_or("") == original(0, 1000));
  {
    auto third = open();
    ASSERT_TRUE(third);
    EXPECT_TRUE(read(**third, 1000).value_or("") == original(0, 1000));
  }
  release();
  EXPECT_TRUE(read(**second, kSize).value_or("") == original());
  EXPECT_TRUE(read(**first, kSize).value_or("") == original(1000));
  EXPECT_EQ(recalls(), 1U);
}

TEST_F(RecallOnRead, AReaderThatLeavesWhileItWaitsEndsNothing) {
  hold_write(0);
  ASSERT_EQ(open().error().code, base::Code::unavailable);
  EXPECT_EQ(rig_.why("k").state, "recalling");
  release();
  const auto again = open();
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_TRUE(read(**again, kSize).value_or("") == original());
  EXPECT_EQ(recalls(), 1U);
}

TEST_F(RecallOnRead, NothingOfThePoolIsHeldWhileAReaderWaits) {
  hold_commit();
  const auto reader = open();
  ASSERT_TRUE(reader);
  ASSERT_TRUE(read(**reader, kFree));
  auto wait = (*reader)->tape_wait();
  ASSERT_TRUE(wait);
  const auto waiting = rig_.begin(std::move(*wait));
  rig_.pass(1s);
  ASSERT_FALSE(waiting->has_value());
  base::BufferPool& pool = rig_.buffers();
  for (const auto share : {base::PoolShare::http, base::PoolShare::planes})
    EXPECT_EQ(pool.free_count(share), pool.total_count(share));
  release();
  EXPECT_TRUE(rig_.end(waiting));
}

TEST_F(RecallOnRead, AnOverwriteEndsItShortAndTheNextReadsTheNewObject) {
  hold_commit();
  const auto reader = open();
  ASSERT_TRUE(reader);
  EXPECT_TRUE(read(**reader, 1000).value_or("") == original(0, 1000));
  rig_.put("k", "new bytes");
  const auto fresh = open();
  ASSERT_TRUE(fresh) << to_string(fresh.error());
  EXPECT_EQ(read(**fresh, 100).value_or(""), "new bytes");
  release();
  rig_.pass(60s);
  base::Bytes rest(kSize - 1000);
  const auto ended = rig_.run(object::read_full(**reader, rest));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, base::Code::data_loss);
  EXPECT_EQ(rig_.get("k").value_or(""), "new bytes");
  EXPECT_EQ(rig_.events().count("reelway:Conflict"), 0U);
  EXPECT_NE(rig_.why("k").state, "conflict");
}

TEST_F(RecallOnRead, AnOverwriteOfWhichTheArchiveHearsLateIsNoConflict) {
  hold_commit();
  const auto reader = open();
  ASSERT_TRUE(reader);
  object::PutRequest request;
  request.name = {"b", "k"};
  request.seal = [] { return base::Result<object::Seal>(object::Seal{.etag = "e", .checksums = {}}); };
  object::MemorySource source(base::as_bytes("new bytes"));
  const auto info = rig_.run(rig_.disk().put(std::move(request), source));
  ASSERT_TRUE(info);
  release();
  rig_.pass(1s);
  rig_.manager().notify_stored(*info);
  rig_.pass(60s);
  EXPECT_EQ(rig_.events().count("reelway:Conflict"), 0U);
  EXPECT_NE(rig_.why("k").state, "conflict");
}

TEST_F(RecallOnRead, ADeleteEndsItShort) {
  hold_commit();
  const auto reader = open();
  ASSERT_TRUE(reader);
  rig_.remove("k");
  EXPECT_TRUE(object::is_object_not_found(open().error()));
  release();
  rig_.pass(60s);
  const auto ended = read(**reader, kSize);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, base::Code::data_loss);
  EXPECT_TRUE(object::is_object_not_found(open().error())) << "the recall raised no dead object";
  EXPECT_EQ(rig_.events().count("reelway:Conflict"), 0U);
  EXPECT_EQ(rig_.why("k").state, "absent");
}

TEST_F(RecallOnRead, WhoWaitsDuringAnOverwriteIsGivenTheNewObject) {
  hold_write(0);
  const auto waiting = rig_.begin(store_->get(request()));
  rig_.pass(5s);
  ASSERT_FALSE(waiting->has_value());
  rig_.put("k", "new bytes");
  const auto reader = rig_.end(waiting);
  ASSERT_TRUE(reader) << to_string(reader.error());
  EXPECT_EQ(read(**reader, 100).value_or(""), "new bytes");
}

TEST_F(RecallOnRead, ADamagedCopyEndsTheReadersShortAndTheRetryReadsTheOther) {
  const auto copies = rig_.why("k").copies;
  ASSERT_EQ(copies.size(), 2U);
  ASSERT_TRUE(rig_.vtl().take_out(copies[1].barcode));
  rig_.pass(60s);
  const std::uint64_t blocks = kSize / (64 << 10);
  ASSERT_TRUE(rig_.vtl().flip_bit(copies[0].barcode, 1, copies[0].block + blocks - 2));
  const auto reader = open();
  ASSERT_TRUE(reader) << to_string(reader.error());
  const auto broken = read(**reader, kSize);
  ASSERT_FALSE(broken) << "no complete answer with a false byte";
  EXPECT_EQ(broken.error().code, base::Code::data_loss);
  EXPECT_TRUE(rig_.is_evicted("k"));

  const auto retry = rig_.begin(store_->get(request()));
  ASSERT_TRUE(rig_.vtl().put_in(copies[1].barcode));
  const auto again = rig_.end(retry);
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_TRUE(read(**again, kSize).value_or("") == original());
  rig_.archive_now();
  const auto after = rig_.why("k").copies;
  ASSERT_EQ(after.size(), 3U) << "the damaged copy has a successor";
  EXPECT_TRUE(after[0].damaged);
  EXPECT_FALSE(after[2].damaged);
}

TEST_F(RecallOnRead, TheServersEndSendsThoseAwayWhoWait) {
  hold_write(1);
  const auto reading = open();
  ASSERT_TRUE(reading) << to_string(reading.error());
  const auto waiting = rig_.begin(store_->get(request(object::RangeRequest{.first = {}, .last = 10})));
  rig_.pass(1s);
  ASSERT_FALSE(waiting->has_value());
  rig_.manager().send_readers_away();
  const auto begin = rig_.timer().clock().steady_now();
  const auto ended = rig_.end(waiting);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, base::Code::unavailable);
  EXPECT_EQ(rig_.timer().clock().steady_now(), begin);
  release();
  rig_.stop();
  EXPECT_FALSE(read(**reading, kSize)) << "cut short, and told so";
}

TEST_F(RecallOnRead, HeadGetAndListsAgreeOnARestore) {
  const auto shown = [&] {
    std::vector<std::optional<object::RestoreStatus>> all;
    all.push_back(rig_.run(store_->head({.name = {"b", "k"}, .conditions = {}}))->restore);
    all.push_back((*open())->info().restore);
    all.push_back(rig_.run(store_->list({.bucket = "b", .prefix = {}, .delimiter = {}, .start_after = {}}))
                      ->objects.front()
                      .restore);
    return all;
  };
  hold_commit();
  ASSERT_TRUE(rig_.run(rig_.manager().submit({.name = {"b", "k"}, .generation = generation_, .days = 1})));
  for (const auto& restore : shown()) {
    ASSERT_TRUE(restore);
    EXPECT_TRUE(restore->ongoing);
  }
  release();
  ASSERT_TRUE(rig_.run(rig_.manager().wait({"b", "k"}, generation_, 1h)));
  for (const auto& restore : shown()) {
    ASSERT_TRUE(restore);
    EXPECT_FALSE(restore->ongoing);
    EXPECT_TRUE(restore->expiry);
  }
  rig_.put("k", "new");
  for (const auto& restore : shown()) EXPECT_FALSE(restore);
}

TEST_F(RecallOnRead, ARestoreThatJoinsAReadersRecallPins) {
  hold_commit();
  const auto reader = open();
  ASSERT_TRUE(reader);
  EXPECT_FALSE(rig_.manager().restore_status({"b", "k"}, generation_));
  ASSERT_TRUE(rig_.run(rig_.manager().submit({.name = {"b", "k"}, .generation = generation_, .days = 1})));
  release();
  EXPECT_TRUE(read(**reader, kSize).value_or("") == original());
  rig_.pass(1s);
  ASSERT_TRUE(rig_.manager().restore_status({"b", "k"}, generation_));
  EXPECT_EQ(rig_.evict().evicted, 0U);
  EXPECT_EQ(recalls(), 1U);
}

}  // namespace
}  // namespace reelway::store
