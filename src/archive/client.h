#pragma once
// The archive as everybody else sees it: inside the same process by default, through `site` where it runs as its own. Everything here is a value.

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
  std::vector<std::string> pools;      ///< one copy in each
  std::uint32_t minimum_age_s = 0;     ///< since last modified
  std::uint32_t batch_age_s = 300;     ///< a batch starts when its oldest member waited so long, ...
  std::uint64_t batch_count = 10'000;  ///< ... or has so many members, ...
  std::uint64_t batch_bytes = 10ull << 30;  ///< ... or so many bytes
  std::uint64_t bundle_below_bytes = 64ull << 20;
  std::string verify = "read-back";    ///< lbp | read-back | none
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
  std::string state;        ///< resident, archiving, dual, evicting, evicted, recalling, conflict, lost
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

/// What recalls cost by the LTO-9 model, in drive seconds, for a set of objects (scripts/demo, reelway archive recall --dry-run).
struct RecallEstimate {
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
  double as_asked_s = 0;
  double by_position_s = 0;
  double planned_s = 0;
  double lower_bound_s = 0;
};

class Client : public object::RecallQueue, public object::Archiver {
 public:
  virtual async::Task<void> set_policy(Policy policy) = 0;
  virtual async::Task<void> remove_policy(std::string bucket, std::string prefix) = 0;
  virtual async::Task<std::vector<Policy>> policies() = 0;
  virtual async::Task<StatusView> status_view() = 0;
  virtual async::Task<ObjectView> why(object::ObjectName name) = 0;
  /// Archives everything under a prefix now, whatever the batch limits; returns when all copies count or have failed.
  virtual async::Task<StatusView> archive_now(std::string bucket, std::string prefix) = 0;
  virtual async::Task<EvictOutcome> evict(std::string bucket, std::string prefix) = 0;
  /// Queues a recall for everything evicted under a prefix (or the given keys, in that order); returns how many.
  virtual async::Task<std::uint64_t> recall(std::string bucket, std::string prefix, std::vector<std::string> keys, std::uint32_t days) = 0;
  virtual async::Task<RecallEstimate> estimate(std::string bucket, std::vector<std::string> keys) = 0;
  /// Restore header's content for HEAD and lists: nothing when never restored.
  virtual async::Task<std::optional<object::RestoreStatus>> restore_status(object::ObjectName name, std::string generation) = 0;
  /// True when the catalog's row of the generation names this bucket and key with a counted copy (rule 4).
  virtual async::Task<bool> owns(object::ObjectName name, std::string generation) = 0;
};

}  // namespace reelway::archive
