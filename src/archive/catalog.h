#pragma once
// What the archive knows: volumes, objects, their copies on tape, policies and recalls. SQLite in WAL mode
// with synchronous=FULL: when a call has returned, its change is durable, and a process killed in the middle
// of one has changed nothing. Every call is one transaction and blocks: call it from one thread at a time
// (the Manager uses a pool of one thread). Lost catalogs are rebuilt from the tapes (import.h). Scope node
// for errors of the database itself. Text columns are raw bytes; times are nanoseconds since 1970.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "archive/client.h"
#include "base/result.h"
#include "object/tiered.h"

namespace reelway::archive {

struct PolicyRow {
  std::int64_t id = 0;
  Policy policy;
};

/// A policy as it was last set or removed.
struct PolicyChange {
  Policy policy;
  bool removed = false;  ///< only bucket and prefix of the policy count
  base::TimePoint at{};  ///< later changes have later times, whatever the clock did
  friend bool operator==(const PolicyChange&, const PolicyChange&) = default;
};

enum class VolumeState : std::uint8_t { blank, active, full, damaged, foreign };
std::string_view to_string(VolumeState state);

struct VolumeRow {
  std::int64_t id = 0;
  std::string barcode;
  std::string uuid;           ///< of the LTFS volume; empty: not formatted yet, or never seen
  std::string serial;         ///< of VOL1
  std::string medium_serial;  ///< of the cartridge memory; empty: not known
  std::string pool;
  VolumeState state = VolumeState::blank;
  std::uint64_t bytes = 0;           ///< used on the data partition
  std::uint64_t capacity_bytes = 0;  ///< 0: not known yet
  std::uint64_t batches = 0;         ///< the last batch manifest that the catalog knows
  std::uint64_t end_block = 0;       ///< after that manifest
  std::uint32_t block_bytes = 0;
  base::TimePoint policies_at{};  ///< the last change of policies that its journal has
};

/// What stands at the key on disk. `removed` rows are deleted or replaced objects: their copies are waste.
enum class Disk : std::uint8_t { resident, evicting, evicted, conflict, lost, removed };
std::string_view to_string(Disk disk);

/// One version of an object's content.
struct ObjectRow {
  std::int64_t id = 0;
  object::ObjectName name;
  object::Identity
      identity;          ///< of the file, or of the stub when evicted; generation and size are the object's
  std::string sha256;    ///< hex, from the mover; empty before
  base::Bytes metadata;  ///< CBOR
  Disk disk = Disk::resident;
  std::vector<std::string> missing;  ///< pools that lack a counted copy, in order
  std::int64_t policy = 0;
  base::TimePoint noted{};  ///< since when it waits; zero: at once
};

struct CopyRow {
  std::int64_t id = 0;
  std::int64_t object = 0;
  std::int64_t volume = 0;
  std::string path;          ///< of the LTFS file
  bool bundled = false;      ///< the file is a bundle, of which this is a member
  std::uint64_t offset = 0;  ///< of the content in the file
  std::uint64_t length = 0;
  std::uint64_t block = 0;      ///< on the data partition, of the first byte
  std::uint64_t end_block = 0;  ///< after the last byte's block
  std::uint64_t batch = 0;      ///< the manifest that it came with; 0: from an import of all volumes
  bool verified = false;
  bool damaged = false;
};

/// A copy with the object that it is of.
struct PlacedCopy {
  CopyRow copy;
  object::ObjectName name;
  std::string generation;
  Disk disk = Disk::resident;
};

struct PlaceQuery {
  std::int64_t volume = 0;
  std::string bucket;  ///< empty: all
  std::string prefix;
  std::uint64_t after_block = 0;  ///< those after (block, copy) only
  std::int64_t after_copy = 0;
  std::size_t count_max = 0;
};

/// Copies of current objects that were never read back although their policy wants it.
struct UnreadQuery {
  std::int64_t volume = 0;     ///< 0: any
  std::string bucket;          ///< empty: any
  std::string prefix;          ///< of keys
  bool with_imported = false;  ///< also those that an import of all volumes found
};

/// A copy that counts from its commit on, with what the mover learnt of the object.
struct CommittedCopy {
  ObjectRow object;  ///< name, identity, sha256, metadata; id 0: known only from a tape
  CopyRow copy;      ///< all but id, object, volume
};

struct BatchCommit {
  VolumeRow volume;
  std::vector<CommittedCopy> copies;
  struct Displaced {
    std::string from;
    std::string to;
  };
  std::vector<Displaced> displaced;  ///< files of older versions that were renamed
};

struct DiskChange {
  std::int64_t object = 0;
  Disk disk = Disk::resident;
  std::optional<object::Identity> identity;
};

struct RequestRow {
  std::int64_t id = 0;
  std::int64_t object = 0;
  object::RecallState state = object::RecallState::queued;
  bool for_reader = false;
  object::RestoreTier tier = object::RestoreTier::standard;
  std::uint32_t days = 1;
  base::TimePoint asked{};
  base::TimePoint expiry{};  ///< of the pin; zero: no pin
  std::string explanation;
};

/// Objects that wait for the same pools by the same policy.
struct WaitingGroup {
  std::int64_t policy = 0;
  std::string missing;  ///< the joined form, for take_waiting
  std::vector<std::string> pools;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  base::TimePoint oldest{};
};

struct TakeRequest {
  std::int64_t policy = 0;
  std::string missing;
  std::string bucket;  ///< empty: all of the policy
  std::string prefix;
  base::TimePoint born_before{};
  base::TimePoint now{};  ///< postponed ones wait on
  std::size_t count_max = 0;
  std::uint64_t bytes_max = 0;  ///< one object is always taken
};

struct Counts {
  std::uint64_t waiting = 0;
  std::uint64_t waiting_bytes = 0;
  std::uint64_t archived = 0;
  std::uint64_t evicted = 0;
  std::uint64_t failed_requests = 0;
};

struct VolumeCounts {
  std::int64_t volume = 0;
  std::uint64_t copies = 0;
  std::uint64_t damaged = 0;
};

class Catalog {
 public:
  /// unsupported on a network or user-space file system; internal for a schema of a newer version.
  static base::Result<std::unique_ptr<Catalog>> open(const std::filesystem::path& folder);
  ~Catalog();
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  base::Result<PolicyRow> put_policy(const Policy& policy, base::TimePoint now);
  base::Result<void> remove_policy(const std::string& bucket, const std::string& prefix, base::TimePoint now);
  base::Result<std::vector<PolicyRow>> policies();
  /// Sets and removals after that time, oldest first.
  base::Result<std::vector<PolicyChange>> policy_changes(base::TimePoint after);
  /// As a tape has it; false when the catalog has the same change or a later one of that bucket and prefix.
  base::Result<bool> take_policy(const PolicyChange& change);

  base::Result<std::vector<VolumeRow>> volumes();
  /// By barcode; fills the id.
  base::Result<VolumeRow> put_volume(VolumeRow volume);
  base::Result<std::vector<VolumeCounts>> volume_counts();

  /// What was seen on disk. A known generation keeps its copies (identity is updated, missing recomputed from
  /// `pools` when the policy changed); other generations of the key become removed.
  base::Result<void> note(const std::vector<ObjectRow>& seen);
  base::Result<std::optional<ObjectRow>> find(
      const object::ObjectName& name);  ///< the one row that is not removed
  base::Result<std::optional<ObjectRow>> find(const object::ObjectName& name, const std::string& generation);
  /// The evicted object of that generation, under whatever key of the bucket.
  base::Result<std::optional<ObjectRow>> find_stub(const std::string& bucket, const std::string& generation);
  base::Result<void> move_object(std::int64_t object, const object::ObjectName& to);
  base::Result<std::vector<ObjectRow>> objects(const std::vector<std::int64_t>& ids);
  /// Not removed ones, in key order.
  base::Result<std::vector<ObjectRow>> under(const std::string& bucket, const std::string& prefix,
                                             const std::string& start_after, std::size_t count_max);
  /// The same over all buckets, after (bucket, key).
  base::Result<std::vector<ObjectRow>> all(const std::string& after_bucket, const std::string& after_key,
                                           std::size_t count_max);
  /// Objects of a bucket, not removed ones, that have a copy on tape.
  base::Result<std::uint64_t> count_with_copies(const std::string& bucket);
  base::Result<void> remove(const std::vector<ObjectRow>& objects);  ///< name and generation
  base::Result<std::vector<ObjectRow>> evicting();
  base::Result<void> set_disk(const std::vector<DiskChange>& changes);

  /// Resident objects that lack copies and were last modified before `born_before`.
  base::Result<std::vector<WaitingGroup>> waiting(std::int64_t policy, base::TimePoint born_before);
  base::Result<std::vector<ObjectRow>> take_waiting(const TakeRequest& request);

  /// Their turn comes again at `until` (somebody holds them open, they changed a moment ago).
  base::Result<void> postpone(const std::vector<std::int64_t>& objects, base::TimePoint until);

  /// Rule 2's last step. Copies of objects that were replaced or removed meanwhile are kept as waste of
  /// removed rows.
  base::Result<void> commit_batch(const BatchCommit& batch);
  base::Result<std::vector<CopyRow>> copies(const std::vector<std::int64_t>& objects);
  base::Result<std::vector<CopyRow>> copies_on(std::int64_t volume);
  /// The same with their objects, removed ones too, in order of (block, copy).
  base::Result<std::vector<PlacedCopy>> placed(const PlaceQuery& query);
  base::Result<std::vector<CopyRow>> copies_of_batch(std::int64_t volume, std::uint64_t batch);
  base::Result<std::vector<CopyRow>> unread(const UnreadQuery& query);
  base::Result<void> set_verified(const std::vector<std::int64_t>& copies);
  /// The copy no longer counts; its pool is missing again, at once.
  base::Result<void> set_damaged(std::int64_t copy);

  base::Result<std::vector<RequestRow>> add_requests(std::vector<RequestRow> requests);  ///< fills ids
  base::Result<void> put_requests(const std::vector<RequestRow>& requests);  ///< state, expiry, explanation
  /// Both in one commit.
  base::Result<void> finish_recalls(const std::vector<DiskChange>& changes,
                                    const std::vector<RequestRow>& requests);
  base::Result<std::vector<RequestRow>> open_requests();  ///< queued or running, oldest first
  base::Result<std::optional<RequestRow>> last_request(std::int64_t object);
  base::Result<std::vector<RequestRow>> expired_pins(base::TimePoint now, std::size_t count_max);

  /// Deleted generations whose death is not on this volume yet; `journalled` takes them off the list.
  base::Result<std::vector<ObjectRow>> unjournalled(std::int64_t volume, std::size_t count_max);
  base::Result<void> journalled(std::int64_t volume, const std::vector<ObjectRow>& objects);

  base::Result<Counts> counts();

 private:
  struct State;
  explicit Catalog(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The cure when a database must not lie on this file system; nothing when it may. `magic` as statfs(2) gives
/// it.
std::optional<std::string> refuse_file_system(std::int64_t magic);

}  // namespace reelway::archive
