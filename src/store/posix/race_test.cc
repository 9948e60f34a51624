// What others do between any two file calls of a read, a copy, a complete or a removal, and descriptors that
// run out at any of them: never a false 404, never bytes with another version's metadata, never an object
// that is lost after it was acknowledged.
#include <atomic>
#include <filesystem>
#include <latch>
#include <set>
#include <thread>

#include "store/posix/posix_store.h"
#include "testing/posix_machine.h"
#include "testing/run_task.h"
#include "testing/sources.h"

namespace reelway::store::posix {
namespace {

namespace fs = std::filesystem;
using testing::run_task;
using testing::seal_with;

constexpr std::size_t kBigUser = 3000;  // too much for the attribute: a sidecar

struct Change {
  std::string name;
  std::string key;
  std::function<void(Machine&)> prepare;
  std::function<void(Machine&)> act;
  std::set<std::string> states;  ///< allowed, as Machine::state tells them
};

bool evict_now(Machine& machine, const std::string& key) {
  machine.clock_.advance(std::chrono::seconds{5});
  const auto archived = machine.archive(key);
  return archived && machine.tier_->evict({"bucket", key}, *archived);
}

std::vector<Change> changes() {
  std::vector<Change> all;
  for (const std::string key : {"dir/key", "odd//key"}) {
    const std::string kind = key == "dir/key" ? "Plain" : "Odd";
    const auto put_old = [key](Machine& machine) {
      ASSERT_TRUE(machine.put(key, kOldBytes, "old", kBigUser));
    };
    const auto put_evicted = [key, put_old](Machine& machine) {
      put_old(machine);
      ASSERT_TRUE(evict_now(machine, key));
    };
    const std::string old = "old " + kOldBytes;
    all.push_back({.name = kind + "Overwritten",
                   .key = key,
                   .prepare = put_old,
                   .act = [key](Machine& machine) { ASSERT_TRUE(machine.put(key, kBytes, "new", kBigUser)); },
                   .states = {old, "new " + kBytes}});
    all.push_back({.name = kind + "Evicted",
                   .key = key,
                   .prepare = put_old,
                   // Who has it open is in the way of the lease: then it stays.
                   .act = [key](Machine& machine) { std::ignore = evict_now(machine, key); },
                   .states = {old, "evicted old"}});
    all.push_back({.name = kind + "Recalled",
                   .key = key,
                   .prepare = put_evicted,
                   .act = [key](Machine& machine) { ASSERT_TRUE(machine.recall(key, kOldBytes)); },
                   .states = {old, "evicted old"}});
    all.push_back({.name = kind + "RecalledToASmallAttribute",
                   .key = key,
                   .prepare =
                       [key](Machine& machine) {
                         ASSERT_TRUE(machine.put(key, kOldBytes, "old"));
                         ASSERT_TRUE(evict_now(machine, key));
                       },
                   .act = [key](Machine& machine) { ASSERT_TRUE(machine.recall(key, kOldBytes)); },
                   .states = {old, "evicted old"}});
    all.push_back({.name = kind + "StubOverwritten",
                   .key = key,
                   .prepare = put_evicted,
                   .act = [key](Machine& machine) { ASSERT_TRUE(machine.put(key, kBytes, "new", kBigUser)); },
                   .states = {"evicted old", "new " + kBytes}});
  }
  return all;
}

base::Result<object::ListPage> list_all(Machine& machine) {
  return list_page(*machine.space_, *machine.cache_,
                   {.bucket = "bucket", .prefix = {}, .delimiter = {}, .start_after = {}});
}

class ReadRace : public ::testing::TestWithParam<Change> {};

/// As Machine::state, but busy (a lease in the way) is what a reader waits out.
std::string patient_state(Machine& machine, const std::string& key) {
  auto found = machine.objects_->find({"bucket", key});
  while (!found && found.error().code == base::Code::busy) found = machine.objects_->find({"bucket", key});
  if (!found) return to_string(found.error());
  if (!found->file) return "evicted " + found->info.etag;
  std::string bytes(found->info.size, '\0');
  const auto count = machine.files_.read(found->file.get(), std::as_writable_bytes(std::span(bytes)), 0);
  return found->info.etag + " " + bytes.substr(0, count.value_or(0));
}

/// Looks at a machine on which the change happens before the look's first call, before its second, and so on.
void look_at_every_call(const Change& change, const std::function<void(Machine&)>& look) {
  bool ran = true;
  for (std::uint64_t call = 0; ran && !::testing::Test::HasFatalFailure(); ++call) {
    SCOPED_TRACE("before call " + std::to_string(call));
    Machine machine;
    change.prepare(machine);
    machine.rest();
    ran = false;
    machine.files_.before_call(call, [&] {
      ran = true;
      change.act(machine);
    });
    look(machine);
  }
}

TEST_P(ReadRace, AReadSeesOneVersionWhole) {
  look_at_every_call(GetParam(), [](Machine& machine) {
    const std::string state = patient_state(machine, GetParam().key);
    ASSERT_TRUE(GetParam().states.contains(state)) << state.substr(0, 60);
  });
}

TEST_P(ReadRace, AListShowsTheKey) {
  look_at_every_call(GetParam(), [](Machine& machine) {
    const auto page = list_all(machine);
    ASSERT_TRUE(page) << to_string(page.error());
    ASSERT_EQ(page->objects.size(), 1u);
    ASSERT_TRUE(page->objects[0].etag == "old" || page->objects[0].etag == "new") << page->objects[0].etag;
  });
}

TEST_P(ReadRace, NoDescriptorsLeftIsAnError) {
  const Change& change = GetParam();
  for (const int error : {EMFILE, ENFILE}) {
    bool reached = true;
    for (std::uint64_t call = 0; reached; ++call) {
      SCOPED_TRACE("call " + std::to_string(call) + " fails with " + std::to_string(error));
      Machine machine;
      change.prepare(machine);
      machine.rest();
      machine.files_.fail_call(call, error);
      const auto found = machine.objects_->find({"bucket", change.key});
      const auto page = list_all(machine);
      reached = machine.files_.call_count() > call;
      if (found) ASSERT_EQ(found->info.etag, "old");
      if (!found) ASSERT_EQ(found.error().code, base::Code::unavailable) << to_string(found.error());
      if (page) ASSERT_EQ(page->objects.size(), 1u);
      if (page) ASSERT_EQ(page->objects[0].etag, "old");
      if (!page) ASSERT_EQ(page.error().code, base::Code::unavailable) << to_string(page.error());
      machine.files_.reset_plan();
      const auto after = list_all(machine);
      ASSERT_TRUE(after && after->objects.size() == 1u) << "nothing wrong was remembered";
    }
  }
}

TEST_P(ReadRace, NoDescriptorsLeftLosesNothingToAWriter) {
  const Change& change = GetParam();
  bool reached = true;
  for (std::uint64_t call = 0; reached; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    Machine machine;
    change.prepare(machine);
    machine.rest();
    const std::string before = patient_state(machine, change.key);
    machine.files_.reset_plan();
    machine.files_.fail_call(call, EMFILE);
    const auto archived = machine.archive(change.key);
    const auto bucket_removed = machine.buckets_->remove("bucket");
    reached = machine.files_.call_count() > call;
    machine.files_.reset_plan();
    ASSERT_FALSE(bucket_removed);
    ASSERT_EQ(patient_state(machine, change.key), before);
  }
}

INSTANTIATE_TEST_SUITE_P(Posix, ReadRace, ::testing::ValuesIn(changes()),
                         [](const auto& info) { return info.param.name; });

base::Result<void> create_bucket(Machine& machine, std::string name) {
  return machine.buckets_->create({.name = std::move(name), .created = {}, .owner = "me", .region = {}});
}

TEST(BucketRace, APutIsInABucketOrRefused) {
  for (const std::string key : {"key", "dir/key", "odd//key"}) {
    for (const std::size_t user_bytes : {std::size_t{0}, kBigUser}) {
      bool ran = true;
      for (std::uint64_t call = 0; ran; ++call) {
        SCOPED_TRACE(key + " with " + std::to_string(user_bytes) + ", removed before call " +
                     std::to_string(call));
        Machine machine;
        machine.impatient();
        machine.files_.reset_plan();
        ran = false;
        bool removed = false;
        machine.files_.before_call(call, [&] {
          ran = true;
          removed = machine.buckets_->remove("bucket").has_value();
          // Whoever makes it anew has an empty one.
          if (removed) ASSERT_TRUE(create_bucket(machine, "bucket"));
        });
        const auto stored = machine.put(key, kBytes, "new", user_bytes);
        machine.files_.reset_plan();
        const std::string state = machine.state(key);
        ASSERT_EQ(state, stored ? "new " + kBytes : "") << removed;
      }
    }
  }
}

TEST(BucketRace, ARemovalLosesNoPut) {
  for (const std::string key : {"key", "dir/key", "odd//key"}) {
    bool ran = true;
    for (std::uint64_t call = 0; ran; ++call) {
      SCOPED_TRACE(key + ", put before call " + std::to_string(call));
      Machine machine;
      machine.impatient();
      machine.files_.reset_plan();
      ran = false;
      bool stored = false;
      machine.files_.before_call(call, [&] {
        ran = true;
        stored = machine.put(key, kBytes, "new", kBigUser).has_value();
      });
      const auto removed = machine.buckets_->remove("bucket");
      machine.files_.reset_plan();
      if (removed) ASSERT_TRUE(object::is_bucket_not_found(machine.objects_->find({"bucket", key}).error()));
      ASSERT_FALSE(stored && removed);
      if (stored) ASSERT_EQ(machine.state(key), "new " + kBytes);
    }
  }
}

TEST(BucketRace, AFailedCreateLeavesNoRecord) {
  bool reached = true;
  for (std::uint64_t call = 0; reached; ++call) {
    SCOPED_TRACE(call);
    Machine machine;
    machine.files_.reset_plan();
    machine.files_.fail_call(call, ENOSPC);
    const auto created = create_bucket(machine, "second");
    reached = machine.files_.call_count() > call;
    machine.files_.reset_plan();
    if (created) continue;
    ASSERT_TRUE(machine.files_.make_folder(machine.space_->root(), "second", 0755));
    const auto made_by_hand = machine.buckets_->head("second");
    ASSERT_TRUE(made_by_hand);
    ASSERT_EQ(made_by_hand->owner, "");
  }
}

/// The store itself on the double, with a pool of few threads.
class StoreRace : public ::testing::Test {
 protected:
  StoreRace() {
    auto store = PosixStore::create(
        {.root = "/", .settle = {}, .pool = &pool_, .files = &files_, .clock = &clock_, .rng = &rng_});
    if (!store) throw std::runtime_error(to_string(store.error()));
    store_ = std::move(*store);
    if (!run_task(store_->create_bucket({.name = "bucket", .created = {}, .owner = {}, .region = {}})))
      throw std::runtime_error("no bucket");
    auto root = files_.open_root("/");
    if (!root) throw std::runtime_error("no root");
    root_ = std::move(*root);
  }
  static object::ObjectName name(std::string key) { return {"bucket", std::move(key)}; }
  base::Result<object::ObjectInfo> put(std::string key, std::string_view bytes) {
    object::MemorySource source(base::as_bytes(bytes));
    return run_task(store_->put(
        {.name = name(std::move(key)), .attributes = {}, .conditions = {}, .seal = seal_with("tag")},
        source));
  }
  base::Result<std::string> get(std::string key) {
    TRY(const auto reader,
        run_task(
            store_->get({.name = name(std::move(key)), .conditions = {}, .range = {}, .part_number = {}})));
    std::string bytes(reader->range().length, '\0');
    TRY(const std::size_t count,
        run_task(object::read_full(*reader, std::as_writable_bytes(std::span(bytes)))));
    return bytes.substr(0, count);
  }
  base::Result<object::ObjectInfo> copy(std::string from, std::string to) {
    return run_task(store_->copy({.source = name(std::move(from)),
                                  .source_conditions = {},
                                  .target = name(std::move(to)),
                                  .target_conditions = {},
                                  .replace_attributes = {},
                                  .storage_class = {}}));
  }
  void posix_write(const std::string& path, const std::string& bytes, std::uint64_t size) {
    clock_.advance(std::chrono::seconds{1});
    auto file = files_.open(root_.get(), path, O_WRONLY | O_CREAT, 0644);
    ASSERT_TRUE(file && files_.write(file->get(), base::as_bytes(bytes), 0) &&
                files_.truncate(file->get(), size));
  }

  base::ManualClock clock_;
  base::SeededRng rng_{1};
  testing::ForgetfulFiles files_{clock_};
  async::BlockingPool pool_{"files", 2};
  std::unique_ptr<PosixStore> store_;
  base::File root_;
};

TEST_F(StoreRace, ACopyNeverMixes) {
  const std::string before(30'000, 'a');
  for (const std::size_t size : {before.size(), before.size() / 2, before.size() * 2}) {
    const std::string after(size, 'b');
    bool ran = true;
    for (std::uint64_t call = 0; ran; ++call) {
      SCOPED_TRACE("to " + std::to_string(size) + " bytes before call " + std::to_string(call));
      ASSERT_TRUE(put("source", before));
      files_.reset_plan();
      ran = false;
      files_.before_call(call, [&] {
        ran = true;
        posix_write("bucket/source", after, after.size());
      });
      const auto copied = copy("source", "target");
      files_.reset_plan();
      ASSERT_TRUE(copied) << to_string(copied.error());
      const auto bytes = get("target");
      ASSERT_TRUE(bytes);
      ASSERT_TRUE(*bytes == before || *bytes == after);
      ASSERT_EQ(copied->etag == "tag", *bytes == before) << "the ETag is that of the bytes";
    }
  }
}

TEST_F(StoreRace, AReadThatWasOvertakenEndsShort) {
  ASSERT_TRUE(put("k", std::string(300'000, 'a')));
  for (const std::uint64_t size : {300'000u, 100'000u}) {
    const auto reader =
        run_task(store_->get({.name = name("k"), .conditions = {}, .range = {}, .part_number = {}}));
    ASSERT_TRUE(reader);
    std::string bytes(300'000, '\0');
    const base::MutableBytes all = std::as_writable_bytes(std::span(bytes));
    ASSERT_TRUE(run_task((*reader)->read(all.first(1000))));
    posix_write("bucket/k", std::string(size, 'b'), size);
    EXPECT_FALSE(run_task(object::read_full(**reader, all.subspan(1000)))) << size;
  }
}

TEST_F(StoreRace, CompletesOfOneUploadWaitWithoutThreads) {
  const auto upload = run_task(store_->multipart()->create_upload(
      {.name = name("big"), .attributes = {}, .checksum_kind = {}, .checksum_full_object = false}));
  ASSERT_TRUE(upload);
  object::MemorySource source(base::as_bytes("part"));
  const auto part = run_task(store_->multipart()->put_part(
      {.name = name("big"), .upload_id = upload->upload_id, .part_number = 1, .seal = seal_with("p")},
      source));
  ASSERT_TRUE(part) << to_string(part.error());
  // Another gateway's complete, which takes its time.
  Options options{.root = "/", .files = &files_, .clock = &clock_, .rng = &rng_, .log = &base::null_log()};
  const auto other = Space::create(options);
  ASSERT_TRUE(other);
  KeyLocks locks(**other);
  auto held = std::optional(locks.take("uploads:bucket", upload->upload_id));
  ASSERT_TRUE(held->has_value());

  std::atomic<int> done = 0;
  std::atomic<int> gone = 0;
  std::latch asked(40);
  std::vector<std::jthread> clients;
  for (int i = 0; i < 40; ++i) {
    clients.emplace_back([&] {
      asked.count_down();
      const auto completed =
          run_task(store_->multipart()->complete_upload({.name = name("big"),
                                                         .upload_id = upload->upload_id,
                                                         .parts = {*part},
                                                         .seal = {.etag = "whole-1", .checksums = {}},
                                                         .conditions = {}}));
      done += completed.has_value() ? 1 : 0;
      gone += !completed && object::is_upload_not_found(completed.error()) ? 1 : 0;
    });
  }
  asked.wait();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(put("other" + std::to_string(i), "bytes"));
  EXPECT_EQ(done + gone, 0);
  held.reset();
  clients.clear();
  EXPECT_EQ(done, 1);
  EXPECT_EQ(gone, 39);
  EXPECT_EQ(get("big").value_or(""), "part");
}

}  // namespace
}  // namespace reelway::store::posix
