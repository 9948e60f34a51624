#pragma once
// An LTFS 2.4.0 volume in a drive. Appends go to the data partition at the end of data read from the volume;
// nothing written counts before write_manifest and then sync have succeeded (rule 2 of docs/architecture.md),
// and everything that counted so far is found again by mount, whatever happened since. The index is kept in
// memory; checkpoint and unmount write it. One caller at a time; one file open for appending at a time. After
// an error of scope cartridge, drive or library from a writing call the volume refuses further writes until
// it is mounted again.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tape/drive.h"
#include "tape/ltfs/index.h"
#include "tape/ltfs/label.h"
#include "tape/ltfs/manifest.h"

namespace reelway::tape::ltfs {

struct FormatOptions {
  std::string barcode;      ///< of the cartridge; the first 6 characters become the volume serial
  std::string volume_name;  ///< may be empty
  std::string media_pool;   ///< MAM attribute; may be empty
  std::uint32_t block_bytes = 512 << 10;
  bool overwrite = false;  ///< false: already_exists when the cartridge holds an LTFS volume or anything else
};

struct MountOptions {
  bool read_only = false;
  bool force_scan = false;  ///< full mount although the MAM says that all is well
  /// An index goes to the data partition when more data than max(this, 100 x the index's size) was written
  /// since the last one.
  std::uint64_t checkpoint_bytes = 64ull << 30;
};

/// What the volume needs from outside; all outlive it.
struct Environment {
  const base::Clock& clock;
  base::Rng& rng;
  base::Log& log = base::null_log();
};

struct FileSpec {
  std::string path;            ///< absolute; missing directories are made
  std::string displaced_path;  ///< a file that is already at `path` is renamed to this; empty: already_exists
  base::TimePoint modify_time{};  ///< of the content
};

struct StoredFile {
  std::string path;
  std::uint64_t length = 0;
  std::vector<Extent> extents;  ///< empty for an empty file
  std::uint64_t uid = 0;
  std::uint64_t first_block() const { return extents.empty() ? 0 : extents.front().start_block; }
};

struct BatchReceipt {
  std::uint64_t number = 0;
  std::uint64_t trailer_block = 0;
  std::uint64_t end_block = 0;  ///< the next block to be written
};

/// Which bytes of a file: extents and length come from the index or from the catalog.
struct ReadRequest {
  std::span<const Extent> extents;
  std::uint64_t file_length = 0;
  std::uint64_t offset = 0;
};

struct VolumeInfo {
  std::string serial;         ///< of VOL1
  std::string medium_serial;  ///< of the cartridge memory, without padding; empty: it has none
  std::string uuid;
  std::string name;
  std::string format_time;
  std::uint32_t block_bytes = 0;
  std::uint64_t generation = 0;  ///< of the index in memory
  bool read_only = false;
  bool mounted_by_scan = false;         ///< the slow way
  std::uint64_t batches_recovered = 0;  ///< manifests after the last index that mount applied
  std::uint64_t last_batch = 0;         ///< number of the newest manifest; 0: none
  std::vector<std::string> problems;    ///< what mount could not read; for a person
};

/// Everything that counts on a mounted volume: the index (manifests after it are already applied by mount)
/// and the members that its manifests list. Bundles that no manifest describes are named in
/// `undescribed_bundles`: read their table of contents (tape/bundle).
struct ImportedVolume {
  std::vector<BundleContents> bundles;
  std::vector<std::string> undescribed_bundles;
  std::vector<std::string> problems;  ///< manifests that could not be read
};
class Volume {
 public:
  struct State;  ///< volume_state.h; for this room only
  /// Formats what is in the drive and mounts it. no_space, already_exists, access_denied (write protected).
  static async::Task<std::unique_ptr<Volume>> format(Drive& drive, Environment environment,
                                                     FormatOptions options, MountOptions mount_options = {});
  /// not_found (scope cartridge): blank. unsupported (cartridge): no LTFS volume, or one we cannot read.
  /// data_loss (cartridge): damaged beyond reading.
  static async::Task<std::unique_ptr<Volume>> mount(Drive& drive, Environment environment,
                                                    MountOptions options = {});
  ~Volume();

  VolumeInfo info() const;
  const Index& index() const;
  /// Cheap; an estimate, as drives give it. Of the data partition.
  async::Task<Capacity> capacity();
  /// Early warning was met: finish the batch, unmount. begin_file answers no_space from then on.
  bool is_full() const;

  // ---- appending ----
  /// invalid_argument: LTFS cannot hold the path. already_exists, no_space, access_denied (read-only).
  async::Task<void> begin_file(FileSpec spec);
  /// Whole blocks go to the drive straight from `bytes` when the file stands at a block boundary; so feed
  /// multiples of the block size.
  async::Task<void> append(base::ByteView bytes);
  async::Task<StoredFile> finish_file(std::vector<ExtendedAttribute> attributes);
  /// Forgets the open file; its blocks stay as waste. Does nothing when none is open.
  void abandon_file();
  base::Result<void> rename_file(const std::string& from, const std::string& to);
  base::Result<void> remove_file(const std::string& path);

  /// Writes the manifest of everything since the last one. `bundles`: the members of bundles among the new
  /// files. A batch without changes writes nothing and gives the receipt of the last one.
  async::Task<BatchReceipt> write_manifest(std::vector<BundleContents> bundles);
  /// All blocks so far are on the medium, and the drive stands where we think it does (data_loss otherwise).
  async::Task<void> sync();
  /// By the policy of MountOptions; true when an index was written. Call after a batch.
  async::Task<bool> checkpoint_if_due();
  async::Task<void> checkpoint();
  /// Index to the data partition, then to the index partition, then the MAM. Writes nothing when nothing
  /// changed. The volume is unusable afterwards.
  async::Task<void> unmount();

  // ---- reading ----
  /// Fills a prefix of `into`; 0 only at the file's end. Sequential reads go on without a locate; gaps are
  /// zeros. data_loss: the tape does not hold what the extents say. `into` of at least a block, at a block
  /// boundary of the file, is filled by the drive itself.
  async::Task<std::size_t> read(ReadRequest request, base::MutableBytes into);

  /// Smallest n for which /<directory>/<n>... is free, from the entries' leading digits: the next bundle's
  /// number.
  std::uint64_t next_number(std::string_view directory) const;

 private:
  friend async::Task<ImportedVolume> import_scan(Volume& volume);
  async::Task<ImportedVolume> import_members();
  explicit Volume(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

async::Task<ImportedVolume> import_scan(Volume& volume);

}  // namespace reelway::tape::ltfs
