// The rules of docs/architecture.md, part 4, on the file system that forgets: every operation is stopped
// after each of its file calls, the machine crashes, and what is left must be one of the states that the rule
// allows. Then each sync of an operation is made a lie in turn: some crash must show it, or the sync, and
// this test, would be worth nothing.
#include <fcntl.h>
#include <gtest/gtest.h>

#include "testing/posix_machine.h"

namespace reelway::store::posix {
namespace {

constexpr std::uint64_t kSeeds = 12;
struct Scenario {
  std::string name;
  std::function<void(Machine&)> prepare;
  std::function<bool(Machine&)> act;  ///< true: answered with success
  std::function<std::string(Machine&)> look;
  std::vector<std::string> before;           ///< states allowed when it was not answered, besides `after`
  std::string after;                         ///< the state once answered
  std::vector<std::string> also_after = {};  ///< further states that the rule allows then
  std::set<std::uint64_t> idle_syncs =
      {};  ///< syncs whose loss the double cannot show; the reason stands where it is named
};

std::string state_of_key(Machine& machine) { return machine.state("dir/key"); }

bool evict_key(Machine& machine, const std::string& key) {
  const auto archived = machine.archive(key);
  return archived && machine.tier_->evict({"bucket", key}, *archived);
}

std::vector<Scenario> scenarios() {
  const std::string fresh = "new " + kBytes;
  const std::string old = "old " + kOldBytes;
  const auto put_old = [](Machine& machine) { ASSERT_TRUE(machine.put("dir/key", kOldBytes, "old")); };
  const auto put_big_old = [](Machine& machine) {
    ASSERT_TRUE(machine.put("dir/key", kOldBytes, "old", 3000));
  };
  const auto put_new = [](Machine& machine) { return machine.put("dir/key", kBytes, "new").has_value(); };
  const auto put_big_new = [](Machine& machine) {
    return machine.put("dir/key", kBytes, "new", 3000).has_value();
  };
  const auto evict = [](Machine& machine) { return evict_key(machine, "dir/key"); };
  const auto put_evicted = [put_old, evict](Machine& machine) {
    put_old(machine);
    ASSERT_TRUE(evict(machine));
  };
  const auto nothing = [](Machine&) {};
  const auto upload = [](Machine& machine) {
    const auto info = machine.uploads_->create({.name = {"bucket", "dir/key"},
                                                .attributes = {},
                                                .checksum_kind = {},
                                                .checksum_full_object = false});
    ASSERT_TRUE(info);
    for (const std::uint32_t number : {1u, 2u}) {
      auto file = machine.space_->make_temporary();
      ASSERT_TRUE(file && machine.files_.write(file->get(), base::as_bytes(kBytes.substr(0, 4500)), 0));
      ASSERT_TRUE(machine.uploads_->publish_part(
          *file,
          {.name = {"bucket", "dir/key"}, .upload_id = info->upload_id, .part_number = number, .seal = {}},
          {.etag = "p", .checksums = {}}));
    }
  };
  const auto complete = [](Machine& machine) {
    const std::string id = machine.upload_id();
    if (id.empty()) return false;
    const auto listed = machine.uploads_->list_parts({.name = {"bucket", "dir/key"}, .upload_id = id});
    if (!listed) return false;
    const auto completed = machine.uploads_->complete({.name = {"bucket", "dir/key"},
                                                       .upload_id = id,
                                                       .parts = listed->parts,
                                                       .seal = {.etag = "new", .checksums = {}},
                                                       .conditions = {}});
    return completed && *completed;
  };
  // The syncs of a put: bytes and attribute, (the folder made on the way,) the name. Of one with a sidecar:
  // its folder, itself, its name, before those.
  return {
      {.name = "PutNew",
       .prepare = nothing,
       .act = put_new,
       .look = state_of_key,
       .before = {""},
       .after = fresh},
      {.name = "PutNewWithSidecar",
       .prepare = nothing,
       .act = put_big_new,
       .look = state_of_key,
       .before = {""},
       .after = fresh},
      {.name = "PutOver",
       .prepare = put_old,
       .act = put_new,
       .look = state_of_key,
       .before = {old},
       .after = fresh},
      {.name = "PutOverWithSidecars",
       .prepare = put_big_old,
       .act = put_big_new,
       .look = state_of_key,
       .before = {old},
       .after = fresh},
      {.name = "PutOverStub",
       .prepare = put_evicted,
       .act = put_new,
       .look = state_of_key,
       .before = {"evicted old"},
       .after = fresh},
      {.name = "PutOdd",
       .prepare = nothing,
       .act = [](Machine& machine) { return machine.put("odd//key", kBytes, "new").has_value(); },
       .look = [](Machine& machine) { return machine.state("odd//key"); },
       .before = {""},
       .after = fresh},
      {.name = "Remove",
       .prepare = put_old,
       .act =
           [](Machine& machine) { return machine.objects_->remove({"bucket", "dir/key"}, {}).has_value(); },
       .look = state_of_key,
       .before = {old},
       .after = ""},
      {.name = "Complete",
       .prepare = upload,
       .act = complete,
       .look = state_of_key,
       .before = {""},
       .after = "new " + kBytes.substr(0, 4500) + kBytes.substr(0, 4500)},
      // The second sync of an evict is the stub's in evicting/: the exchange carries it in the double, as in
      // a journal.
      {.name = "Abort",
       .prepare = upload,
       .act =
           [](Machine& machine) {
             const auto aborted = machine.uploads_->abort({"bucket", "dir/key"}, machine.upload_id());
             return aborted && *aborted;
           },
       .look = [](Machine& machine) { return machine.upload_id().empty() ? "" : "upload"; },
       .before = {"upload"},
       .after = ""},
      {.name = "Evict",
       .prepare = put_old,
       .act = evict,
       .look = state_of_key,
       .before = {old},
       .after = "evicted old",
       .also_after = {old},
       .idle_syncs = {3}},
      {.name = "EvictWithSidecar",
       .prepare = put_big_old,
       .act = evict,
       .look = state_of_key,
       .before = {old},
       .after = "evicted old",
       .also_after = {old},
       .idle_syncs = {2}},
      {.name = "Recall",
       .prepare = put_evicted,
       .act = [](Machine& machine) { return machine.recall("dir/key", kOldBytes).has_value(); },
       .look = state_of_key,
       .before = {"evicted old"},
       .after = old},
      {.name = "CreateStub",
       .prepare = nothing,
       .act =
           [](Machine& machine) {
             object::ObjectInfo info;
             info.name = {"bucket", "dir/key"};
             info.size = 5;
             info.etag = "taped";
             info.generation = "01HF000000000000000000000G";
             return machine.tier_->create_stub(info).has_value();
           },
       .look = state_of_key,
       .before = {""},
       .after = "evicted taped"},
      {.name = "CreateBucket",
       .prepare = nothing,
       .act =
           [](Machine& machine) {
             return machine.buckets_->create({.name = "second", .created = {}, .owner = "me", .region = {}})
                 .has_value();
           },
       .look =
           [](Machine& machine) {
             const auto info = machine.buckets_->head("second");
             return info ? info->owner : "";
           },
       .before = {""},
       .after = "me"},
  };
}

class CrashTest : public ::testing::TestWithParam<Scenario> {};

bool is_allowed(const Scenario& scenario, const std::string& state, bool answered) {
  if (state == scenario.after || std::ranges::find(scenario.also_after, state) != scenario.also_after.end())
    return true;
  return !answered && std::ranges::find(scenario.before, state) != scenario.before.end();
}

TEST_P(CrashTest, AnyCrashLeavesAnAllowedState) {
  const Scenario& scenario = GetParam();
  bool ended = false;
  for (std::uint64_t calls = 0; !ended; ++calls) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE("power off after call " + std::to_string(calls) + ", seed " + std::to_string(seed));
      Machine machine;
      scenario.prepare(machine);
      machine.rest();
      machine.files_.power_off_after(calls);
      const bool answered = scenario.act(machine);
      ended = machine.files_.call_count() <= calls;
      ASSERT_TRUE(answered || !ended) << "with power to the end it succeeds";
      machine.crash(seed);
      const std::string state = scenario.look(machine);
      ASSERT_TRUE(is_allowed(scenario, state, answered))
          << "answered: " << answered << ", found: " << state.substr(0, 40);
    }
  }
}

TEST_P(CrashTest, AnyFaultLeavesNoTraceAndTheNextTryWorks) {
  const Scenario& scenario = GetParam();
  for (const int error : {EIO, ENOSPC}) {
    bool reached = true;
    for (std::uint64_t call = 0; reached; ++call) {
      SCOPED_TRACE("call " + std::to_string(call) + " fails with " + std::to_string(error));
      Machine machine;
      scenario.prepare(machine);
      machine.rest();
      machine.files_.fail_call(call, error);
      const bool answered = scenario.act(machine);
      reached = machine.files_.call_count() > call;
      machine.files_.reset_plan();
      ASSERT_TRUE(machine.tier_->recover());
      const std::string state = scenario.look(machine);
      ASSERT_TRUE(is_allowed(scenario, state, answered))
          << "answered: " << answered << ", found: " << state.substr(0, 40);
      if (answered || state == scenario.after) continue;
      machine.clock_.advance(std::chrono::seconds{5});
      ASSERT_TRUE(scenario.act(machine)) << "the next try";
      ASSERT_EQ(scenario.look(machine), scenario.after);
    }
  }
}

TEST_P(CrashTest, EverySyncIsNeeded) {
  const Scenario& scenario = GetParam();
  std::uint64_t syncs = 1;
  for (std::uint64_t index = 0; index < syncs; ++index) {
    bool shown = false;
    for (std::uint64_t seed = 0; seed < 40 && !shown; ++seed) {
      Machine machine;
      scenario.prepare(machine);
      machine.rest();
      machine.files_.ignore_sync(index);
      ASSERT_TRUE(scenario.act(machine));
      syncs = machine.files_.sync_count();
      machine.files_.crash(seed);
      machine.files_.reset_plan();
      machine.boot();
      std::ignore = machine.tier_->recover();
      shown = !is_allowed(scenario, scenario.look(machine), true);
    }
    EXPECT_EQ(shown, !scenario.idle_syncs.contains(index)) << "sync " << index << " of " << syncs;
  }
}

INSTANTIATE_TEST_SUITE_P(Posix, CrashTest, ::testing::ValuesIn(scenarios()),
                         [](const auto& info) { return info.param.name; });

TEST(Durability, NoneSyncsNothing) {
  Machine machine(Durability::none);
  machine.files_.reset_plan();
  ASSERT_TRUE(machine.put("dir/key", kBytes, "new"));
  EXPECT_EQ(machine.files_.sync_count(), 0u);
}

TEST(NoSpace, LeavesNothingBehind) {
  for (std::uint64_t room = 0; room < 14'000; room += 500) {
    SCOPED_TRACE(room);
    Machine machine;
    ASSERT_TRUE(machine.put("dir/key", kOldBytes, "old", 3000));
    const std::size_t sidecars = machine.count_entries(
        machine.files_.open(machine.space_->meta(), "bucket", O_RDONLY | O_DIRECTORY, 0)->get());
    machine.files_.limit_bytes(kOldBytes.size() + 4000 + room);
    const auto stored = machine.put("dir/other", kBytes, "new", 3000);
    if (stored) continue;
    EXPECT_EQ(stored.error().code, base::Code::no_space);
    EXPECT_EQ(machine.state("dir/key"), "old " + kOldBytes);
    EXPECT_EQ(machine.state("dir/other"), "");
    EXPECT_EQ(machine.count_entries(machine.space_->tmp()), 0u);
    EXPECT_EQ(machine.count_entries(
                  machine.files_.open(machine.space_->meta(), "bucket", O_RDONLY | O_DIRECTORY, 0)->get()),
              sidecars);
    machine.files_.reset_plan();
    EXPECT_TRUE(machine.put("dir/other", kBytes, "new", 3000));
  }
}

// Rule 6, and rule 3: whatever another process does between any two calls of an evict, its bytes are what is
// found afterwards.
struct Meanwhile {
  std::string name;
  std::function<bool(Machine&)> act;  ///< true: it did what it wanted to
  std::string wanted;                 ///< the state that it made
};

class EvictRace : public ::testing::TestWithParam<Meanwhile> {};

TEST_P(EvictRace, NobodysBytesAreLost) {
  const Meanwhile& meanwhile = GetParam();
  bool ran = true;
  for (std::uint64_t call = 0; ran; ++call) {
    SCOPED_TRACE("before call " + std::to_string(call));
    Machine machine;
    ASSERT_TRUE(machine.put("dir/key", kOldBytes, "old"));
    machine.rest();
    const auto archived = machine.archive("dir/key");
    ASSERT_TRUE(archived);
    machine.files_.reset_plan();
    bool done = false;
    ran = false;
    machine.files_.before_call(call, [&] {
      ran = true;
      machine.clock_.advance(std::chrono::milliseconds{5});
      done = meanwhile.act(machine);
    });
    const auto evicted = machine.tier_->evict({"bucket", "dir/key"}, *archived);
    machine.files_.reset_plan();
    const auto conflicts = machine.tier_->recover();
    ASSERT_TRUE(conflicts && conflicts->empty());
    const auto found = machine.objects_->find({"bucket", "dir/key"});
    const std::string state = machine.state("dir/key");
    if (done) {
      const std::string content = state.substr(std::min(state.size(), state.find(' ') + 1));
      ASSERT_TRUE(content == meanwhile.wanted || (!found && meanwhile.wanted.empty())) << state.substr(0, 60);
    } else {
      ASSERT_EQ(state, evicted ? "evicted old" : "old " + kOldBytes);
    }
  }
}

const std::string kPosixBytes(5000, 'p');
INSTANTIATE_TEST_SUITE_P(
    Posix, EvictRace,
    ::testing::Values(Meanwhile{"Writes",
                                [](Machine& machine) {
                                  return machine.posix_write("bucket/dir/key", kPosixBytes).has_value();
                                },
                                kPosixBytes},
                      Meanwhile{"Replaces",
                                [](Machine& machine) {
                                  if (!machine.posix_write("bucket/dir/.new", kPosixBytes)) return false;
                                  auto folder = machine.files_.open(machine.space_->root(), "bucket/dir",
                                                                    O_RDONLY | O_DIRECTORY, 0);
                                  return folder && machine.files_
                                                       .rename(folder->get(), ".new", folder->get(), "key",
                                                               base::RenameMode::replace)
                                                       .has_value();
                                },
                                kPosixBytes},
                      Meanwhile{"Deletes",
                                [](Machine& machine) {
                                  auto folder = machine.files_.open(machine.space_->root(), "bucket/dir",
                                                                    O_RDONLY | O_DIRECTORY, 0);
                                  return folder && machine.files_.unlink(folder->get(), "key").has_value();
                                },
                                ""}),
    [](const auto& info) { return info.param.name; });

TEST(RecallRace, AFileInTheStubsPlaceIsNeverOverwritten) {
  bool ran = true;
  for (std::uint64_t call = 0; ran; ++call) {
    SCOPED_TRACE("before call " + std::to_string(call));
    Machine machine;
    ASSERT_TRUE(machine.put("dir/key", kOldBytes, "old"));
    machine.rest();
    ASSERT_TRUE(evict_key(machine, "dir/key"));
    machine.files_.reset_plan();
    bool replaced = false;
    ran = false;
    machine.files_.before_call(call, [&] {
      ran = true;
      auto folder = machine.files_.open(machine.space_->root(), "bucket/dir", O_RDONLY | O_DIRECTORY, 0);
      replaced =
          folder && machine.posix_write("bucket/dir/.new", kPosixBytes) &&
          machine.files_.rename(folder->get(), ".new", folder->get(), "key", base::RenameMode::replace);
    });
    const auto recalled = machine.recall("dir/key", kOldBytes);
    machine.files_.reset_plan();
    ASSERT_TRUE(machine.tier_->recover());
    const std::string state = machine.state("dir/key");
    ASSERT_TRUE(replaced ? state.ends_with(kPosixBytes) : state == "old " + kOldBytes) << state.substr(0, 40);
    if (!replaced) ASSERT_TRUE(recalled);
  }
}

}  // namespace
}  // namespace reelway::store::posix
