#pragma once
// Object bytes on their way into a store, with every check that S3 asks for, whatever the road they come by
// (HTTP body, plane, another object). The store reads this source to its end and calls the sealer, which
// compares what was declared with what came, and says the ETag and the checksums to record. CRC64NVME is
// recorded always. A refusal of the sealer is kept as a fault.

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "object/store.h"
#include "s3/errors.h"
#include "s3/types.h"
#include "transfer/hashing.h"

namespace reelway::transfer {

enum class EtagKind : std::uint8_t { md5, crc64 };  ///< crc64: "crc64nvme-<16 hex>"

struct UploadRules {
  EtagKind etag = EtagKind::md5;
  s3::Integrity integrity;
  std::optional<std::array<std::byte, 32>> sha256;  ///< of the payload, when the signature covers it
  std::optional<base::ChecksumKind>
      also;  ///< recorded though nobody declared a value (a multipart upload's kind)
  std::function<std::optional<s3::Checksum>()>
      trailer;  ///< asked after the end when integrity.trailer is set
};

/// The kinds that an upload under these rules computes.
std::vector<base::ChecksumKind> kinds_of(const UploadRules& rules);

/// The memory that an upload goes through where its source has none: chunks of PoolShare::http with room for
/// one byte more than `length` (absent: unknown), 16 at most, 2 when half of the share is in use. busy: none
/// came free within `patience`.
async::Task<object::Buffers> take_upload_buffers(base::BufferPool& pool, std::optional<std::uint64_t> length,
                                                 base::Duration patience);

class Upload final : public object::ByteSource {
 public:
  /// Lends `buffers` to the store; null: hashes in place, in the store's own memory.
  Upload(object::ByteSource& bytes, UploadRules rules, object::Buffers buffers,
         async::BlockingPool& hash_pool);

  std::optional<std::uint64_t> length() const override { return hashed_.length(); }
  object::Buffers buffers() const override { return hashed_.buffers(); }
  async::Task<std::size_t> read(base::MutableBytes into) override { return hashed_.read(into); }

  /// For the store; refers to this upload.
  object::Sealer sealer();
  /// Why the sealer refused.
  const std::optional<s3::Fault>& fault() const { return fault_; }
  std::uint64_t byte_count() const { return hashed_.byte_count(); }

 private:
  base::Result<object::Seal> seal();
  s3::Outcome<object::Seal> check_and_seal();
  s3::Outcome<void> check_content_md5() const;
  s3::Outcome<void> check_sha256() const;
  s3::Outcome<void> check_checksum(const s3::Checksum& declared) const;

  UploadRules rules_;
  HashingSource hashed_;
  std::optional<s3::Fault> fault_;
};

}  // namespace reelway::transfer
