#pragma once
// The bytes of one recall on their way from tape to disk, for readers that follow it (rules 5 and 9). The
// mover announces each run (one copy read from its first byte), how far it came, and how it ended; readers
// read what has landed back from disk and wait for more without holding anything. The last kWithheldBytes are
// given only once the checksum agreed and the file has become the object. A run that is abandoned is void for
// whoever took bytes of it: the next one writes another file. Safe for several threads; the mover is one.

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "async/waiter.h"
#include "object/store.h"
#include "object/tiered.h"

namespace reelway::object {

inline constexpr std::uint64_t kWithheldBytes = 64 << 10;

/// What a reader of a recall may read now: [0, readable) of the object, in the file of run `run`.
struct FeedView {
  std::shared_ptr<LandingFile> file;
  std::uint64_t run = 0;
  std::uint64_t readable = 0;
};

class RecallFeed {
 public:
  explicit RecallFeed(std::uint64_t size) : size_(size) {}

  // ---- the mover's side
  /// A copy is read from its first byte, into `file`; the feed does not keep it open.
  void begin(const std::shared_ptr<LandingFile>& file);
  /// The file holds the object's first `bytes` bytes.
  void advance(std::uint64_t bytes);
  /// The run has come to nothing.
  void abandon();
  /// The checksum agreed and the file is the object.
  void land();
  /// No run will follow; what has landed can be read on.
  void end(base::Error why);

  // ---- the readers' side
  bool has_landed() const;
  /// Byte `offset` of run `run` (absent: of any). Nothing: not yet. data_loss, retry later: the run is void.
  /// The error of end().
  base::Result<std::optional<FeedView>> look(std::uint64_t offset, std::optional<std::uint64_t> run) const;
  /// Woken at the next change. For as long as it waits.
  void add_waiter(std::shared_ptr<async::Waiter> waiter);
  void remove_waiter(const std::shared_ptr<async::Waiter>& waiter);

 private:
  void wake_all();  ///< under the mutex

  const std::uint64_t size_;
  mutable std::mutex mutex_;
  std::weak_ptr<LandingFile> file_;
  std::uint64_t run_ = 0;
  std::uint64_t bytes_ = 0;
  bool running_ = false;
  bool landed_ = false;
  std::optional<base::Error> ended_;
  std::vector<std::shared_ptr<async::Waiter>> waiters_;
};

/// What a reader that waits is told. With a view: read on from there. Without: the recall has ended as
/// `status` says (none: it is a recall of the past); what there is to read lies in the store.
struct FollowedRecall {
  RecallStatus status;
  std::shared_ptr<RecallFeed> feed;
  std::optional<FeedView> view;
};

/// A GET that follows a recall. `begun` is what look() gave for the first byte of `range`.
std::unique_ptr<Reader> make_feed_reader(std::shared_ptr<RecallFeed> feed, FeedView begun, ObjectInfo info,
                                         base::ByteRange range);

}  // namespace reelway::object
