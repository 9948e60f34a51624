#pragma once
// One partition of a cartridge: a data file (the blocks' bytes, end to end) and an index file (a header, then
// a record of 40 bytes for each block and filemark, in order; the record's number is the logical object
// number). Blocks are written straight from the caller's memory; records go to the file in batches.
//
// Crash safety: the header says how many records are synced, and the epoch, which grows with every truncation
// and is durable before the truncation happens. On opening, records past the synced count stand only as far
// as they are unbroken: own CRC good, epoch the header's, positions continuous, the block's bytes good. So
// end of data is always behind everything that sync() covered, and a record of an overwritten tail never
// comes back. One thread at a time.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/rng.h"
#include "vtl/file.h"

namespace reelway::vtl {

enum class RecordKind : std::uint8_t { block = 1, pattern = 2, filemark = 3 };

/// As it lies in the index file (little-endian hosts only).
struct Record {
  RecordKind kind = RecordKind::block;
  std::uint8_t reserved[3] = {};
  std::uint32_t length = 0;  ///< of the block
  std::uint32_t crc = 0;     ///< CRC32C of the block
  std::uint32_t epoch = 0;
  std::uint64_t offset = 0;     ///< of its bytes in the data file
  std::uint64_t position = 0;   ///< block bytes before it on the partition
  std::uint32_t filemarks = 0;  ///< before it
  std::uint32_t self_crc = 0;   ///< CRC32C of what precedes
};
static_assert(sizeof(Record) == 40);

struct PartitionOptions {
  bool sync = true;
  bool pattern = false;  ///< store blocks that repeat their first 64 bytes as those
};

class Partition {
 public:
  /// `folder`/p<number>.{data,index}; made when absent.
  static base::Result<Partition> open(const std::filesystem::path& folder, std::uint8_t number,
                                      PartitionOptions options);
  Partition(Partition&&) noexcept = default;
  Partition& operator=(Partition&&) noexcept = default;
  ~Partition();  ///< writes the records that wait; does not sync

  std::uint64_t count() const { return count_; }  ///< objects; the number of end of data
  std::uint64_t bytes() const { return end_position_; }
  std::uint64_t filemarks() const { return filemarks_; }
  std::uint64_t unsynced_count() const { return count_ - synced_count_; }
  std::uint64_t unsynced_bytes() const { return end_position_ - synced_position_; }

  base::Result<Record> record(std::uint64_t number);
  /// The first block of the record's bytes into `out` (at most the block); data_loss when the block fails its
  /// CRC.
  base::Result<void> read(const Record& record, base::MutableBytes out);
  /// The object number of the n-th filemark, n < filemarks().
  base::Result<std::uint64_t> filemark(std::uint64_t n);
  /// Block bytes and filemarks before object `number` (may be count()).
  base::Result<std::uint64_t> position_of(std::uint64_t number);
  base::Result<std::uint64_t> filemarks_before(std::uint64_t number);

  base::Result<void> append(base::ByteView block);
  base::Result<void> append_filemark();
  /// End of data at `number`.
  base::Result<void> truncate(std::uint64_t number);
  /// What was appended so far is durable: data first, then its records.
  base::Result<void> sync();

  base::Result<void> lose_power(base::Rng& rng);
  base::Result<void> flip_bit(std::uint64_t number);

 private:
  Partition() = default;
  base::Result<void> recover();
  base::Result<bool> record_stands(const Record& record);
  base::Result<void> write_header();
  base::Result<void> write_pending();
  base::Result<void> add(Record record);
  base::Result<Record> load_record(std::uint64_t number);
  base::Result<bool> verify(const Record& record, base::MutableBytes whole);

  PartitionOptions options_;
  File data_, index_;
  std::uint32_t epoch_ = 1;
  std::uint64_t count_ = 0, end_position_ = 0, end_offset_ = 0, filemarks_ = 0;
  std::uint64_t synced_count_ = 0, synced_position_ = 0, synced_offset_ = 0;
  std::vector<Record> pending_;  ///< the last records, not in the file yet
  std::vector<Record> window_;   ///< records [window_first_, ...) as read from the file
  std::uint64_t window_first_ = 0;
  std::vector<std::byte> scratch_;
};

}  // namespace reelway::vtl
