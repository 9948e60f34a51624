// Reading files by their extents.

#include <algorithm>
#include <cstring>

#include "tape/ltfs/volume_state.h"

namespace reelway::tape::ltfs {

using async::Task;
using base::Code;
using base::fail;
using base::Result;
using base::Scope;

namespace {

constexpr std::uint64_t kReadThroughBytes =
    64 << 20;  // a gap shorter than this is read over: quicker than any locate

base::Error missing(std::uint64_t block) {
  return fail(Code::data_loss, "block " + std::to_string(block) + " is not what the extent says",
              Scope::cartridge, base::Retry::elsewhere);
}

/// The extent that holds `offset`, or how many zeros lead to the next one.
struct Place {
  const Extent* extent = nullptr;
  std::uint64_t zeros = 0;
};

Place find_place(const ReadRequest& request) {
  auto next = request.file_length;
  for (const auto& extent : request.extents) {
    if (request.offset >= extent.file_offset && request.offset - extent.file_offset < extent.byte_count)
      return {&extent, 0};
    if (extent.file_offset > request.offset) next = std::min(next, extent.file_offset);
  }
  return {nullptr, next - request.offset};
}

}  // namespace

/// Reads over short gaps instead of locating.
Task<void> Volume::State::approach(Position to) {
  const auto here = drive.position();
  const bool near = drive.is_at(here) && here.partition == to.partition && to.block > here.block &&
                    (to.block - here.block) * block_bytes() <= kReadThroughBytes;
  if (!near) co_return co_await go_to(to);
  cached_at.reset();
  while (drive.position().block < to.block) {
    const auto read = co_await drive.read_block(cached);
    if (!read) co_return co_await go_to(to);  // a block that nobody asked for
  }
  co_return check_readable();
}

Task<std::size_t> Volume::State::read_block_of(BlockSpan span, base::MutableBytes into) {
  CO_TRY_VOID(co_await approach(span.position));
  CO_TRY(const auto read, co_await drive.read_block(into));
  CO_TRY_VOID(check_readable());
  if (read.end != ReadEnd::block || read.bytes < span.skip + span.wanted)
    co_return missing(span.position.block);
  co_return read.bytes;
}

Task<std::size_t> Volume::read(ReadRequest request, base::MutableBytes into) {
  auto& state = *state_;
  CO_TRY_VOID(state.check_readable());
  if (into.empty() || request.offset >= request.file_length) co_return std::size_t{0};
  const auto place = find_place(request);
  if (place.extent == nullptr) {
    const auto zeros = static_cast<std::size_t>(std::min<std::uint64_t>(place.zeros, into.size()));
    std::ranges::fill(into.first(zeros), std::byte{0});
    co_return zeros;
  }
  const auto& extent = *place.extent;
  const auto block_bytes = state.block_bytes();
  if (state.cached.empty()) state.cached.resize(block_bytes);
  auto in_extent = request.offset - extent.file_offset;
  auto rest = std::min(extent.byte_count - in_extent, request.file_length - request.offset);
  std::size_t filled = 0;
  while (rest > 0 && filled < into.size()) {
    const auto from_start = extent.byte_offset + in_extent;
    State::BlockSpan span{.position = {.partition = state.number_of(extent.partition),
                                       .block = extent.start_block + from_start / block_bytes},
                          .skip = static_cast<std::size_t>(from_start % block_bytes)};
    span.wanted = static_cast<std::size_t>(std::min<std::uint64_t>(rest, block_bytes - span.skip));
    const auto target = into.subspan(filled);
    const bool direct = span.skip == 0 && target.size() >= block_bytes && state.cached_at != span.position;
    if (direct) {
      CO_TRY_VOID(co_await state.read_block_of(span, target.first(block_bytes)));
    } else {
      CO_TRY_VOID(co_await state.fill_cache(span));
      span.wanted = std::min(span.wanted, target.size());
      std::memcpy(target.data(), state.cached.data() + span.skip, span.wanted);
    }
    filled += span.wanted;
    in_extent += span.wanted;
    rest -= span.wanted;
  }
  co_return filled;
}

Task<void> Volume::State::fill_cache(BlockSpan span) {
  if (cached_at == span.position) {
    if (cached_bytes < span.skip + span.wanted) co_return missing(span.position.block);
    co_return Result<void>{};
  }
  cached_at.reset();
  CO_TRY(cached_bytes, co_await read_block_of(span, cached));
  cached_at = span.position;
  co_return Result<void>{};
}

}  // namespace reelway::tape::ltfs
