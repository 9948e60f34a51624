#pragma once
// What the archive needs of a store, and what the gateway needs of the archive. Words: archive (disk to
// tape), evict (drop the disk copy), recall (tape to disk). Rules 3 to 6 of docs/architecture.md (an object's
// life) are contracts of these calls.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "object/store.h"

namespace reelway::object {

/// What makes a file on disk the very one that was archived. All of it must be the same for an evict.
struct Identity {
  std::string generation;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  base::TimePoint mtime{};
  base::TimePoint ctime{};
  friend bool operator==(const Identity&, const Identity&) = default;
};

struct TierEntry {
  ObjectInfo info;
  Identity identity;
};

/// An object opened for archiving, with its identity before the first byte.
class ArchiveReader : public ByteSource {
 public:
  virtual const ObjectInfo& info() const = 0;
  virtual const Identity& identity() const = 0;
  /// After the last byte: the identity now. precondition_failed when the object changed meanwhile or somebody
  /// holds it open for writing.
  virtual async::Task<Identity> confirm_unchanged() = 0;
};

/// The file of a recall, for readers while it is written and after. It outlives its writer, and stays what it
/// is whatever becomes of the key.
class LandingFile {
 public:
  virtual ~LandingFile() = default;
  /// Fills a prefix of `into` (not empty) with what was written at `offset`; 0: nothing was.
  virtual async::Task<std::size_t> read(std::uint64_t offset, base::MutableBytes into) = 0;
};

/// Takes the bytes of a recall. Destroyed without commit, it leaves no trace.
class RecallWriter : public ByteSink {
 public:
  virtual std::shared_ptr<LandingFile> file() = 0;
  /// Checks size and `expected` (SHA-256 or CRC64NVME of the whole) and exchanges the stub for the file (rule
  /// 5). The object's metadata, owner, mode and times come back from the sidecar. checksum_mismatch,
  /// precondition_failed (the stub is not the recorded one: a conflict).
  virtual async::Task<Identity> commit(const Checksum& expected) = 0;
};

struct Conflict {
  ObjectName name;
  std::string generation;
  std::string reason;
};

class Tiered {
 public:
  virtual ~Tiered() = default;

  /// Objects of a bucket in key order after `start_after`, with their identities, at most `count_max`.
  /// Residency is true on disk.
  virtual async::Task<std::vector<TierEntry>> scan(std::string bucket, std::string prefix,
                                                   std::string start_after, std::size_t count_max) = 0;

  /// busy: changed less than `settle` ago, or open for writing elsewhere. A file born by POSIX is given a
  /// generation first. not_resident: a stub.
  virtual async::Task<std::unique_ptr<ArchiveReader>> open_for_archive(ObjectName name) = 0;

  /// Rule 3. Success: the key is a stub, the bytes are gone from disk, the value is the stub's identity.
  /// busy: somebody has it open. precondition_failed: it is not `archived` any more. unsupported: the file
  /// system's leases are not to be believed.
  virtual async::Task<Identity> evict(ObjectName name, Identity archived) = 0;

  /// Rule 5. precondition_failed: the key is not the stub of `generation`.
  virtual async::Task<std::unique_ptr<RecallWriter>> begin_recall(ObjectName name,
                                                                  std::string generation) = 0;

  /// Recreates an evicted object's stub and sidecar from what a tape says of it (catalog rebuilt, disk lost).
  /// already_exists: the key is taken.
  virtual async::Task<void> create_stub(ObjectInfo info) = 0;

  /// Called once at start, before any other call: brings interrupted evictions and recalls to an end. Returns
  /// what a person must look at.
  virtual async::Task<std::vector<Conflict>> recover() = 0;
};

// ---- the archive as the gateway sees it ----

enum class RestoreTier : std::uint8_t { expedited, standard, bulk };

struct RecallRequest {
  ObjectName name;
  std::string generation;
  std::uint32_t days = 1;  ///< how long the recalled copy stays pinned on disk
  RestoreTier tier = RestoreTier::standard;
  bool for_reader = false;  ///< a GET waits: no pin
};

enum class RecallState : std::uint8_t { none, queued, running, done, failed };

struct RecallStatus {
  std::string id;
  RecallState state = RecallState::none;
  std::optional<base::TimePoint> expiry;  ///< of the pinned copy
  std::string explanation;                ///< a sentence: why it waits, or why it failed
};

struct FollowedRecall;  ///< object/recall_feed.h

class RecallQueue {
 public:
  virtual ~RecallQueue() = default;
  /// Joins a recall of the same generation that is queued or running; durable when it returns. not_found: no
  /// counted copy.
  virtual async::Task<RecallStatus> submit(RecallRequest request) = 0;
  virtual async::Task<RecallStatus> status(ObjectName name, std::string generation) = 0;
  virtual async::Task<void> cancel(std::string id) = 0;
  /// Returns when the recall has ended, or deadline_exceeded after `patience` (the recall goes on).
  virtual async::Task<RecallStatus> wait(ObjectName name, std::string generation,
                                         base::Duration patience) = 0;
  /// For a GET: submits, and returns as soon as byte `offset` may be read or the recall has ended.
  /// deadline_exceeded after `patience` (the recall goes on); closed: readers are sent away, the server
  /// stops.
  virtual async::Task<FollowedRecall> follow(RecallRequest request, std::uint64_t offset,
                                             base::Duration patience) = 0;
};

class Archiver {
 public:
  virtual ~Archiver() = default;
  /// Something was stored: considers it for archiving by its bucket's policy. Never waits for a tape.
  virtual void notify_stored(const ObjectInfo& info) = 0;
  /// The object is gone or replaced: its copies no longer count.
  virtual void notify_removed(const ObjectName& name, const std::string& generation) = 0;
};

struct Event {
  std::string type;  ///< "s3:ObjectCreated:Put", "reelway:Conflict", ...
  ObjectName name;
  std::string generation;
  std::uint64_t size = 0;
  std::string detail;
};

class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void emit(Event event) = 0;  ///< never blocks
};

}  // namespace reelway::object
