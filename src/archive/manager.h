#pragma once
// The archive itself: archive::Client over a store, a tape library and a catalog. All state lives on one
// single-threaded executor; the public calls may come from anywhere and hop there. A scheduler looks at what
// waits (recalls through archive/planner, batches by policy) whenever something has changed, and gives idle
// drives work; each job is a coroutine that owns its drive until it ends. Nothing here blocks: the catalog
// and hashing run on pools (or in place where none is given: tests on a virtual clock). Rules 2 to 6 and 9 of
// docs/architecture.md are kept here together with object::Tiered and tape::ltfs::Volume.

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "archive/client.h"
#include "async/offload.h"
#include "async/timer.h"
#include "base/buffer_pool.h"
#include "base/log.h"
#include "base/rng.h"
#include "tape/library.h"

namespace reelway::archive {

struct Options {
  std::filesystem::path state_folder;                     ///< holds catalog.sqlite
  std::map<std::string, std::vector<std::string>> pools;  ///< which barcodes a pool may use, in order of use
  base::Duration gather = std::chrono::milliseconds{
      500};  ///< a recall waits so long for company before a cartridge is loaded for it
  base::Duration urgent_age = std::chrono::hours{1};     ///< recalls older than this go first
  base::Duration keep_loaded = std::chrono::minutes{2};  ///< an idle cartridge stays in its drive so long
  base::Duration spare_after =
      std::chrono::seconds{10};  ///< one drive is emptied after so long when none is empty
  base::Duration rescan =
      std::chrono::minutes{10};  ///< looks for files that came by POSIX so often; zero: only at start
  std::uint64_t bundle_bytes = 4ull << 30;     ///< a bundle is closed when it is so large
  std::uint32_t tape_block_bytes = 512 << 10;  ///< of volumes formatted here
  double scale = 1;  ///< for cost models: a byte on these cartridges stands for so many of an LTO-9's
                     ///< (virtual libraries)
};

/// What the manager needs of the process; all outlive it.
struct Environment {
  async::Executor executor;  ///< single-threaded
  object::Store& store;      ///< with tiered()
  tape::Library& library;
  async::Timer& timer;
  base::BufferPool& buffers;
  base::Rng& rng;
  async::BlockingPool* catalog_pool = nullptr;  ///< one thread
  async::BlockingPool* hash_pool = nullptr;
  object::EventSink* events = nullptr;
  base::Log& log = base::null_log();
  base::Meter& meter = base::null_meter();
};

class Manager final : public Client {
 public:
  /// invalid_argument: the store is not tiered, or a barcode lies in two pools. Errors of Catalog::open.
  static base::Result<std::unique_ptr<Manager>> create(Environment environment, Options options);
  ~Manager() override;

  /// Ends what a crash interrupted (Tiered::recover, evictions, recalls), looks at the library, starts
  /// working.
  async::Task<void> start();
  /// Before stop(): whoever waits for a recall is answered `closed` now. Who has begun to read reads on.
  void send_readers_away();
  /// Finishes the object in hand, commits, writes indexes, unmounts, unloads. To be awaited before
  /// destruction.
  async::Task<void> stop();

  // object::RecallQueue
  async::Task<object::RecallStatus> submit(object::RecallRequest request) override;
  async::Task<object::RecallStatus> status(object::ObjectName name, std::string generation) override;
  async::Task<void> cancel(std::string id) override;
  async::Task<object::RecallStatus> wait(object::ObjectName name, std::string generation,
                                         base::Duration patience) override;
  async::Task<object::FollowedRecall> follow(object::RecallRequest request, std::uint64_t offset,
                                             base::Duration patience) override;
  // object::Archiver
  void notify_stored(const object::ObjectInfo& info) override;
  void notify_removed(const object::ObjectName& name, const std::string& generation) override;
  // Client
  async::Task<void> set_policy(Policy policy) override;
  async::Task<void> remove_policy(std::string bucket, std::string prefix) override;
  async::Task<std::vector<Policy>> policies() override;
  async::Task<StatusView> status_view() override;
  async::Task<ObjectView> why(object::ObjectName name) override;
  async::Task<StatusView> archive_now(std::string bucket, std::string prefix) override;
  async::Task<EvictOutcome> evict(std::string bucket, std::string prefix) override;
  async::Task<std::uint64_t> recall(std::string bucket, std::string prefix, std::vector<std::string> keys,
                                    std::uint32_t days) override;
  async::Task<RecallEstimate> estimate(std::string bucket, std::vector<std::string> keys) override;
  std::optional<object::RestoreStatus> restore_status(const object::ObjectName& name,
                                                      const std::string& generation) const override;
  async::Task<bool> owns(object::ObjectName name, std::string generation) override;
  async::Task<LibraryView> library_view() override;
  async::Task<VolumeListing> list_volume(std::string volume, std::string prefix, std::string after) override;
  async::Task<ImportView> import_volumes(bool make_stubs) override;
  async::Task<StatusView> verify(std::string bucket, std::string prefix) override;

 private:
  class Core;
  explicit Manager(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace reelway::archive
