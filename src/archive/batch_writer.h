#pragma once
// Writes one batch of objects to one or more volumes at once (each gets a copy), in the order of rule 2:
// blocks, batch manifest, synchronising flush, position equal to our own count. What it hands back may then
// be committed to the catalog, and counts only after that. Small objects go into bundles, the others become
// files of their own. A volume that fails is left out from then on, one that is full after what it holds; the
// others go on.

#include <memory>
#include <string>
#include <vector>

#include "archive/catalog.h"
#include "archive/source_stage.h"
#include "tape/bundle/bundle.h"
#include "tape/ltfs/volume.h"

namespace reelway::archive {

struct BatchLimits {
  std::uint64_t bundle_below_bytes = 64ull << 20;
  std::uint64_t bundle_bytes = 4ull << 30;
};

/// One volume that takes part.
struct BatchTarget {
  tape::ltfs::Volume* volume = nullptr;
  std::string barcode;
  std::uint64_t room_bytes = 0;  ///< that may be used for content

  // What came of it:
  std::optional<base::Error> error;  ///< nothing of this batch counts here
  bool full = false;
  std::vector<CommittedCopy> copies;
  std::vector<BatchCommit::Displaced> displaced;
  tape::ltfs::BatchReceipt receipt;
  std::uint64_t bytes = 0;

  // While writing:
  std::string open_path;
  std::vector<tape::ltfs::BundleContents> bundles;
  bool open() const { return !error && !full; }
};

/// Told after each object how far it is. False: ends the batch here; what is written counts, the rest waits
/// on.
using Progress = std::function<bool(std::size_t objects, std::uint64_t bytes)>;

class BatchWriter {
 public:
  BatchWriter(SourceEnvironment environment, BatchLimits limits, std::vector<ObjectRow> rows,
              std::vector<BatchTarget*> targets, Progress progress);
  /// An error only when nothing could be done at all; failed objects and targets are told apart below.
  async::Task<void> run();
  const std::vector<FailedObject>& failed() const { return failed_; }
  const ObjectRow& row(std::size_t entry) const { return rows_[entry]; }

 private:
  bool is_bundled(std::uint64_t size) const { return size < limits_.bundle_below_bytes; }
  async::Task<void> consume(async::Channel<Parcel>& parcels);
  async::Task<void> take_parcel(Parcel& parcel);
  async::Task<void> write_whole(const WholeObject& whole);
  async::Task<void> write_part(ObjectPart& part);
  async::Task<void> begin_object(std::size_t entry, const object::ObjectInfo& info,
                                 const std::string& sha256);
  async::Task<void> end_object(std::size_t entry, const object::Identity& identity,
                               const std::string& sha256);
  async::Task<void> abandon_object(const object::ObjectInfo& info);

  async::Task<void> begin_bundle();
  async::Task<void> end_bundle();
  async::Task<void> begin_file(const object::ObjectInfo& info);
  async::Task<void> end_file(std::size_t entry, const object::Identity& identity, const std::string& sha256);
  async::Task<void> stage(base::ByteView bytes);
  async::Task<void> flush_stage();
  async::Task<void> settle();
  void note_bundle_members(BatchTarget& target, const tape::ltfs::StoredFile& file);
  static bool has_room(const BatchTarget& target, std::uint64_t bytes);
  bool all_have_room(std::uint64_t bytes) const;
  bool any_open() const;
  /// The same call on every open target at once; one that fails is out, or full.
  async::Task<void> each(const std::function<async::Task<void>(BatchTarget&)>& call);

  SourceEnvironment env_;
  BatchLimits limits_;
  std::vector<ObjectRow> rows_;
  std::vector<BatchTarget*> targets_;
  Progress progress_;
  std::vector<FailedObject> failed_;
  std::size_t done_objects_ = 0;
  std::uint64_t done_bytes_ = 0;
  bool going_on_ = true;

  base::Chunk staging_;
  std::size_t staged_ = 0;
  std::unique_ptr<tape::bundle::Writer> bundle_;
  struct BundledEntry {
    std::size_t entry = 0;
    object::Identity identity;
  };
  std::vector<BundledEntry> bundled_;  ///< the open bundle's members, in order
  std::optional<object::ObjectInfo> open_info_;
  std::uint64_t open_written_ = 0;
};

}  // namespace reelway::archive
