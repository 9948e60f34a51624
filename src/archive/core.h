#pragma once
// The inside of Manager: one object whose state belongs to env.executor. Its methods are spread over
// core_*.cc by theme: life and scheduling (core.cc), what is on disk (core_scan.cc), drives (core_drives.cc),
// archiving (core_archive.cc), the tapes' journals (core_journal.cc), reading back and repairing
// (core_verify.cc), recalls (core_recall.cc), evictions (core_evict.cc), import (core_import.cc),
// what people see (core_view.cc, core_estimate.cc).

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "archive/catalog.h"
#include "archive/journal.h"
#include "archive/lto_costs.h"
#include "archive/manager.h"
#include "archive/planner/planner.h"
#include "archive/restore_board.h"
#include "archive/tape_reader.h"
#include "async/gate.h"
#include "async/waiter.h"
#include "object/recall_feed.h"
#include "tape/ltfs/volume.h"

namespace reelway::archive {

namespace net = async::net;

struct BatchTarget;

/// A drive and what is in it. Whoever set `busy` owns everything in it until it clears that again.
struct Station {
  std::size_t number = 0;
  std::string barcode;                         ///< empty: no cartridge
  std::unique_ptr<tape::ltfs::Volume> volume;  ///< mounted
  bool busy = false;
  bool reading = false;  ///< busy with a recall
  object::RestoreTier yield_to =
      object::RestoreTier::bulk;  ///< the tour leaves what is of a later tier than this
  base::SteadyPoint idle_since{};
  base::SteadyPoint failed_until{};
  std::uint64_t head_block = 0;
  std::string state = "empty";
  std::string activity;
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
};

/// A recall that is queued or running; readers and commands that wait hold it beyond its end.
struct Recall {
  RequestRow request;
  ObjectRow object;
  std::vector<CopyRow> copies;  ///< that count
  bool running = false;
  bool cancelled = false;
  bool replaced = false;    ///< deleted or overwritten since
  bool doubted = false;     ///< its key was found changed, and the word of it may still be on its way
  bool wanted_now = false;  ///< a reader has asked for it: it counts as expedited
  base::SteadyPoint asked{};
  base::SteadyPoint not_before{};
  std::string barcode;  ///< it is read from, when running
  std::vector<std::shared_ptr<async::Waiter>> waiters;
  std::shared_ptr<object::RecallFeed> feed;
};

class Manager::Core {
 public:
  Core(Environment environment, Options options, std::unique_ptr<Catalog> catalog);

  // ---- core.cc
  async::Task<void> start();
  async::Task<void> stop();
  void note(object::ObjectInfo info, bool removed);  ///< any thread
  async::Task<void> set_policy(Policy policy);
  async::Task<void> remove_policy(std::string bucket, std::string prefix);
  async::Task<std::vector<Policy>> list_policies();

  // ---- core_archive.cc, core_verify.cc
  async::Task<StatusView> archive_now(std::string bucket, std::string prefix);
  async::Task<StatusView> verify(std::string bucket, std::string prefix);

  // ---- core_recall.cc
  async::Task<object::RecallStatus> submit(object::RecallRequest request);
  async::Task<object::RecallStatus> status(object::ObjectName name, std::string generation);
  async::Task<void> cancel(std::string id);
  async::Task<object::RecallStatus> wait(object::ObjectName name, std::string generation,
                                         base::Duration patience);
  async::Task<std::uint64_t> recall(std::string bucket, std::string prefix, std::vector<std::string> keys,
                                    std::uint32_t days);
  async::Task<object::FollowedRecall> follow(object::RecallRequest request, std::uint64_t offset,
                                             base::Duration patience);
  void send_readers_away();
  const RestoreBoard& board() const { return board_; }
  async::Task<bool> owns(object::ObjectName name, std::string generation);

  // ---- core_evict.cc
  async::Task<EvictOutcome> evict(std::string bucket, std::string prefix);

  // ---- core_import.cc
  async::Task<ImportView> import_volumes(bool make_stubs);

  // ---- core_view.cc, core_estimate.cc
  async::Task<StatusView> status_view();
  async::Task<ObjectView> why(object::ObjectName name);
  async::Task<LibraryView> library_view();
  async::Task<VolumeListing> list_volume(std::string volume, std::string prefix, std::string after);
  async::Task<RecallEstimate> estimate(std::string bucket, std::vector<std::string> keys);

  const Environment& environment() const { return env_; }

 private:
  struct Note {
    object::ObjectInfo info;
    bool removed = false;
  };
  /// archive_now's wish: these do not wait for a batch to be due.
  struct Force {
    std::string bucket;
    std::string prefix;
  };
  struct Pin {
    std::string generation;
    base::TimePoint expiry{};
    RequestRow request;
  };

  // ---- core.cc
  base::Clock const& clock() const { return env_.timer.clock(); }
  void wake();  ///< any thread
  async::Task<void> run();
  async::Task<void> look_around();
  async::Task<void> absorb_notes();
  bool start_job(const char* name, async::Task<void> task);
  void remember_error(const std::string& message);
  void emit(std::string type, const object::ObjectName& name, const std::string& generation,
            std::string detail);
  std::vector<std::string> pool_names() const;
  /// Runs `work(Catalog&)` on the catalog's pool.
  template <class F>
  auto db(F work) -> net::awaitable<decltype(work(std::declval<Catalog&>()))>;

  // ---- core_scan.cc
  async::Task<void> scan_all();
  async::Task<void> scan(std::string bucket, std::string prefix);
  struct ScanTally;
  async::Task<void> compare(std::span<const object::TierEntry> page, const std::vector<ObjectRow>& known,
                            ScanTally& tally);
  async::Task<void> note_conflicts(const std::vector<const ObjectRow*>& rows);
  async::Task<void> settle_vanished(const std::string& bucket, const std::string& prefix,
                                    const ScanTally& tally);
  async::Task<void> give_up(const std::vector<std::int64_t>& ids);
  async::Task<std::set<std::int64_t>> moved_elsewhere(const std::string& bucket,
                                                      const std::vector<std::int64_t>& ids);
  async::Task<std::vector<ObjectRow>> missing_on_disk(std::vector<std::int64_t> ids);
  async::Task<std::set<std::int64_t>> with_copies(const std::vector<ObjectRow>& rows);
  async::Task<void> keep_missing(const std::string& bucket, const std::vector<std::int64_t>& ids,
                                 std::uint64_t missing, std::uint64_t known);
  /// Rule 4's report: an event, a warning and a line of last_errors, once for each.
  void report_conflict(const object::ObjectName& name, const std::string& generation,
                       const std::string& detail);
  async::Task<object::TierEntry> entry_of(object::ObjectName name);  ///< as it is on disk now; not_found
  ObjectRow row_of(const object::TierEntry& entry) const;
  async::Task<void> rescan_job();
  async::Task<bool> follow_moved_stub(const object::TierEntry& entry);

  // ---- core_drives.cc
  async::Task<void> mount(Station& station, std::string barcode, bool for_writing);
  async::Task<void> mount_fresh(Station& station, const std::string& barcode, bool for_writing);
  async::Task<void> trust(Station& station, const std::string& barcode);
  async::Task<void> refuse(const std::string& barcode, std::vector<std::string> reasons);
  async::Task<void> dismount(Station& station);
  async::Task<void> unload_job(Station& station);
  async::Task<void> refresh_job();
  void take(Station& station, std::string state, std::string activity);
  void release(Station& station);
  void note_drive_error(Station& station, const base::Error& error);
  bool is_in_library(const std::string& barcode) const;
  bool is_idle(const Station& station) const;
  Station* station_with(const std::string& barcode);
  std::optional<std::string> choose_volume(const std::string& pool, const std::set<std::string>& not_these);
  async::Task<void> put_volume(VolumeRow row);
  VolumeRow& volume_row(const std::string& barcode) { return volumes_[barcode]; }
  const VolumeRow* volume_by_id(std::int64_t id) const;

  // ---- core_archive.cc
  async::Task<void> start_batches();
  bool start_batch(const PolicyRow& policy, const WaitingGroup& group, std::vector<ObjectRow> rows);
  struct BatchJob {
    std::uint64_t number = 0;
    PolicyRow policy;
    std::string missing;
    std::vector<ObjectRow> rows;
    struct Seat {
      Station* station = nullptr;
      std::string barcode;
      bool mounted = false;
    };
    std::vector<Seat> seats;
  };
  async::Task<void> batch_job(BatchJob job);
  async::Task<void> run_batch(BatchJob& job);
  async::Task<void> seat(BatchJob::Seat& seat, bool& imported);
  async::Task<void> drop_settled(BatchJob& job);
  async::Task<void> end_target(BatchJob& job, std::size_t at, BatchTarget& target);
  async::Task<void> archive_and_read(const std::string& bucket, const std::string& prefix);
  async::Task<void> work_off(const std::string& bucket, const std::string& prefix);
  async::Task<void> note_changed(const std::vector<object::ObjectName>& names);
  async::Task<std::vector<ObjectRow>> waiting_under(const std::string& bucket, const std::string& prefix);
  async::Task<void> handle_failures(const std::vector<std::pair<ObjectRow, base::Error>>& failed);

  // ---- core_journal.cc
  async::Task<void> write_journal(Station& station);
  async::Task<void> settle_journal(Station& station, const std::vector<ObjectRow>& dead,
                                   base::TimePoint policies_at);
  /// No volume of the pool that was ever written has the last change of policies.
  bool lacks_policies(const std::string& pool) const;
  std::optional<std::string> journal_volume(const std::string& pool);
  async::Task<void> load_policies();
  async::Task<void> policies_were_changed();
  async::Task<void> journal_job();
  async::Task<void> journal_policies();
  async::Task<void> import_journal(tape::ltfs::Volume& volume, ImportView& view);
  async::Task<void> settle_journals(ImportView& view);

  // ---- core_verify.cc
  async::Task<void> verify_copies(Station& station, std::vector<CopyRow> copies);
  /// What is to be read from a volume, asked once its drive is ours.
  using CopiesOf = std::function<async::Task<std::vector<CopyRow>>(std::int64_t volume)>;
  async::Task<void> verify_job(Station& station, std::int64_t volume, std::string barcode, CopiesOf copies_of,
                               std::shared_ptr<async::Waiter> end);
  async::Task<void> read_volumes(std::set<std::int64_t> volumes, CopiesOf copies_of);
  async::Task<std::uint64_t> read_back(UnreadQuery query);
  async::Task<void> read_back_job();
  async::Task<void> repair(const std::string& bucket, const std::string& prefix);
  async::Task<void> repair_some(std::vector<ObjectRow> rows);
  async::Task<void> wait_for_copies(const std::vector<std::int64_t>& ids);
  async::Task<std::vector<ObjectRow>> needing_repair(const std::vector<ObjectRow>& rows);
  async::Task<void> mark_damaged(const CopyRow& copy, const base::Error& error);
  async::Task<Station*> claim_station(std::string barcode, std::string state, std::string activity);

  // ---- core_recall.cc
  std::optional<double> start_recalls();
  struct Tour {
    Station* station = nullptr;
    std::string barcode;
    std::vector<std::shared_ptr<Recall>> recalls;
    std::vector<CopyRow> copies;             ///< of the same index
    std::vector<object::RestoreTier> tiers;  ///< of the same index
  };
  async::Task<void> tour_job(Tour tour);
  async::Task<void> run_tour(Tour& tour);
  async::Task<void> land_all(Tour& tour, async::Channel<TapeParcel>& parcels);
  async::Task<void> settle_landed(Tour& tour, const TapeParcel& parcel,
                                  std::vector<std::optional<base::Result<object::Identity>>>& outcomes);
  async::Task<std::shared_ptr<Recall>> enqueue(ObjectRow row, object::RecallRequest request);
  async::Task<std::uint64_t> enqueue_all(std::vector<ObjectRow> rows, std::uint32_t days);
  async::Task<object::RecallStatus> extend_pin(const ObjectRow& row, const object::RecallRequest& request);
  async::Task<void> upgrade(Recall& recall, const object::RecallRequest& request);
  object::RecallStatus status_of(const Recall& recall) const;
  std::shared_ptr<Recall> add_recall(RequestRow request, ObjectRow object, std::vector<CopyRow> copies);
  void replace_recall(Recall& recall);
  /// After every change of pins_ and recalls_: what the board says of the key.
  void post_restore(const object::ObjectName& name);
  object::RestoreTier tier_of(const Recall& recall) const;
  void hurry(const Recall& recall);
  std::optional<object::FollowedRecall> look_at(const Recall& recall, std::uint64_t offset) const;
  /// Ends recalls: state, explanation, and on success the file's identity.
  struct Ending {
    std::shared_ptr<Recall> recall;
    object::RecallState state = object::RecallState::done;
    std::string explanation;
    std::optional<object::Identity> identity;
    std::optional<Disk> disk;
  };
  async::Task<void> finish_recalls(std::vector<Ending> endings);
  async::Task<void> settle_changed(std::shared_ptr<Recall> recall, const base::Error& error,
                                   std::vector<Ending>& endings);
  async::Task<void> copy_failed(std::shared_ptr<Recall> recall, const CopyRow& copy,
                                const base::Error& error);
  base::TimePoint pin_until(std::uint32_t days) const;
  async::Task<void> load_requests();
  planner::Input planner_input(std::vector<std::shared_ptr<Recall>>& recalls,
                               std::vector<std::string>& barcodes) const;

  // ---- core_evict.cc
  async::Task<void> expire_pins_job();
  struct EvictTally;
  async::Task<void> evict_again(std::vector<ObjectRow> rows);
  async::Task<void> evict_rows(std::vector<ObjectRow> rows, EvictTally& tally);
  net::awaitable<void> evict_one(const ObjectRow& row, DiskChange& change, base::Result<void>& result);
  async::Task<object::Identity> reconfirm(const ObjectRow& row);
  /// Copies on cartridges that are not trusted are no reason to let a disk copy go.
  std::vector<CopyRow> on_trusted(std::vector<CopyRow> copies) const;
  async::Task<void> settle_interrupted();

  // ---- core_import.cc
  async::Task<void> import_volume(Station& station, ImportView& view);
  async::Task<void> import_station(Station& station, std::string barcode, ImportView& view);
  async::Task<void> import_lane(Station& station, std::vector<std::string>& barcodes, ImportView& view);
  async::Task<void> import_all(ImportView& view);
  async::Task<void> import_bundles(tape::ltfs::Volume& volume, BatchCommit& commit, ImportView& view);
  static void add_problem(ImportView& view, std::string text);
  /// A range of a file of the volume.
  static async::Task<base::Bytes> read_range(tape::ltfs::Volume& volume, const tape::ltfs::File& file,
                                             base::ByteRange range);
  async::Task<std::vector<tape::Member>> read_toc(tape::ltfs::Volume& volume, const std::string& path);
  using StubKeys = std::map<std::pair<std::string, std::string>, std::string>;  ///< (bucket, generation)
  async::Task<StubKeys> stubs_on_disk();
  async::Task<void> reconcile(bool make_stubs, ImportView& view);
  async::Task<void> reconcile_one(ObjectRow row, bool make_stubs, const StubKeys& stubs,
                                  std::vector<DiskChange>& changes, ImportView& view);

  Environment env_;
  Options options_;
  std::unique_ptr<Catalog> catalog_;
  object::Tiered& tiered_;
  LtoCostTable costs_;

  std::vector<PolicyRow> policies_;
  base::TimePoint policies_changed_{};          ///< the last change, removals too
  std::map<std::string, std::string> pool_of_;  ///< by barcode
  std::map<std::string, VolumeRow> volumes_;    ///< by barcode; those that the catalog knows
  std::vector<std::unique_ptr<Station>> stations_;
  std::map<object::ObjectName, std::shared_ptr<Recall>> recalls_;  ///< queued and running
  std::map<object::ObjectName, Pin> pins_;
  RestoreBoard board_;
  std::set<std::int64_t> in_batch_;  ///< objects that a running batch has
  std::set<std::uint64_t> batches_;  ///< that run, by number
  std::uint64_t next_batch_ = 1;
  std::map<std::int64_t, int> failures_;  ///< of archiving, by object
  std::vector<std::shared_ptr<Force>> forces_;
  std::vector<std::shared_ptr<async::Waiter>> batch_waiters_;  ///< woken when a batch has ended
  std::deque<std::string> last_errors_;
  std::set<std::pair<object::ObjectName, std::string>> conflicts_told_;  ///< (name, generation)
  std::set<std::pair<object::ObjectName, std::string>>
      dead_;  ///< (name, generation) that tape journals bury; while importing
  std::map<std::pair<std::string, std::string>, PolicyChange>
      told_policies_;  ///< by bucket and prefix: the last change that tape journals tell of; while importing

  std::mutex notes_mutex_;
  std::vector<Note> notes_;
  bool notes_overflowed_ = false;
  std::shared_ptr<async::Waiter> wake_ = std::make_shared<async::Waiter>();
  std::mutex wake_mutex_;

  async::Gate gate_;
  bool started_ = false;
  bool stopping_ = false;
  bool readers_leave_ = false;  ///< the server stops
  bool objects_wait_ = false;   ///< for a batch
  bool refreshing_ = false;
  bool scanning_ = false;
  bool expiring_ = false;
  bool importing_ = false;
  bool journalling_ = false;
  bool reading_back_ = false;
  std::size_t robot_jobs_ = 0;
  std::string robot_ = "idle";
  base::SteadyPoint next_refresh_{};
  base::SteadyPoint next_rescan_{};
  base::SteadyPoint next_journal_ = base::SteadyPoint::max();
  base::SteadyPoint next_read_back_ = base::SteadyPoint::max();
};

}  // namespace reelway::archive

#include "archive/core.ipp"
