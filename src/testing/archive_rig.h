#pragma once
// A whole archive on a virtual clock, one thread, in a fixed order of events: memory store, virtual library,
// manager. Everything below the manager passes a CrashSwitch, so that a test can let the power go before any
// step: from then on nothing reaches tape or disk, and the catalog is as it was.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "archive/manager.h"
#include "async/timer.h"
#include "base/buffer_pool.h"
#include "base/checksum.h"
#include "base/rng.h"
#include "object/recall_feed.h"
#include "store/memory/memory_store.h"
#include "tape/library.h"
#include "vtl/library.h"

namespace reelway::testing {

/// Counts steps (SCSI commands and calls of the store's tier); at the chosen one the power goes.
struct CrashSwitch {
  std::uint64_t steps = 0;
  std::uint64_t crash_at = ~std::uint64_t{0};
  bool dead = false;
  std::function<void()> at_crash;

  bool step() {
    if (!dead && ++steps >= crash_at) {
      dead = true;
      if (at_crash) at_crash();
    }
    return !dead;
  }
  static base::Error error() {
    return base::fail(base::Code::unavailable, "the power is gone", base::Scope::node);
  }
};

class SwitchedDevice final : public scsi::Device {
 public:
  SwitchedDevice(scsi::Device& below, CrashSwitch& crash) : below_(below), crash_(crash) {}
  std::string name() const override { return below_.name(); }
  async::Task<scsi::Reply> execute(scsi::Command command) override {
    if (!crash_.step()) co_return CrashSwitch::error();
    co_return co_await below_.execute(command);
  }

 private:
  scsi::Device& below_;
  CrashSwitch& crash_;
};

class SwitchedTier final : public object::Tiered {
 public:
  SwitchedTier(object::Tiered& below, CrashSwitch& crash) : below_(below), crash_(crash) {}
  async::Task<std::vector<object::TierEntry>> scan(std::string bucket, std::string prefix, std::string after,
                                                   std::size_t max) override {
    if (!crash_.step()) co_return CrashSwitch::error();
    CO_TRY(auto entries, co_await below_.scan(std::move(bucket), std::move(prefix), std::move(after), max));
    for (object::TierEntry& entry : entries) {
      if (born_by_posix.contains(entry.info.name.key)) entry.info.generation.clear();
    }
    co_return entries;
  }
  async::Task<std::unique_ptr<object::ArchiveReader>> open_for_archive(object::ObjectName name) override {
    if (!crash_.step()) co_return CrashSwitch::error();
    ++opened_for_archive;
    const auto hook = std::exchange(before_open, nullptr);
    if (hook) hook();
    co_return co_await below_.open_for_archive(std::move(name));
  }
  async::Task<object::Identity> evict(object::ObjectName name, object::Identity archived) override {
    if (!crash_.step()) co_return CrashSwitch::error();
    auto evicted = co_await below_.evict(std::move(name), std::move(archived));
    // The answer may be what gets lost.
    if (!crash_.step()) co_return CrashSwitch::error();
    co_return evicted;
  }
  async::Task<std::unique_ptr<object::RecallWriter>> begin_recall(object::ObjectName name,
                                                                  std::string generation) override {
    if (!crash_.step()) co_return CrashSwitch::error();
    ++recalls_begun;
    CO_TRY(auto writer, co_await below_.begin_recall(std::move(name), std::move(generation)));
    co_return std::make_unique<Writer>(std::move(writer), *this);
  }
  async::Task<void> create_stub(object::ObjectInfo info) override {
    if (!crash_.step()) co_return CrashSwitch::error();
    co_return co_await below_.create_stub(std::move(info));
  }
  async::Task<std::vector<object::Conflict>> recover() override { return below_.recover(); }

  std::size_t opened_for_archive = 0;
  std::size_t recalls_begun = 0;
  std::function<void()> before_open;  ///< once
  /// Hold up a recall before the n-th write (from 0) and before its commit.
  std::function<async::Task<void>(std::size_t)> before_write;
  std::function<async::Task<void>()> before_commit;
  std::set<std::string> born_by_posix;  ///< keys whose files have no generation

 private:
  struct Writer final : object::RecallWriter {
    Writer(std::unique_ptr<object::RecallWriter> to, SwitchedTier& of) : below(std::move(to)), tier(of) {}
    std::shared_ptr<object::LandingFile> file() override { return below->file(); }
    async::Task<void> write(base::ByteView bytes) override {
      if (!tier.crash_.step()) co_return CrashSwitch::error();
      if (tier.before_write) CO_TRY_VOID(co_await tier.before_write(writes));
      ++writes;
      co_return co_await below->write(bytes);
    }
    async::Task<object::Identity> commit(const object::Checksum& expected) override {
      if (!tier.crash_.step()) co_return CrashSwitch::error();
      if (tier.before_commit) CO_TRY_VOID(co_await tier.before_commit());
      auto identity = co_await below->commit(expected);
      if (!tier.crash_.step()) co_return CrashSwitch::error();
      co_return identity;
    }
    std::unique_ptr<object::RecallWriter> below;
    SwitchedTier& tier;
    std::size_t writes = 0;
  };
  object::Tiered& below_;
  CrashSwitch& crash_;
};

/// The store with its tier switched.
class SwitchedStore final : public object::Store {
 public:
  SwitchedStore(object::Store& below, CrashSwitch& crash) : below_(below), tier_(*below.tiered(), crash) {}
  async::Task<void> create_bucket(object::BucketInfo bucket) override {
    return below_.create_bucket(std::move(bucket));
  }
  async::Task<object::BucketInfo> head_bucket(std::string bucket) override {
    return below_.head_bucket(std::move(bucket));
  }
  async::Task<void> delete_bucket(std::string bucket) override {
    return below_.delete_bucket(std::move(bucket));
  }
  async::Task<std::vector<object::BucketInfo>> list_buckets() override { return below_.list_buckets(); }
  async::Task<object::ObjectInfo> head(object::HeadRequest request) override {
    auto info = co_await below_.head(std::move(request));
    if (const auto act = std::exchange(after_head, nullptr)) CO_TRY_VOID(co_await act());
    co_return info;
  }
  async::Task<std::unique_ptr<object::Reader>> get(object::GetRequest request) override {
    return below_.get(std::move(request));
  }
  async::Task<object::ObjectInfo> put(object::PutRequest request, object::ByteSource& source) override {
    return below_.put(std::move(request), source);
  }
  async::Task<object::ObjectInfo> copy(object::CopyRequest request) override {
    return below_.copy(std::move(request));
  }
  async::Task<bool> remove(object::RemoveRequest request) override {
    return below_.remove(std::move(request));
  }
  async::Task<object::ListPage> list(object::ListRequest request) override {
    return below_.list(std::move(request));
  }
  object::Multipart* multipart() override { return below_.multipart(); }
  object::Tiered* tiered() override { return &tier_; }
  SwitchedTier& tier() { return tier_; }

  std::function<async::Task<void>()> after_head;  ///< once

 private:
  object::Store& below_;
  SwitchedTier tier_;
};

/// Collects what the archive reports.
struct EventList final : object::EventSink {
  void emit(object::Event event) override { events.push_back(std::move(event)); }
  std::size_t count(std::string_view type) const {
    return static_cast<std::size_t>(std::count_if(
        events.begin(), events.end(), [&](const object::Event& event) { return event.type == type; }));
  }
  std::vector<object::Event> events;
};

class ArchiveRig {
 public:
  explicit ArchiveRig(std::uint32_t drives = 2, std::uint64_t seed = 1)
      : rng_(seed),
        timer_(clock_),
        memory_owner_(store::memory::make_memory_store({.clock = &clock_, .rng = &rng_})),
        memory_(*memory_owner_) {
    std::string name = (std::filesystem::temp_directory_path() / "archive_rig_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    vtl_options_.directory = folder_ / "library";
    vtl_options_.drives = drives;
    vtl_options_.cartridges = 6;
    vtl_options_.capacity_scale = 1e-4;
    vtl_options_.inline_io = true;
    vtl_options_.sync = false;
    state_ = folder_ / "state";
    options_.bundle_bytes = 8 << 20;
    options_.tape_block_bytes = 64 << 10;
    base::BufferPoolOptions buffers;
    buffers.chunk_bytes = 1 << 20;
    buffers.drives_bytes = 32 << 20;
    buffers.planes_bytes = 1 << 20;
    buffers.http_bytes = 1 << 20;
    buffers_ = base::BufferPool::create(buffers).value();
    open_library();
    const auto barcodes = vtl_->barcodes();
    options_.pools = {{"one", {barcodes[0], barcodes[1], barcodes[2]}},
                      {"two", {barcodes[3], barcodes[4], barcodes[5]}}};
    object::BucketInfo bucket;
    bucket.name = "b";
    expect_ok(run(memory_.create_bucket(bucket)));
  }
  ~ArchiveRig() {
    stop();
    close_library();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  ArchiveRig(const ArchiveRig&) = delete;
  ArchiveRig& operator=(const ArchiveRig&) = delete;

  // ---- life
  void start() {
    store_ = std::make_unique<SwitchedStore>(memory_, crash_);
    archive::Environment environment{.executor = context_.get_executor(),
                                     .store = *store_,
                                     .library = *library_,
                                     .timer = timer_,
                                     .buffers = *buffers_,
                                     .rng = rng_,
                                     .events = &events_};
    options_.state_folder = state_;
    auto created = archive::Manager::create(environment, options_);
    ASSERT_TRUE(created) << to_string(created.error());
    manager_ = std::move(*created);
    expect_ok(run(manager_->start()));
  }
  void stop() {
    if (!manager_) return;
    (void)run(manager_->stop());
    manager_.reset();
  }
  /// From the n-th step on (counted from now) nothing works; the catalog stays as it was at that moment.
  void crash_after(std::uint64_t steps) {
    crash_.crash_at = crash_.steps + steps;
    crash_.at_crash = [this] {
      saved_ = folder_ / ("saved" + std::to_string(++saves_));
      std::filesystem::copy(state_, saved_);
    };
  }
  /// The process is gone, the machine comes back: what the tapes had not synced is partly lost.
  void restart_after_crash(std::uint64_t seed) {
    if (!crash_.dead) {
      crash_.crash_at = 0;
      crash_.step();
    }
    stop();
    expect_ok(vtl_->power_cut(seed));
    close_library();
    state_ = saved_;
    crash_ = {};
    open_library();
    start();
  }
  void delete_catalog() {
    stop();
    std::filesystem::remove_all(state_);
  }

  // ---- doing
  template <class T>
  using Outcome = std::shared_ptr<std::optional<base::Result<T>>>;
  /// Begins a task, which goes on whenever something runs.
  template <class T>
  Outcome<T> begin(async::Task<T> task) {
    auto outcome = std::make_shared<std::optional<base::Result<T>>>();
    boost::asio::co_spawn(context_, std::move(task),
                          [outcome](std::exception_ptr failure, base::Result<T> result) {
                            if (failure) std::rethrow_exception(failure);
                            outcome->emplace(std::move(result));
                          });
    return outcome;
  }
  /// Runs a task and everything else until it ends; time passes only when nothing else can happen.
  template <class T>
  base::Result<T> run(async::Task<T> task) {
    return end(begin(std::move(task)));
  }
  template <class T>
  base::Result<T> end(Outcome<T> outcome) {
    std::size_t turns = 0;
    while (!*outcome) {
      context_.restart();
      if (context_.poll() > 0) continue;
      if (*outcome) break;
      if (!timer_.advance_to_next() || ++turns > 5'000'000) {
        ADD_FAILURE() << "everything waits for ever";
        std::abort();
      }
    }
    return std::move(**outcome);
  }
  void pass(base::Duration time) { expect_ok(run(timer_.sleep_for(time))); }
  static void expect_ok(const base::Result<void>& result) {
    EXPECT_TRUE(result) << (result ? "" : to_string(result.error()));
  }

  void set_policy(std::vector<std::string> pools = {"one", "two"}, std::uint64_t bundle_below = 64 << 10,
                  std::string verify = "read-back") {
    archive::Policy policy;
    policy.bucket = "b";
    policy.pools = std::move(pools);
    policy.bundle_below_bytes = bundle_below;
    policy.verify = std::move(verify);
    expect_ok(run(manager_->set_policy(policy)));
  }

  object::ObjectInfo put(const std::string& key, const std::string& bytes) {
    object::PutRequest request;
    request.name = {"b", key};
    request.seal = [] { return base::Result<object::Seal>(object::Seal{.etag = "e", .checksums = {}}); };
    object::MemorySource source(base::as_bytes(bytes));
    auto info = run(memory_.put(std::move(request), source));
    EXPECT_TRUE(info) << (info ? "" : to_string(info.error()));
    content_[key] = bytes;
    pass(std::chrono::seconds{3});  // what changed a moment ago is not archived
    if (manager_) manager_->notify_stored(*info);
    return *info;
  }
  void remove(const std::string& key) {
    const auto before = info(key);
    object::RemoveRequest request;
    request.name = {"b", key};
    EXPECT_TRUE(run(memory_.remove(request)));
    content_.erase(key);
    manager_->notify_removed({"b", key}, before.generation);
  }
  object::ObjectInfo info(const std::string& key) {
    auto head = run(memory_.head({.name = {"b", key}, .conditions = {}}));
    EXPECT_TRUE(head) << key << ": " << (head ? "" : to_string(head.error()));
    return head ? *head : object::ObjectInfo{};
  }
  bool is_evicted(const std::string& key) { return info(key).residency == object::Residency::evicted; }
  base::Result<std::string> get(const std::string& key) {
    object::GetRequest request;
    request.name = {"b", key};
    TRY(const auto reader, run(memory_.get(request)));
    base::Bytes bytes(static_cast<std::size_t>(reader->range().length));
    if (!bytes.empty()) TRY_VOID(run(object::read_full(*reader, bytes)));
    return std::string(base::as_text(bytes));
  }
  /// Random but repeatable bytes.
  std::string bytes(std::size_t size) {
    std::string text(size, '\0');
    rng_.fill(std::as_writable_bytes(std::span(text.data(), text.size())));
    return text;
  }
  archive::StatusView archive_now() {
    auto done = run(manager_->archive_now("b", ""));
    EXPECT_TRUE(done) << (done ? "" : to_string(done.error()));
    return done ? *done : archive::StatusView{};
  }
  archive::EvictOutcome evict(const std::string& prefix = "") {
    auto done = run(manager_->evict("b", prefix));
    EXPECT_TRUE(done) << (done ? "" : to_string(done.error()));
    return done ? *done : archive::EvictOutcome{};
  }
  archive::ObjectView why(const std::string& key) { return run(manager_->why({"b", key})).value(); }
  /// Asks for everything back and waits for it.
  void recall_all(bool must_work = true) {
    const auto queued = run(manager_->recall("b", "", {}, 1));
    EXPECT_TRUE(queued || !must_work);
    for (const auto& [key, bytes] : content_) {
      const auto ended =
          run(manager_->wait({"b", key}, info(key).generation,
                             must_work ? base::Duration{std::chrono::hours{2}} : std::chrono::seconds{30}));
      EXPECT_TRUE(ended || !must_work)
          << key << ": " << (ended ? "" : to_string(ended.error())) << "; " << last_error();
    }
  }
  std::string last_error() {
    const auto view = run(manager_->status_view());
    return view && !view->last_errors.empty() ? view->last_errors.front() : std::string{};
  }
  void expect_content() {
    for (const auto& [key, bytes] : content_) {
      const auto got = get(key);
      ASSERT_TRUE(got) << key << ": " << to_string(got.error());
      EXPECT_TRUE(*got == bytes) << key << " has other bytes";
    }
  }
  const std::map<std::string, std::string>& content() const { return content_; }

  archive::Manager& manager() { return *manager_; }
  archive::Options& options() { return options_; }
  vtl::Library& vtl() { return *vtl_; }
  SwitchedStore& store() { return *store_; }
  object::Store& disk() { return memory_; }
  CrashSwitch& crash() { return crash_; }
  EventList& events() { return events_; }
  base::BufferPool& buffers() { return *buffers_; }
  async::VirtualTimer& timer() { return timer_; }
  base::Rng& rng() { return rng_; }
  std::filesystem::path state() const { return state_; }
  void close_library() {
    library_.reset();
    drives_.clear();
    changer_.reset();
    devices_.clear();
    vtl_.reset();
  }
  void open_library() {
    auto opened = vtl::Library::open(vtl_options_);
    ASSERT_TRUE(opened) << to_string(opened.error());
    vtl_ = std::move(*opened);
    devices_.push_back(std::make_unique<SwitchedDevice>(vtl_->changer(), crash_));
    changer_ = std::make_unique<tape::Changer>(*devices_.back());
    std::vector<tape::Drive*> drives;
    for (std::uint32_t i = 0; i < vtl_->drive_count(); ++i) {
      devices_.push_back(std::make_unique<SwitchedDevice>(vtl_->drive(i), crash_));
      drives_.push_back(std::make_unique<tape::Drive>(*devices_.back(), timer_));
      drives.push_back(drives_.back().get());
    }
    library_ = std::make_unique<tape::Library>(*changer_, drives);
  }

 private:
  boost::asio::io_context context_;
  base::ManualClock clock_;
  base::SeededRng rng_;
  async::VirtualTimer timer_;
  std::unique_ptr<object::Store> memory_owner_;
  object::Store& memory_;
  std::filesystem::path folder_;
  std::filesystem::path state_;
  std::filesystem::path saved_;
  int saves_ = 0;
  vtl::Options vtl_options_;
  archive::Options options_;
  CrashSwitch crash_;
  EventList events_;
  std::unique_ptr<base::BufferPool> buffers_;
  std::unique_ptr<vtl::Library> vtl_;
  std::vector<std::unique_ptr<SwitchedDevice>> devices_;
  std::unique_ptr<tape::Changer> changer_;
  std::vector<std::unique_ptr<tape::Drive>> drives_;
  std::unique_ptr<tape::Library> library_;
  std::unique_ptr<SwitchedStore> store_;
  std::unique_ptr<archive::Manager> manager_;
  std::map<std::string, std::string> content_;
};

}  // namespace reelway::testing
