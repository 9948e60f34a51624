#pragma once
// The digests of a body, computed while it passes: a stage around any ByteSource. CRCs are cheap and computed
// in place. MD5, SHA-1 and SHA-256 run on the hashing pool, each in its own order, over the very chunks that
// this source lends its reader; a chunk is filled anew only when it was hashed. So receiving, hashing and
// writing overlap without a copy, and a put runs at the speed of the slowest of them. A short body, and what
// is read into other memory, is hashed before read returns.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "async/offload.h"
#include "base/checksum.h"
#include "object/byte_stream.h"

namespace reelway::transfer {

/// Bodies known to be no longer than this are not worth a thread's waking.
inline constexpr std::uint64_t kHashInPlaceMax = 32 * base::kKiB;

/// True for the kinds that are worth a thread of their own.
bool is_slow(base::ChecksumKind kind);

class HashingSource final : public object::ByteSource {
 public:
  /// Without buffers (null) everything is hashed in place. `inner` must outlive this.
  HashingSource(object::ByteSource& inner, const std::vector<base::ChecksumKind>& kinds,
                object::Buffers buffers, async::BlockingPool& pool);
  ~HashingSource() override;

  std::optional<std::uint64_t> length() const override { return inner_.length(); }
  object::Buffers buffers() const override { return buffers_; }
  /// At the end (0) all digests are complete.
  async::Task<std::size_t> read(base::MutableBytes into) override;

  bool at_end() const { return at_end_; }
  std::uint64_t byte_count() const { return byte_count_; }
  /// Only once at_end(); nothing for a kind that was not asked for.
  std::optional<base::Bytes> digest(base::ChecksumKind kind) const;

 private:
  class Pipeline;

  object::ByteSource& inner_;
  const object::Buffers buffers_;
  std::map<base::ChecksumKind, std::unique_ptr<base::Hasher>> in_place_;
  std::shared_ptr<Pipeline> pipeline_;  // null: no slow kind, no buffers, or a short body
  std::uint64_t byte_count_ = 0;
  bool at_end_ = false;
};

}  // namespace reelway::transfer
