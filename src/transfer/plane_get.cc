#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <utility>

#include "base/checksum.h"
#include "transfer/plane.h"
#include "transfer/plane_choice.h"

namespace reelway::transfer {
namespace {

using namespace boost::asio::experimental::awaitable_operators;
using base::Code;
using base::Result;
using rdma::DeclineReason;

/// Smaller objects are read into a chunk and pushed from there, as mapping a file has its price.
constexpr std::uint64_t kPagesBytesMin = 64 * base::kKiB + 1;

struct Pushed {
  std::uint64_t bytes = 0;
  std::uint64_t crc64nvme = 0;
};

async::Task<void> add_checksum(std::uint64_t& crc, base::ByteView bytes, bool wanted) {
  if (wanted) crc = base::crc64nvme(crc, bytes);
  co_return Result<void>{};
}

async::Task<std::size_t> read_next(object::ByteSource& source, base::MutableBytes into) {
  if (into.empty()) co_return std::size_t{0};
  co_return co_await object::read_full(source, into);
}

/// One chunk on the wire (and under the checksum) while the next is read.
async::Task<Pushed> push_all(object::ByteSource& source, std::uint64_t length, Lease& lease, bool checksum) {
  Pushed pushed;
  const std::vector<base::Chunk>& chunks = *lease.chunks;
  const std::size_t chunk_bytes = chunks.front().bytes().size();
  const auto next_size = [&](std::uint64_t done) {
    return static_cast<std::size_t>(std::min<std::uint64_t>(chunk_bytes, length - done));
  };
  std::size_t current = 0;
  std::size_t filled = next_size(0);
  CO_TRY(const std::size_t first, co_await read_next(source, chunks[current].bytes().first(filled)));
  if (first != filled) co_return base::fail(Code::data_loss, "the object ended early", base::Scope::object);
  while (filled > 0) {
    const base::ByteView bytes = chunks[current].bytes().first(filled);
    const std::size_t other = (current + 1) % chunks.size();
    const std::size_t wanted = next_size(pushed.bytes + filled);
    auto push = lease.transfer->push(pushed.bytes, bytes);
    auto read = read_next(source, chunks[other].bytes().first(wanted));
    auto add = add_checksum(pushed.crc64nvme, bytes, checksum);
    const auto [on_wire, next, added] = co_await (std::move(push) && std::move(read) && std::move(add));
    if (!on_wire) co_return on_wire.error();
    if (!next) co_return next.error();
    if (*next != wanted) co_return base::fail(Code::data_loss, "the object ended early", base::Scope::object);
    pushed.bytes += filled;
    filled = wanted;
    current = other;
  }
  co_return pushed;
}

/// The open file whose pages the plane may push as they are; none where the bytes must be looked at.
std::optional<rdma::FileRange> pages_of(const object::Reader& reader, const rdma::Plane& plane,
                                        bool checksum) {
  if (checksum || !plane.pushes_files() || reader.range().length < kPagesBytesMin) return std::nullopt;
  const auto segment = reader.file_segment();
  if (!segment) return std::nullopt;
  return rdma::FileRange{.file = segment->descriptor, .offset = segment->offset, .length = segment->length};
}

async::Task<Pushed> push_pages(rdma::FileRange pages, Lease& lease) {
  CO_TRY_VOID(co_await lease.transfer->push_file(0, pages));
  co_return Pushed{.bytes = pages.length, .crc64nvme = 0};
}

/// Of a whole object the checksum is known since its PUT: a client that compares then proves disk and wire at
/// once.
std::optional<std::uint64_t> recorded_crc64nvme(const object::Reader& reader) {
  if (reader.range() != base::ByteRange{.offset = 0, .length = reader.info().size}) return std::nullopt;
  for (const auto& checksum : reader.info().checksums) {
    if (checksum.kind != base::ChecksumKind::crc64nvme || checksum.composite_part_count != 0) continue;
    const auto value = base::parse_hex_u64(base::to_hex(checksum.value));
    if (value) return *value;
  }
  return std::nullopt;
}

PlaneGet declined(const Refusal& refusal, std::string plane, bool partial, bool required) {
  return {.answer = refusal.reason ? rdma::get_declined(partial, *refusal.reason, required)
                                   : rdma::malformed_token(),
          .crc64nvme = {},
          .plane = std::move(plane),
          .detail = refusal.detail};
}

}  // namespace

async::Task<PlaneGet> get_by_plane(rdma::Planes& planes, base::BufferPool& pool, const base::Clock& clock,
                                   std::string_view token, const base::HttpPeer& peer, object::Reader& reader,
                                   bool partial, bool required, PlaneOptions options) {
  const std::uint64_t length = reader.range().length;
  auto chosen = choose_plane(planes, token, peer);
  if (const auto* refusal = std::get_if<Refusal>(&chosen))
    co_return declined(*refusal, "", partial, required);
  const auto& choice = std::get<rdma::Choice>(chosen);
  PlaneGet get{.answer = {}, .crc64nvme = {}, .plane = choice.window.plane, .detail = {}};
  if (length > choice.window.length) {
    const Refusal refusal{.reason = DeclineReason::size, .detail = "declined (size)"};
    co_return declined(refusal, choice.window.plane, partial, required);
  }
  const auto recorded = options.checksum ? recorded_crc64nvme(reader) : std::nullopt;
  Pushed pushed;
  if (length > 0) {
    const bool checksum = options.checksum && !recorded;
    const auto pages = pages_of(reader, *choice.plane, checksum);
    const std::size_t chunk_count = pages ? 0 : length > pool.chunk_bytes(base::PoolShare::planes) ? 2 : 1;
    CO_TRY(Lease lease, co_await lease_window(choice, pool, clock, length, chunk_count, options));
    if (lease.refusal) co_return declined(*lease.refusal, choice.window.plane, partial, required);
    const auto result =
        pages ? co_await push_pages(*pages, lease) : co_await push_all(reader, length, lease, checksum);
    CO_TRY_VOID(co_await lease.transfer->fence());
    if (!result) {
      get.answer = rdma::transfer_failed();
      get.detail = choice.window.plane + " failed for window " + choice.window.token_hash + ": " +
                   to_string(result.error());
      co_return get;
    }
    pushed = *result;
  }
  if (options.checksum) get.crc64nvme = recorded.value_or(pushed.crc64nvme);
  get.moved = true;
  get.bytes = pushed.bytes;
  get.answer = rdma::get_moved(partial, get.bytes, get.crc64nvme);
  co_return get;
}

}  // namespace reelway::transfer
