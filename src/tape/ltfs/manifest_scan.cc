#include "tape/ltfs/manifest_scan.h"

#include <algorithm>

#include "base/checksum.h"

namespace reelway::tape::ltfs {

using async::Task;
using base::Code;
using base::fail;
using base::Result;
using base::Scope;

namespace {

constexpr std::uint64_t kFirstWindowBlocks = 16;
constexpr std::uint64_t kLastWindowBlocks = 4096;
constexpr std::uint64_t kBodyBytesMax = 4ull << 30;
constexpr std::uint64_t kBadBlocksMax = 64;  // in one search; more, and the medium is gone

base::Error damaged(std::string_view what) {
  return fail(Code::data_loss, "batch manifest: " + std::string(what), Scope::cartridge,
              base::Retry::elsewhere);
}

bool is_fatal(const base::Error& error) {
  return error.scope == Scope::drive || error.scope == Scope::library || error.code == Code::unavailable;
}

/// A trailer must be of this volume and stand where it says: a user's object may hold anything, an image of
/// another volume too.
Result<ManifestTrailer> check_trailer(const Volume::State& state, base::ByteView record,
                                      std::uint64_t block) {
  TRY(auto trailer, decode_trailer(record));
  if (trailer.volume_uuid != state.label.volume_uuid || trailer.own_block != block) {
    return fail(Code::not_found, "a manifest trailer of another place", Scope::object);
  }
  const auto blocks = trailer.own_block - trailer.start_block;
  const auto needed = (trailer.body_bytes + state.block_bytes() - 1) / state.block_bytes();
  if (trailer.start_block < kContentBlock || trailer.body_bytes > kBodyBytesMax || blocks != needed) {
    return damaged("a trailer of impossible content");
  }
  if (trailer.previous_block && *trailer.previous_block >= trailer.start_block)
    return damaged("a chain that does not go back");
  return trailer;
}

/// The last trailer in [from, to), reading forward.
Task<std::optional<std::uint64_t>> search_window(Volume::State& state, std::uint64_t from, std::uint64_t to,
                                                 std::uint64_t& bad_blocks) {
  std::optional<std::uint64_t> last;
  CO_TRY_VOID(co_await state.go_to({.partition = state.data_partition, .block = from}));
  for (auto block = from; block < to; ++block) {
    const auto read = co_await state.drive.read_block(state.cached);
    if (!read) {
      const auto& error = read.error();
      if (is_fatal(error) || ++bad_blocks > kBadBlocksMax) co_return error;
      if (block + 1 < to)
        CO_TRY_VOID(co_await state.go_to({.partition = state.data_partition, .block = block + 1}));
      continue;
    }
    if (read->end == ReadEnd::end_of_data) break;
    if (read->end != ReadEnd::block) continue;
    if (check_trailer(state, base::ByteView(state.cached).first(read->bytes), block)) last = block;
  }
  co_return last;
}

/// Backwards from the end of data, in windows that grow, each read forward at streaming speed.
Task<std::optional<std::uint64_t>> find_last_trailer(Volume::State& state, std::uint64_t from_block) {
  auto high = *state.append_block;
  auto window = kFirstWindowBlocks;
  std::uint64_t bad_blocks = 0;
  while (high > from_block) {
    const auto low = high - std::min(window, high - from_block);
    CO_TRY(const auto found, co_await search_window(state, low, high, bad_blocks));
    if (found) co_return found;
    high = low;
    window = std::min(2 * window, kLastWindowBlocks);
  }
  co_return std::nullopt;
}

}  // namespace

Task<FoundManifest> read_manifest(Volume::State& state, std::uint64_t block) {
  if (state.cached.empty()) state.cached.resize(state.block_bytes());
  state.cached_at.reset();
  CO_TRY_VOID(co_await state.go_to({.partition = state.data_partition, .block = block}));
  CO_TRY(const auto end, co_await state.drive.read_block(state.cached));
  if (end.end != ReadEnd::block) co_return damaged("no trailer where the chain leads");
  FoundManifest found{.manifest = {}, .trailer = {}, .trailer_bytes = end.bytes};
  CO_TRY(found.trailer, check_trailer(state, base::ByteView(state.cached).first(end.bytes), block));
  const auto& trailer = found.trailer;
  CO_TRY_VOID(co_await state.go_to({.partition = state.data_partition, .block = trailer.start_block}));
  std::string body;
  while (body.size() < trailer.body_bytes) {
    CO_TRY(const auto read, co_await state.drive.read_block(state.cached));
    if (read.end != ReadEnd::block || read.bytes == 0 || body.size() + read.bytes > trailer.body_bytes) {
      co_return damaged("its body is not whole");
    }
    body += base::as_text(base::ByteView(state.cached).first(read.bytes));
  }
  if (base::crc32c(0, base::as_bytes(body)) != trailer.body_crc32c)
    co_return damaged("its body fails the CRC");
  CO_TRY(found.manifest, decode_manifest(body));
  if (found.manifest.number != trailer.number || found.manifest.volume_uuid != trailer.volume_uuid) {
    co_return damaged("body and trailer do not belong together");
  }
  co_return found;
}

Task<FoundManifests> find_manifests(Volume::State& state, std::uint64_t from_block) {
  if (state.cached.empty()) state.cached.resize(state.block_bytes());
  state.cached_at.reset();
  FoundManifests out;
  CO_TRY(auto next, co_await find_last_trailer(state, from_block));
  while (next && *next >= from_block) {
    const auto block = *next;
    auto found = co_await read_manifest(state, block);
    if (found) {
      if (found->manifest.number <= state.last_batch.number) break;
      next = found->trailer.previous_block;
      out.manifests.push_back(std::move(*found));
      continue;
    }
    if (is_fatal(found.error())) co_return std::move(found).error();
    out.problems.push_back("batch manifest at block " + std::to_string(block) + ": " + found.error().detail);
    // Its chain may be lost with it: look for the one before by reading.
    const auto append_block = std::exchange(state.append_block, block);
    auto earlier = co_await find_last_trailer(state, from_block);
    state.append_block = append_block;
    if (!earlier) co_return std::move(earlier).error();
    next = *earlier;
  }
  std::ranges::reverse(out.manifests);
  co_return out;
}

}  // namespace reelway::tape::ltfs
