// Rule 2 at every step: the power fails at the n-th command of a history, for each n. What sync()
// acknowledged is there afterwards, whole; what is there beyond that was finished and is whole; nothing else
// is claimed; and the volume can be written again.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "testing/volume_rig.h"

namespace reelway::tape::ltfs {
namespace {

using async::Task;
using base::Result;

/// What a history has done so far.
struct Ledger {
  bool formatted = false;
  std::map<std::string, std::string> finished;  ///< path to content
  std::set<std::string> removed;                ///< or renamed away, not yet acknowledged
  std::map<std::string, std::string> acknowledged;
};

class CrashTest : public VolumeRig {
 protected:
  void acknowledge() {
    ledger_.acknowledged = ledger_.finished;
    ledger_.removed.clear();
  }

  Task<void> write_file(Volume& volume, std::string path, std::size_t bytes, std::string displaced = {}) {
    const auto content = text(bytes, static_cast<unsigned>(ledger_.finished.size() + bytes));
    FileSpec spec{.path = path, .displaced_path = displaced};
    CO_TRY_VOID(co_await volume.begin_file(std::move(spec)));
    CO_TRY_VOID(co_await volume.append(base::as_bytes(content)));
    CO_TRY_VOID(co_await volume.finish_file({}));
    if (!displaced.empty() && ledger_.finished.contains(path)) {
      ledger_.finished[displaced] = ledger_.finished[path];
      ledger_.removed.insert(path);
    }
    ledger_.finished[path] = content;
    co_return Result<void>{};
  }
  Task<void> commit_batch(Volume& volume) {
    CO_TRY_VOID(co_await volume.write_manifest({}));
    CO_TRY_VOID(co_await volume.sync());
    acknowledge();
    co_return Result<void>{};
  }

  Task<void> format_volume() {
    FormatOptions options{.barcode = rig_.barcode(),
                          .volume_name = "",
                          .media_pool = "",
                          .block_bytes = kBlock,
                          .overwrite = true};
    CO_TRY(volume_, co_await Volume::format(rig_.drive(), environment(), options));
    ledger_.formatted = true;
    co_return Result<void>{};
  }
  Task<void> mount_volume(MountOptions options) {
    CO_TRY(volume_, co_await Volume::mount(rig_.drive(), environment(), options));
    co_return Result<void>{};
  }

  Task<void> history() {
    CO_TRY_VOID(co_await format_volume());
    CO_TRY_VOID(co_await write_file(*volume_, "/b/one", 100));
    CO_TRY_VOID(co_await write_file(*volume_, "/b/two", 2 * kBlock + 1));
    CO_TRY_VOID(co_await commit_batch(*volume_));
    CO_TRY_VOID(co_await write_file(*volume_, "/b/three", kBlock));
    CO_TRY_VOID(co_await commit_batch(*volume_));
    CO_TRY_VOID(co_await volume_->checkpoint());
    CO_TRY_VOID(co_await write_file(*volume_, "/b/one", 50, "/.reelway/objects/b/1"));
    CO_TRY_VOID(co_await commit_batch(*volume_));
    CO_TRY_VOID(co_await volume_->unmount());
    acknowledge();
    CO_TRY_VOID(co_await mount_volume({}));
    CO_TRY_VOID(co_await write_file(*volume_, "/b/four", 10));
    CO_TRY_VOID(co_await commit_batch(*volume_));
    CO_TRY_VOID(co_await write_file(*volume_, "/b/five", 20));
    CO_TRY_VOID(co_await volume_->unmount());
    acknowledge();
    co_return Result<void>{};
  }

  void check(const std::string& when) {
    SCOPED_TRACE(when);
    rig_.load(rig_.barcode());
    if (!ledger_.formatted) {
      const auto again = testing::run_task(format_volume());
      ASSERT_TRUE(again) << to_string(again.error());
      return;
    }
    const auto mounted = testing::run_task(mount_volume({}));
    ASSERT_TRUE(mounted) << to_string(mounted.error());
    EXPECT_TRUE(volume_->info().problems.empty());
    check_files();
    const auto appended = testing::run_task(append_and_unmount());
    ASSERT_TRUE(appended) << to_string(appended.error());
    const auto remounted = testing::run_task(mount_volume({}));
    ASSERT_TRUE(remounted) << to_string(remounted.error());
    EXPECT_FALSE(volume_->info().mounted_by_scan);
    EXPECT_EQ(get("/b/after").size(), 33U);
    check_files();
    const auto fast = tree_of(volume_->index());
    const auto scanned = testing::run_task(mount_volume({.force_scan = true}));
    ASSERT_TRUE(scanned) << to_string(scanned.error());
    EXPECT_TRUE(tree_of(volume_->index()) == fast);
  }
  void check_files() {
    for (const auto& [path, content] : ledger_.acknowledged) {
      if (ledger_.removed.contains(path)) continue;
      const auto found = try_get(path);
      EXPECT_TRUE(found && *found == content) << path << (found ? "" : to_string(found.error()));
    }
    volume_->index().for_each_file([this](const std::string& path, const File&) {
      if (path.starts_with("/.reelway/batches/") || path == "/b/after") return;
      const auto found = try_get(path);
      const bool known = ledger_.finished.contains(path) || ledger_.acknowledged.contains(path);
      EXPECT_TRUE(known) << path << " is claimed";
      EXPECT_TRUE(found && (*found == ledger_.finished[path] || *found == ledger_.acknowledged[path]))
          << path;
    });
  }
  Task<void> append_and_unmount() {
    FileSpec spec{.path = "/b/after", .displaced_path = {}};
    CO_TRY_VOID(co_await volume_->begin_file(std::move(spec)));
    const std::string content(33, 'x');
    CO_TRY_VOID(co_await volume_->append(base::as_bytes(content)));
    CO_TRY_VOID(co_await volume_->finish_file({}));
    CO_TRY_VOID(co_await volume_->write_manifest({}));
    CO_TRY_VOID(co_await volume_->sync());
    co_return co_await volume_->unmount();
  }

  /// True when the history ended before its n-th command.
  bool run_until(std::uint64_t nth, vtl::Fault::When when) {
    ledger_ = {};
    volume_.reset();
    rig_.load(rig_.barcode());
    rig_.vtl().faults().add({.device = vtl::DeviceId::drive(0),
                             .opcode = {},
                             .nth = nth,
                             .when = when,
                             .sense = {},
                             .hang = true});
    const auto done = testing::run_task(history());
    const bool ended = rig_.vtl().faults().pending() > 0;
    rig_.vtl().faults().clear();
    if (ended) EXPECT_TRUE(done) << to_string(done.error());
    volume_.reset();
    return ended;
  }
  void sweep(vtl::Fault::When when) {
    for (std::uint64_t nth = 1; nth < 1000; ++nth) {
      const bool ended = run_until(nth, when);
      if (HasFatalFailure()) return;
      rig_.power_cut(nth);
      check("power fails at command " + std::to_string(nth));
      if (HasFailure() || ended) return;
    }
    FAIL() << "the history never ended";
  }

  Ledger ledger_;
};

TEST_F(CrashTest, PowerFailsBeforeEachCommand) { sweep(vtl::Fault::When::instead); }
TEST_F(CrashTest, PowerFailsAfterEachCommand) { sweep(vtl::Fault::When::after); }

}  // namespace
}  // namespace reelway::tape::ltfs
