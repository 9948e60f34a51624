#pragma once
// The archive as everybody else sees it: inside the same process by default, through `site` where it runs as
// its own. Everything here is a value.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "object/tiered.h"

namespace reelway::archive {

/// A bucket's or prefix's rule. The longest matching prefix wins.
struct Policy {
  std::string bucket;
  std::string prefix;
  std::vector<std::string> pools;           ///< one copy in each
  std::uint32_t minimum_age_s = 0;          ///< since last modified
  std::uint32_t batch_age_s = 300;          ///< a batch starts when its oldest member waited so long, ...
  std::uint64_t batch_count = 10'000;       ///< ... or has so many members, ...
  std::uint64_t batch_bytes = 10ull << 30;  ///< ... or so many bytes
  std::uint64_t bundle_below_bytes = 64ull << 20;
  std::string verify = "read-back";  ///< lbp | read-back | none
  friend bool operator==(const Policy&, const Policy&) = default;
};

struct CopyView {
  std::string barcode;
  std::string pool;
  std::string path;         ///< on the volume; "bundle.tar!member" for bundle members
  std::uint64_t block = 0;  ///< first block on the data partition
  std::uint64_t bytes = 0;
  bool verified = false;
  bool damaged = false;
};

struct ObjectView {
  object::ObjectName name;
  std::string generation;
  std::string state;  ///< resident, archiving, dual, evicting, evicted, recalling, conflict, lost
  std::vector<CopyView> copies;
  std::string explanation;  ///< `reelway archive why`: one sentence
};

struct StatusView {
  std::uint64_t objects_waiting = 0;
  std::uint64_t bytes_waiting = 0;
  std::uint64_t objects_archived = 0;  ///< all copies of the policy count
  std::uint64_t objects_evicted = 0;
  std::uint64_t recalls_queued = 0;
  std::uint64_t recalls_running = 0;
  std::uint64_t recalls_failed = 0;
  std::vector<std::string> last_errors;
};

struct EvictOutcome {
  std::uint64_t evicted = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> skipped;  ///< "bucket/key: reason", at most 100
  std::uint64_t skipped_count = 0;
};

/// What recalls cost by the LTO-9 model, in drive seconds, for a set of objects (scripts/demo, reelway
/// archive recall --dry-run).
struct RecallEstimate {
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
  double as_asked_s = 0;
  double by_position_s = 0;
  double planned_s = 0;
  double lower_bound_s = 0;  ///< one load per volume of the planned recall, and bytes / rate
  double scale = 1;  ///< a byte of a scale-model cartridge stands for so many of a real one; positions and
                     ///< lengths are multiplied by it
};

// ---- the library as the status page draws it ----

struct SlotView {
  std::string name;     ///< "slot 1", "mail slot 1"
  std::string barcode;  ///< empty: nothing in it
};

struct DriveView {
  std::string name;     ///< "drive 0"
  std::string barcode;  ///< empty: no cartridge
  std::string state;  ///< empty, idle, loading, archiving, verifying, recalling, importing, unloading, failed
  std::string activity;  ///< a sentence: "recalls 12 of 200 objects from L90001L9"
  std::uint64_t done = 0;
  std::uint64_t total = 0;          ///< objects of this activity; 0: not counted
  std::uint64_t bytes_read = 0;     ///< since start
  std::uint64_t bytes_written = 0;  ///< since start
};

struct CartridgeView {
  std::string barcode;
  std::string pool;                  ///< empty: of no pool
  std::string state;                 ///< unknown, blank, active, full, damaged, missing, foreign
  std::string location;              ///< "slot 3", "drive 0"
  std::uint64_t bytes = 0;           ///< on the data partition
  std::uint64_t capacity_bytes = 0;  ///< 0: not known yet
  std::uint64_t copies = 0;
  std::uint64_t damaged_copies = 0;
};

struct QueueView {
  std::string kind;  ///< archive, recall
  object::ObjectName name;
  std::string barcode;  ///< that it waits for, where chosen
  std::string state;    ///< queued, running
  double waited_s = 0;
};

struct LibraryView {
  std::vector<SlotView> slots;
  std::vector<DriveView> drives;
  std::vector<CartridgeView> cartridges;
  std::string robot;             ///< what it does now
  std::vector<QueueView> queue;  ///< the oldest, at most 100
  std::uint64_t queue_count = 0;
  std::vector<std::string> last_errors;
};

/// One copy on a volume, as the catalog has it.
struct VolumeEntry {
  std::string path;    ///< of the LTFS file
  std::string member;  ///< of the bundle at `path`; empty: the file is the object
  object::ObjectName name;
  std::string generation;
  std::uint64_t bytes = 0;
  std::string state;  ///< verified, unread, damaged, dead (its generation was deleted or replaced)
  std::uint32_t partition = 0;
  std::uint64_t block = 0;  ///< of the first byte
};

/// A page of a volume's copies, in order of position.
struct VolumeListing {
  std::string barcode;
  std::string uuid;
  std::string pool;
  std::vector<VolumeEntry> entries;
  std::string next;  ///< `after` of the next page; empty: this is the last one
};

/// What an import found on the tapes.
struct ImportView {
  std::uint64_t volumes = 0;
  std::uint64_t objects = 0;  ///< current objects, each counted once
  std::uint64_t copies = 0;
  std::uint64_t stubs = 0;            ///< objects missing on disk, whose stub was made
  std::uint64_t policies = 0;         ///< that were set as the tapes say
  std::vector<std::string> problems;  ///< at most 100
};

class Client : public object::RecallQueue, public object::Archiver {
 public:
  virtual async::Task<void> set_policy(Policy policy) = 0;
  virtual async::Task<void> remove_policy(std::string bucket, std::string prefix) = 0;
  virtual async::Task<std::vector<Policy>> policies() = 0;
  virtual async::Task<StatusView> status_view() = 0;
  virtual async::Task<ObjectView> why(object::ObjectName name) = 0;
  /// Archives everything under a prefix now, whatever the batch limits; returns when all copies count or have
  /// failed.
  virtual async::Task<StatusView> archive_now(std::string bucket, std::string prefix) = 0;
  virtual async::Task<EvictOutcome> evict(std::string bucket, std::string prefix) = 0;
  /// Queues a recall for everything evicted under a prefix (or the given keys, in that order; days 0: nothing
  /// is pinned); returns how many.
  virtual async::Task<std::uint64_t> recall(std::string bucket, std::string prefix,
                                            std::vector<std::string> keys, std::uint32_t days) = 0;
  virtual async::Task<RecallEstimate> estimate(std::string bucket, std::vector<std::string> keys) = 0;
  /// Restore header's content for HEAD, GET and lists: nothing when never restored. Any thread; never waits.
  virtual std::optional<object::RestoreStatus> restore_status(const object::ObjectName& name,
                                                              const std::string& generation) const = 0;
  /// True when the catalog's row of the generation names this bucket and key with a counted copy (rule 4).
  virtual async::Task<bool> owns(object::ObjectName name, std::string generation) = 0;
  virtual async::Task<LibraryView> library_view() = 0;
  /// What lies on a volume by the catalog. `volume`: its barcode or its LTFS UUID; `prefix`: empty, BUCKET or
  /// BUCKET/BEGINNING-OF-KEYS; `after`: VolumeListing::next of the page before. not_found: the catalog knows
  /// no such volume.
  virtual async::Task<VolumeListing> list_volume(std::string volume, std::string prefix,
                                                 std::string after) = 0;
  /// Reads every volume's indexes and the manifests after the last one, and rebuilds the catalog's rows. With
  /// `make_stubs`, an object that is not on disk gets its stub.
  virtual async::Task<ImportView> import_volumes(bool make_stubs) = 0;
  /// Reads every counted copy under a prefix from tape and compares checksums; damaged ones are marked and
  /// repaired. Returns when done.
  virtual async::Task<StatusView> verify(std::string bucket, std::string prefix) = 0;
};

}  // namespace reelway::archive
