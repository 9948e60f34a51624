#include "vtl/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/checksum.h"

namespace reelway::vtl {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kMagic = 0x3130'4550'4154'5752;  // "RWTAPE01"
constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kPendingMax = 1024;
constexpr std::size_t kWindow = 1024;
constexpr std::size_t kPatternBytes = 64;

struct Header {
  std::uint64_t magic = kMagic;
  std::uint64_t synced_count = 0;
  std::uint32_t epoch = 0;
  std::uint32_t self_crc = 0;
};

template <class T>
base::ByteView raw(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <class T>
std::uint32_t self_crc(const T& value) {
  return base::crc32c(0, raw(value).first(offsetof(T, self_crc)));
}

std::uint64_t record_offset(std::uint64_t number) { return kHeaderBytes + number * sizeof(Record); }

bool repeats_itself(base::ByteView block) {
  return block.size() > kPatternBytes &&
         std::memcmp(block.data(), block.data() + kPatternBytes, block.size() - kPatternBytes) == 0;
}

std::uint64_t stored_bytes(const Record& record) {
  switch (record.kind) {
    case RecordKind::block:
      return record.length;
    case RecordKind::pattern:
      return kPatternBytes;
    case RecordKind::filemark:
      return 0;
  }
  return 0;
}

base::Error broken(std::string_view what) {
  return base::fail(base::Code::data_loss, std::string(what), base::Scope::cartridge);
}

}  // namespace

base::Result<Partition> Partition::open(const std::filesystem::path& folder, std::uint8_t number,
                                        PartitionOptions options) {
  Partition partition;
  partition.options_ = options;
  TRY(partition.data_, File::open(folder / fmt::format("p{}.data", number)));
  TRY(partition.index_, File::open(folder / fmt::format("p{}.index", number)));
  TRY_VOID(partition.recover());
  return partition;
}

Partition::~Partition() {
  // A failure here costs no more than a power cut would: the records were not synced.
  if (!pending_.empty()) (void)write_pending();
}

base::Result<void> Partition::recover() {
  pending_.clear();
  window_.clear();
  count_ = end_position_ = end_offset_ = filemarks_ = synced_count_ = synced_position_ = synced_offset_ = 0;
  TRY(const std::uint64_t index_bytes, index_.size());
  const std::uint64_t in_file =
      index_bytes < kHeaderBytes ? 0 : (index_bytes - kHeaderBytes) / sizeof(Record);
  Header header;
  if (index_bytes >= kHeaderBytes) TRY_VOID(index_.read_at(0, std::as_writable_bytes(std::span(&header, 1))));
  const bool good_header = header.magic == kMagic && header.self_crc == self_crc(header);
  // Without a header every record has to prove itself; epochs never fall.
  epoch_ = good_header ? header.epoch : 0;
  const std::uint64_t trusted = good_header ? std::min(header.synced_count, in_file) : 0;
  count_ = in_file;  // load_record's bound while looking
  std::uint64_t good = trusted;
  if (trusted > 0) {
    TRY(const Record last, load_record(trusted - 1));
    end_position_ = last.position + last.length;
    end_offset_ = last.offset + stored_bytes(last);
    filemarks_ = last.filemarks + (last.kind == RecordKind::filemark ? 1U : 0U);
  }
  synced_count_ = trusted;
  synced_position_ = end_position_;
  synced_offset_ = end_offset_;
  for (; good < in_file; ++good) {
    TRY(const Record next, load_record(good));
    if (!good_header) epoch_ = std::max(epoch_, next.epoch);
    TRY(const bool stands, record_stands(next));
    if (!stands) break;
    end_position_ += next.length;
    end_offset_ += stored_bytes(next);
    if (next.kind == RecordKind::filemark) ++filemarks_;
  }
  count_ = good;
  window_.clear();
  epoch_ = std::max(epoch_, 1U);
  if (good < in_file) {
    // Torn records may lie in the file beyond end of data: a new epoch keeps them from ever standing again.
    ++epoch_;
    TRY_VOID(sync());
    TRY_VOID(index_.truncate(record_offset(count_)));
    TRY_VOID(data_.truncate(end_offset_));
  } else if (good > trusted) {
    TRY_VOID(sync());  // what a host finds after a crash must not go away later
  } else if (index_bytes < kHeaderBytes) {
    TRY_VOID(write_header());  // a new partition: nothing to lose yet
  }
  return {};
}

base::Result<bool> Partition::record_stands(const Record& record) {
  if (record.self_crc != self_crc(record) || record.epoch != epoch_ || record.offset != end_offset_ ||
      record.position != end_position_ || record.filemarks != filemarks_) {
    return false;
  }
  switch (record.kind) {
    case RecordKind::filemark:
      return record.length == 0;
    case RecordKind::pattern:
    case RecordKind::block:
      break;
    default:
      return false;
  }
  TRY(const std::uint64_t data_bytes, data_.size());
  if (record.offset + stored_bytes(record) > data_bytes) return false;
  scratch_.resize(record.length);
  return verify(record, scratch_);
}

base::Result<void> Partition::write_header() {
  Header header{.synced_count = synced_count_, .epoch = epoch_};
  header.self_crc = self_crc(header);
  std::byte block[kHeaderBytes] = {};
  std::memcpy(block, &header, sizeof header);
  return index_.write_at(0, block);
}

base::Result<void> Partition::write_pending() {
  TRY_VOID(index_.write_at(record_offset(count_ - pending_.size()), std::as_bytes(std::span(pending_))));
  pending_.clear();
  return {};
}

base::Result<void> Partition::add(Record record) {
  record.epoch = epoch_;
  record.offset = end_offset_;
  record.position = end_position_;
  record.filemarks = static_cast<std::uint32_t>(filemarks_);
  record.self_crc = self_crc(record);
  pending_.push_back(record);
  ++count_;
  end_position_ += record.length;
  end_offset_ += stored_bytes(record);
  if (record.kind == RecordKind::filemark) ++filemarks_;
  if (pending_.size() >= kPendingMax) TRY_VOID(write_pending());
  return {};
}

base::Result<void> Partition::append(base::ByteView block) {
  Record record{.kind = RecordKind::block,
                .length = static_cast<std::uint32_t>(block.size()),
                .crc = base::crc32c(0, block)};
  if (options_.pattern && repeats_itself(block)) {
    record.kind = RecordKind::pattern;
    block = block.first(kPatternBytes);
  }
  TRY_VOID(data_.write_at(end_offset_, block));
  return add(record);
}

base::Result<void> Partition::append_filemark() { return add(Record{.kind = RecordKind::filemark}); }

base::Result<void> Partition::truncate(std::uint64_t number) {
  if (number >= count_) return {};
  TRY(const Record first_lost, record(number));
  TRY_VOID(write_pending());
  ++epoch_;
  count_ = number;
  end_position_ = first_lost.position;
  end_offset_ = first_lost.offset;
  filemarks_ = first_lost.filemarks;
  window_.clear();
  // What remains and was not synced has an old epoch from now on, so it is synced with the header.
  TRY_VOID(sync());
  TRY_VOID(index_.truncate(record_offset(count_)));
  return data_.truncate(end_offset_);
}

base::Result<void> Partition::sync() {
  TRY_VOID(write_pending());
  if (options_.sync) {
    TRY_VOID(data_.sync());
    TRY_VOID(index_.sync());
  }
  synced_count_ = count_;
  synced_position_ = end_position_;
  synced_offset_ = end_offset_;
  TRY_VOID(write_header());
  if (options_.sync) TRY_VOID(index_.sync());
  return {};
}

base::Result<Record> Partition::load_record(std::uint64_t number) {
  if (number < window_first_ || number >= window_first_ + window_.size()) {
    const std::uint64_t in_file = count_ - pending_.size();
    window_first_ = number;
    window_.resize(std::min<std::uint64_t>(kWindow, in_file - number));
    if (auto loaded = index_.read_at(record_offset(number), std::as_writable_bytes(std::span(window_)));
        !loaded) {
      window_.clear();
      return loaded.error();
    }
  }
  return window_[number - window_first_];
}

base::Result<Record> Partition::record(std::uint64_t number) {
  if (number >= count_)
    return base::fail(base::Code::out_of_range, fmt::format("object {} of {}", number, count_));
  const std::uint64_t first_pending = count_ - pending_.size();
  if (number >= first_pending) return pending_[number - first_pending];
  TRY(const Record record, load_record(number));
  if (record.self_crc != self_crc(record))
    return broken(fmt::format("record of object {} is damaged", number));
  return record;
}

base::Result<bool> Partition::verify(const Record& record, base::MutableBytes whole) {
  TRY_VOID(data_.read_at(record.offset, whole.first(stored_bytes(record))));
  if (record.kind == RecordKind::pattern) {
    for (std::size_t at = kPatternBytes; at < whole.size(); at += kPatternBytes) {
      std::memcpy(whole.data() + at, whole.data(), std::min(kPatternBytes, whole.size() - at));
    }
  }
  return base::crc32c(0, whole) == record.crc;
}

base::Result<void> Partition::read(const Record& record, base::MutableBytes out) {
  const bool whole = out.size() >= record.length;
  if (!whole) scratch_.resize(record.length);  // the CRC covers all of the block
  const base::MutableBytes into = whole ? out.first(record.length) : base::MutableBytes(scratch_);
  TRY(const bool good, verify(record, into));
  if (!good) return broken("block fails its CRC");
  if (!whole) std::memcpy(out.data(), scratch_.data(), out.size());
  return {};
}

base::Result<std::uint64_t> Partition::filemark(std::uint64_t n) {
  if (n >= filemarks_)
    return base::fail(base::Code::out_of_range, fmt::format("filemark {} of {}", n, filemarks_));
  // The last object with at most n filemarks before it is the filemark itself.
  std::uint64_t low = 0;
  std::uint64_t high = count_;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    TRY(const Record at, record(middle));
    (at.filemarks <= n ? low : high) = middle;
  }
  return low;
}

base::Result<std::uint64_t> Partition::position_of(std::uint64_t number) {
  if (number >= count_) return end_position_;
  TRY(const Record at, record(number));
  return at.position;
}

base::Result<std::uint64_t> Partition::filemarks_before(std::uint64_t number) {
  if (number >= count_) return filemarks_;
  TRY(const Record at, record(number));
  return at.filemarks;
}

namespace {

/// Pages of a part of a file that was not synced come back as zeros, here and there.
base::Result<void> tear(File& file, base::ByteRange part, base::Rng& rng) {
  constexpr std::uint64_t kPage = 4096;
  static constexpr std::byte kZeros[kPage] = {};
  for (std::uint64_t at = part.offset; at < part.end(); at = (at / kPage + 1) * kPage) {
    if (rng.below(8) != 0) continue;
    const std::uint64_t length = std::min((at / kPage + 1) * kPage, part.end()) - at;
    TRY_VOID(file.write_at(at, std::span(kZeros).first(length)));
  }
  return {};
}

base::Result<void> lose(File& file, base::ByteRange unsynced, base::Rng& rng) {
  const std::uint64_t kept = unsynced.length == 0 ? 0 : rng.below(unsynced.length + 1);
  TRY_VOID(file.truncate(unsynced.offset + kept));
  return tear(file, {.offset = unsynced.offset, .length = kept}, rng);
}

}  // namespace

base::Result<void> Partition::lose_power(base::Rng& rng) {
  TRY_VOID(write_pending());
  TRY_VOID(lose(data_, {.offset = synced_offset_, .length = end_offset_ - synced_offset_}, rng));
  const std::uint64_t synced = record_offset(synced_count_);
  TRY_VOID(lose(index_, {.offset = synced, .length = record_offset(count_) - synced}, rng));
  return recover();
}

base::Result<void> Partition::flip_bit(std::uint64_t number) {
  TRY(const Record target, record(number));
  if (stored_bytes(target) == 0) return base::fail(base::Code::not_found, "object has no bytes");
  std::byte one[1];
  const std::uint64_t at = target.offset + stored_bytes(target) / 2;
  TRY_VOID(data_.read_at(at, one));
  one[0] ^= std::byte{0x10};
  return data_.write_at(at, one);
}

}  // namespace reelway::vtl
