#include "archive/source_stage.h"

#include <algorithm>

#include "archive/join.h"
#include "async/pool_wait.h"
#include "base/checksum.h"

namespace reelway::archive {

using base::Code;
using base::Result;

namespace {

constexpr std::size_t kReadWidth = 16;   ///< small objects read at once
constexpr std::size_t kGroupMax = 1024;  ///< objects in one parcel
constexpr base::Duration kBufferPatience = std::chrono::minutes{5};

base::Error changed(const object::ObjectName& name) {
  return base::fail(Code::precondition_failed, name.bucket + "/" + name.key + " changed while it was read",
                    base::Scope::object, base::Retry::later);
}

/// The CRC64NVME that was recorded at PUT must be the content's: else the disk has lost it, and no tape shall
/// carry that on.
Result<void> check_recorded(const object::ObjectInfo& info, const base::Bytes& crc) {
  for (const object::Checksum& checksum : info.checksums) {
    if (checksum.kind != base::ChecksumKind::crc64nvme || checksum.composite_part_count != 0) continue;
    if (checksum.value != crc) {
      return base::fail(
          Code::data_loss,
          info.name.bucket + "/" + info.name.key + " on disk does not have its checksum any more",
          base::Scope::object);
    }
  }
  return {};
}

class Stage {
 public:
  Stage(SourceEnvironment environment, std::vector<ObjectRow> rows, async::Channel<Parcel>& out)
      : env_(environment),
        rows_(std::move(rows)),
        out_(out),
        chunk_bytes_(env_.buffers.chunk_bytes(base::PoolShare::drives)) {}

  /// While one group is hashed and sent, the next is read.
  async::Task<void> run() {
    std::optional<Group> ready;
    while (ready || next_ < rows_.size()) {
      std::optional<Group> upcoming;
      std::vector<async::Task<void>> both;
      if (ready) both.push_back(finish_group(*ready));
      if (is_small_next()) both.push_back(read_group(upcoming));
      const auto results = co_await join_all(std::move(both));
      for (const Result<void>& result : results) CO_TRY_VOID(result);
      ready = std::move(upcoming);
      if (!ready && next_ < rows_.size()) CO_TRY_VOID(co_await send_large(next_++));
    }
    co_return Result<void>{};
  }

 private:
  struct Slot {
    std::size_t entry = 0;
    base::MutableBytes memory;
    std::optional<Result<WholeObject>> result;
  };
  struct Group {
    Parcel parcel;
    std::vector<Slot> slots;
  };

  bool is_small_next() const {
    return next_ < rows_.size() && rows_[next_].identity.size <= chunk_bytes_ / 4;
  }

  async::Task<base::Chunk> take_chunk() {
    auto chunks = co_await async::take_chunks(env_.buffers, base::PoolShare::drives, 1, kBufferPatience);
    if (!chunks.has_value()) co_return chunks.error();
    co_return std::move(chunks->front());
  }

  /// As many small objects as fit into a chunk.
  async::Task<void> read_group(std::optional<Group>& out) {
    Group& group = out.emplace();
    CO_TRY(group.parcel.memory, co_await take_chunk());
    std::size_t used = 0;
    for (; is_small_next() && group.slots.size() < kGroupMax; ++next_) {
      const auto size = static_cast<std::size_t>(rows_[next_].identity.size);
      if (used + size > chunk_bytes_) break;
      group.slots.push_back(
          {.entry = next_, .memory = group.parcel.memory.bytes().subspan(used, size), .result = {}});
      used += size;
    }
    const std::function<net::awaitable<void>(std::size_t)> work = [this, &group](std::size_t i) {
      return read_slot(group.slots[i]);
    };
    co_await fan_out(group.slots.size(), kReadWidth, work);
    co_return Result<void>{};
  }

  async::Task<void> finish_group(Group& group) {
    co_await hash_slots(group.slots);
    for (Slot& slot : group.slots) {
      if (slot.result->has_value())
        group.parcel.wholes.push_back(std::move(**slot.result));
      else
        group.parcel.failed.push_back({slot.entry, slot.result->error()});
    }
    co_return co_await out_.send(std::move(group.parcel));
  }

  net::awaitable<void> read_slot(Slot& slot) {
    auto whole = co_await read_whole(slot);
    slot.result.emplace(std::move(whole));
  }

  async::Task<WholeObject> read_whole(Slot& slot) {
    const ObjectRow& row = rows_[slot.entry];
    CO_TRY(auto reader, co_await env_.tiered.open_for_archive(row.name));
    if (reader->info().size != slot.memory.size()) co_return changed(row.name);
    if (!slot.memory.empty()) {
      CO_TRY(const std::size_t read, co_await object::read_full(*reader, slot.memory));
      if (read != slot.memory.size()) co_return changed(row.name);
    }
    CO_TRY(auto identity, co_await reader->confirm_unchanged());
    co_return WholeObject{.entry = slot.entry,
                          .info = reader->info(),
                          .identity = std::move(identity),
                          .sha256 = {},
                          .bytes = slot.memory};
  }

  net::awaitable<void> hash_slots(std::vector<Slot>& slots) {
    auto hash = [&slots]() -> Result<void> {
      for (Slot& slot : slots) {
        if (!slot.result->has_value()) continue;
        WholeObject& whole = **slot.result;
        whole.sha256 = base::to_hex(base::digest_of(base::ChecksumKind::sha256, whole.bytes));
        const auto same =
            check_recorded(whole.info, base::digest_of(base::ChecksumKind::crc64nvme, whole.bytes));
        if (!same.has_value()) *slot.result = same.error();
      }
      return {};
    };
    const auto hashed = co_await on_pool(env_.hash_pool, hash);
    if (hashed.has_value()) co_return;
    for (Slot& slot : slots) slot.result.emplace(hashed.error());
  }

  /// An error of the object travels in its last part.
  async::Task<void> send_large(std::size_t entry) {
    ObjectPart end{.entry = entry, .last = true};
    const Result<void> streamed = co_await stream_large(entry, end);
    if (streamed.has_value()) co_return Result<void>{};
    if (streamed.error().code == Code::closed && stopped_) co_return streamed.error();
    end.error = streamed.error();
    Parcel parcel;
    parcel.part = std::move(end);
    co_return co_await out_.send(std::move(parcel));
  }

  async::Task<void> stream_large(std::size_t entry, ObjectPart& end) {
    const ObjectRow& row = rows_[entry];
    CO_TRY(auto reader, co_await env_.tiered.open_for_archive(row.name));
    const std::uint64_t size = reader->info().size;
    const auto sha = base::make_hasher(base::ChecksumKind::sha256);
    const auto crc = base::make_hasher(base::ChecksumKind::crc64nvme);
    std::uint64_t done = 0;
    do {
      Parcel parcel;
      CO_TRY(parcel.memory, co_await take_chunk());
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(chunk_bytes_, size - done));
      const base::MutableBytes into = parcel.memory.bytes().first(wanted);
      if (wanted > 0) {
        CO_TRY(const std::size_t read, co_await object::read_full(*reader, into));
        if (read != wanted) co_return changed(row.name);
      }
      auto hash = [&sha, &crc, into]() -> Result<void> {
        sha->update(into);
        crc->update(into);
        return {};
      };
      CO_TRY_VOID(co_await on_pool(env_.hash_pool, hash));
      ObjectPart part{.entry = entry, .bytes = into, .first = done == 0, .last = done + wanted == size};
      if (part.first) part.info = reader->info();
      done += wanted;
      if (part.last) {
        CO_TRY_VOID(check_recorded(reader->info(), crc->digest()));
        CO_TRY(part.identity, co_await reader->confirm_unchanged());
        part.sha256 = base::to_hex(sha->digest());
      }
      parcel.part = std::move(part);
      const auto sent = co_await out_.send(std::move(parcel));
      if (!sent.has_value()) {
        stopped_ = true;
        co_return sent.error();
      }
    } while (done < size);
    co_return Result<void>{};
  }

  SourceEnvironment env_;
  std::vector<ObjectRow> rows_;
  async::Channel<Parcel>& out_;
  std::size_t chunk_bytes_;
  std::size_t next_ = 0;
  bool stopped_ = false;
};

}  // namespace

async::Task<void> read_sources(SourceEnvironment environment, std::vector<ObjectRow> rows,
                               async::Channel<Parcel>& out) {
  Stage stage(environment, std::move(rows), out);
  const Result<void> ran = co_await stage.run();
  out.close();
  if (!ran.has_value() && ran.error().code != Code::closed) co_return ran.error();
  co_return Result<void>{};
}

}  // namespace reelway::archive
