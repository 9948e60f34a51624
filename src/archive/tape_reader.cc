#include "archive/tape_reader.h"

#include <algorithm>
#include <cstring>

#include "async/pool_wait.h"

namespace reelway::archive {

using base::Code;
using base::Result;

namespace {

constexpr base::Duration kBufferPatience = std::chrono::minutes{5};
constexpr std::uint64_t kReadThroughGap =
    1 << 20;  ///< between neighbours in a bundle; far below what a locate costs

class TapeReader {
 public:
  TapeReader(ReadJob job, async::Channel<TapeParcel>& out)
      : job_(std::move(job)), out_(out), block_(job_.volume.info().block_bytes) {}

  async::Task<void> run() {
    while (next_ < job_.copies.size() && !job_.stopping() && !yields()) {
      auto chunks = co_await async::take_chunks(job_.buffers, base::PoolShare::drives, 1, kBufferPatience);
      if (!chunks.has_value()) co_return chunks.error();
      TapeParcel parcel{.memory = std::move(chunks->front()), .slices = {}};
      const std::size_t room = parcel.memory.bytes().size();
      if (room < 4 * std::size_t{block_})
        co_return base::fail(Code::too_large, "the volume's blocks are too large for the buffers",
                             base::Scope::cartridge);
      if (part_done_ > 0 || job_.copies[next_].length > room - 2 * std::size_t{block_}) {
        CO_TRY_VOID(co_await fill_part(parcel));
      } else {
        CO_TRY_VOID(co_await fill_group(parcel));
      }
      CO_TRY_VOID(co_await out_.send(std::move(parcel)));
    }
    co_return Result<void>{};
  }

 private:
  bool yields() const { return part_done_ == 0 && job_.yields && job_.yields(next_); }

  /// The block that was read last and only in part wanted.
  struct Tail {
    std::string path;
    std::uint64_t begin = 0;
    std::vector<std::byte> bytes;
    std::uint64_t end() const { return begin + bytes.size(); }
  };

  Result<const tape::ltfs::File*> file_of(const CopyRow& copy) const {
    const tape::ltfs::File* file = job_.volume.index().find_file(copy.path);
    if (file == nullptr || copy.offset + copy.length > file->length) {
      return base::fail(Code::data_loss, copy.path + " is not on the volume as the catalog has it",
                        base::Scope::object, base::Retry::elsewhere);
    }
    return file;
  }

  /// True when the whole drive or volume is in doubt, not only the bytes asked for.
  static bool is_fatal(const base::Error& error) {
    return error.scope == base::Scope::drive || error.scope == base::Scope::library ||
           error.scope == base::Scope::node || error.code == Code::cancelled ||
           error.code == Code::unavailable || error.code == Code::deadline_exceeded;
  }

  /// [begin, end) of a file; the view lies in `memory`, which has room for one block before and one after.
  async::Task<base::ByteView> read_span(const std::string& path, const tape::ltfs::File& file,
                                        base::ByteRange range, base::MutableBytes memory) {
    if (range.length == 0) co_return base::ByteView{};
    std::uint64_t at = range.offset - range.offset % block_;
    const std::uint64_t begin = at;
    std::size_t filled = 0;
    if (tail_.path == path && tail_.begin == begin && !tail_.bytes.empty()) {
      std::memcpy(memory.data(), tail_.bytes.data(), tail_.bytes.size());
      filled = tail_.bytes.size();
      at = tail_.end();
    }
    const std::uint64_t end =
        std::min<std::uint64_t>(file.length, (range.end() + block_ - 1) / block_ * block_);
    while (at < end) {
      const tape::ltfs::ReadRequest request{
          .extents = file.extents, .file_length = file.length, .offset = at};
      const base::MutableBytes into = memory.subspan(filled, static_cast<std::size_t>(end - at));
      auto count = co_await job_.volume.read(request, into);
      if (!count.has_value()) {
        tail_ = {};
        co_return count.error();
      }
      if (*count == 0)
        co_return base::fail(Code::data_loss, path + " ends early on tape", base::Scope::object,
                             base::Retry::elsewhere);
      filled += *count;
      at += *count;
    }
    const std::uint64_t last_block = end == begin ? begin : (end - 1) / block_ * block_;
    const auto kept = memory.subspan(static_cast<std::size_t>(last_block - begin),
                                     static_cast<std::size_t>(end - last_block));
    tail_ = {.path = path, .begin = last_block, .bytes = {kept.begin(), kept.end()}};
    co_return base::ByteView(memory.subspan(static_cast<std::size_t>(range.offset - begin),
                                            static_cast<std::size_t>(range.length)));
  }

  /// As many neighbours as fit in one read.
  async::Task<void> fill_group(TapeParcel& parcel) {
    const std::size_t from = next_;
    const CopyRow& first = job_.copies[from];
    const std::uint64_t room = parcel.memory.bytes().size() - 2 * std::uint64_t{block_};
    std::uint64_t end = first.offset + first.length;
    std::size_t to = from + 1;
    for (; to < job_.copies.size(); ++to) {
      const CopyRow& copy = job_.copies[to];
      const bool neighbour = copy.bundled && copy.path == first.path && copy.offset >= end &&
                             copy.offset - end <= kReadThroughGap;
      if (!neighbour || copy.offset + copy.length - first.offset > room) break;
      end = copy.offset + copy.length;
    }
    next_ = to;
    const auto file = file_of(first);
    if (file.has_value()) {
      const base::ByteRange range{first.offset, end - first.offset};
      auto bytes = co_await read_span(first.path, **file, range, parcel.memory.bytes());
      if (bytes.has_value()) {
        for (std::size_t i = from; i < to; ++i) {
          const CopyRow& copy = job_.copies[i];
          const auto view = bytes->subspan(static_cast<std::size_t>(copy.offset - first.offset),
                                           static_cast<std::size_t>(copy.length));
          parcel.slices.push_back({.entry = i, .bytes = view, .first = true, .last = true});
        }
        co_return Result<void>{};
      }
      if (is_fatal(bytes.error())) co_return bytes.error();
      if (to - from > 1) co_return co_await fill_one_by_one(parcel, from, to);
      parcel.slices.push_back({.entry = from, .first = true, .last = true, .error = bytes.error()});
      co_return Result<void>{};
    }
    for (std::size_t i = from; i < to; ++i)
      parcel.slices.push_back({.entry = i, .first = true, .last = true, .error = file.error()});
    co_return Result<void>{};
  }

  /// After a failed span. Each object gets memory of its own in the chunk as long as there is some; the rest
  /// comes with the next parcels.
  async::Task<void> fill_one_by_one(TapeParcel& parcel, std::size_t from, std::size_t to) {
    std::size_t used = 0;
    for (std::size_t i = from; i < to; ++i) {
      const CopyRow& copy = job_.copies[i];
      const std::size_t needed = static_cast<std::size_t>(copy.length) + 2 * std::size_t{block_};
      if (used + needed > parcel.memory.bytes().size()) {
        next_ = i;
        break;
      }
      const auto file = file_of(copy);
      auto bytes = file.has_value() ? co_await read_span(copy.path, **file, {copy.offset, copy.length},
                                                         parcel.memory.bytes().subspan(used, needed))
                                    : Result<base::ByteView>(file.error());
      if (!bytes.has_value() && is_fatal(bytes.error())) co_return bytes.error();
      TapeSlice slice{.entry = i, .first = true, .last = true};
      if (bytes.has_value())
        slice.bytes = *bytes;
      else
        slice.error = bytes.error();
      parcel.slices.push_back(std::move(slice));
      used += needed;
    }
    co_return Result<void>{};
  }

  async::Task<void> fill_part(TapeParcel& parcel) {
    const CopyRow& copy = job_.copies[next_];
    TapeSlice slice{.entry = next_, .first = part_done_ == 0};
    const std::uint64_t room = parcel.memory.bytes().size() - 2 * std::uint64_t{block_};
    const std::uint64_t length = std::min(room - room % block_, copy.length - part_done_);
    const auto file = file_of(copy);
    auto bytes = file.has_value() ? co_await read_span(copy.path, **file, {copy.offset + part_done_, length},
                                                       parcel.memory.bytes())
                                  : Result<base::ByteView>(file.error());
    if (!bytes.has_value() && is_fatal(bytes.error())) co_return bytes.error();
    if (bytes.has_value())
      slice.bytes = *bytes;
    else
      slice.error = bytes.error();
    part_done_ += length;
    slice.last = slice.error.has_value() || part_done_ == copy.length;
    if (slice.last) {
      part_done_ = 0;
      ++next_;
    }
    parcel.slices.push_back(std::move(slice));
    co_return Result<void>{};
  }

  ReadJob job_;
  async::Channel<TapeParcel>& out_;
  std::uint32_t block_;
  std::size_t next_ = 0;
  std::uint64_t part_done_ = 0;
  Tail tail_;
};

}  // namespace

async::Task<void> read_copies(ReadJob job, async::Channel<TapeParcel>& out) {
  TapeReader reader(std::move(job), out);
  const Result<void> ran = co_await reader.run();
  out.close();
  if (!ran.has_value() && ran.error().code != Code::closed) co_return ran.error();
  co_return Result<void>{};
}

}  // namespace reelway::archive
