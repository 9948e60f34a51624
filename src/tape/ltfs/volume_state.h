#pragma once
// What a mounted volume knows; shared by the parts of its implementation only.

#include <optional>
#include <string>
#include <vector>

#include "tape/ltfs/volume.h"

namespace reelway::tape::ltfs {

struct Volume::State {
  struct OpenFile {
    FileSpec spec;
    std::uint64_t start_block = 0;
    std::uint64_t length = 0;
    std::size_t staged = 0;  // bytes in `staging`
  };

  State(Drive& drive_in, Environment environment_in, MountOptions options_in)
      : drive(drive_in), environment(environment_in), options(options_in) {}

  Drive& drive;
  Environment environment;
  MountOptions options;
  std::string serial;
  std::string medium_serial;
  Label label;
  std::uint32_t index_partition = kIndexPartition;  // SCSI numbers of the label's letters
  std::uint32_t data_partition = kDataPartition;
  std::uint64_t change_count = 0;  // the drive's, when the volume was verified
  bool failed = false;             // a write went wrong: nothing more is written
  bool mounted_by_scan = false;
  std::uint64_t batches_recovered = 0;
  std::vector<std::string> problems;

  Index index;
  std::optional<std::uint64_t> data_index_block;         // start of the last index on the data partition
  std::uint64_t index_partition_append = kContentBlock;  // where the next index on the index partition begins
  bool index_changed = false;    // the index in memory is not the last one on the data partition
  bool data_incomplete = false;  // the data partition does not end in an index
  bool index_partition_stale = false;
  bool index_partition_damaged = false;  // it did not end in an index
  bool memory_stale = false;             // the cartridge memory is not coherent
  std::uint64_t index_bytes = 0;         // of the last index's text
  std::uint64_t bytes_since_index = 0;
  std::uint64_t index_growth_bytes = 0;  // about what the next index has more than the last

  std::optional<std::uint64_t> append_block;  // end of data of the data partition, once read from the drive
  std::uint64_t remaining_bytes = 0;          // of the data partition, estimated
  bool full = false;                          // a file did not fit
  std::optional<OpenFile> open;
  base::Bytes staging;  // one block: the tail of the open file

  std::vector<Change> changes;  // since the last manifest
  BatchReceipt last_batch;      // number 0: none
  std::optional<std::uint64_t> last_trailer;

  base::Bytes cached;  // one block that was read
  std::optional<Position> cached_at;
  std::size_t cached_bytes = 0;

  std::uint32_t number_of(char partition) const {
    return partition == label.index_partition ? index_partition : data_partition;
  }
  std::size_t block_bytes() const { return label.block_bytes; }
  std::string creator(std::string_view reason) const;

  base::Result<void> check_readable() const;
  base::Result<void> check_writable() const;
  /// Space that the manifest, indexes and marks still to come may need.
  std::uint64_t reserve_bytes() const;
  bool has_room(std::uint64_t bytes) const {
    return remaining_bytes >= bytes && remaining_bytes - bytes >= reserve_bytes();
  }

  /// Locates unless the drive stands there, and makes sure that it is still the same cartridge.
  async::Task<void> go_to(Position to);
  /// Stands at the end of data of the data partition, as the drive says it.
  async::Task<void> go_to_append();
  async::Task<void> read_end_of_data();
  async::Task<void> read_capacity();
  /// Takes the coherency information away before the first write: a drive changes its counter once per load
  /// only, so what was coherent could go on looking so.
  async::Task<void> revoke_coherency();
  struct BlockSpan {  // bytes within one block
    Position position;
    std::size_t skip = 0;
    std::size_t wanted = 0;
  };
  async::Task<void> approach(Position to);
  async::Task<std::size_t> read_block_of(BlockSpan span, base::MutableBytes into);
  async::Task<void> fill_cache(BlockSpan span);
  /// One block at the append position.
  async::Task<void> write(base::ByteView block);
  async::Task<void> write_all(base::ByteView bytes);
  async::Task<void> flush();
  async::Task<BatchReceipt> write_manifest_file(std::vector<BundleContents> bundles);
  /// Filemark, index, filemark, flushed, at the drive's position.
  async::Task<void> write_index(char partition);
  async::Task<void> write_data_index();
  async::Task<void> write_index_partition();
  async::Task<void> write_coherency();
  /// A write failed for good.
  base::Error give_up(base::Error error);
};

/// The file that a manifest is, as its trailer tells.
File manifest_file(const ManifestTrailer& trailer, std::size_t trailer_bytes, char partition);
/// Applies a batch's changes and its own file to the index.
base::Result<void> apply_manifest(const Manifest& manifest, const ManifestTrailer& trailer,
                                  std::size_t trailer_bytes, char partition, Index& index);

}  // namespace reelway::tape::ltfs
