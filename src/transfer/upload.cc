#include "transfer/upload.h"

#include <algorithm>

#include "async/pool_wait.h"
#include "base/encoding.h"

namespace reelway::transfer {

namespace {

constexpr std::size_t kUploadChunkCount = 16;
constexpr std::size_t kCrowdedChunkCount = 2;

/// The kind of checksum that the client has a say in, whether it gave the value already or not.
std::optional<base::ChecksumKind> declared_kind(const UploadRules& rules) {
  if (rules.integrity.checksum) return rules.integrity.checksum->kind;
  if (rules.integrity.trailer) return rules.integrity.trailer;
  if (rules.integrity.algorithm) return rules.integrity.algorithm;
  return rules.also;
}

void add_once(std::vector<base::ChecksumKind>& kinds, base::ChecksumKind kind) {
  if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
}

}  // namespace

std::vector<base::ChecksumKind> kinds_of(const UploadRules& rules) {
  std::vector<base::ChecksumKind> kinds{base::ChecksumKind::crc64nvme};
  if (rules.etag == EtagKind::md5 || rules.integrity.content_md5) add_once(kinds, base::ChecksumKind::md5);
  if (rules.sha256) add_once(kinds, base::ChecksumKind::sha256);
  if (const auto kind = declared_kind(rules)) add_once(kinds, *kind);
  if (rules.also) add_once(kinds, *rules.also);
  return kinds;
}

async::Task<object::Buffers> take_upload_buffers(base::BufferPool& pool, std::optional<std::uint64_t> length,
                                                 base::Duration patience) {
  constexpr auto share = base::PoolShare::http;
  const bool crowded = pool.free_count(share) < pool.total_count(share) / 2;
  const std::uint64_t most = crowded ? kCrowdedChunkCount : kUploadChunkCount;
  const std::uint64_t wanted = length.value_or(most * pool.chunk_bytes(share)) / pool.chunk_bytes(share) + 1;
  CO_TRY(auto chunks, co_await async::take_chunks(pool, share, std::min(wanted, most), patience));
  co_return std::make_shared<const std::vector<base::Chunk>>(std::move(chunks));
}

Upload::Upload(object::ByteSource& bytes, UploadRules rules, object::Buffers buffers,
               async::BlockingPool& hash_pool)
    : rules_(std::move(rules)), hashed_(bytes, kinds_of(rules_), std::move(buffers), hash_pool) {}

object::Sealer Upload::sealer() {
  return [this] { return seal(); };
}

base::Result<object::Seal> Upload::seal() {
  auto sealed = check_and_seal();
  if (sealed) return std::move(*sealed);
  fault_ = std::move(sealed).error();
  return base::fail(base::Code::checksum_mismatch, "upload refused: " + std::string(fault_->name()));
}

s3::Outcome<void> Upload::check_content_md5() const {
  if (!rules_.integrity.content_md5) return {};
  const auto computed = hashed_.digest(base::ChecksumKind::md5);
  if (computed && *computed == *rules_.integrity.content_md5) return {};
  return s3::fault_saying(s3::ErrorCode::bad_digest,
                          "The Content-MD5 you specified did not match what we received.",
                          {{"ExpectedDigest", base::to_base64(*rules_.integrity.content_md5)},
                           {"CalculatedDigest", computed ? base::to_base64(*computed) : ""}});
}

s3::Outcome<void> Upload::check_sha256() const {
  if (!rules_.sha256) return {};
  const auto computed = hashed_.digest(base::ChecksumKind::sha256);
  if (computed && std::ranges::equal(*computed, *rules_.sha256)) return {};
  return s3::fault(s3::ErrorCode::x_amz_content_sha256_mismatch,
                   {{"ClientComputedContentSHA256", base::to_hex(*rules_.sha256)},
                    {"S3ComputedContentSHA256", computed ? base::to_hex(*computed) : ""}});
}

s3::Outcome<void> Upload::check_checksum(const s3::Checksum& declared) const {
  const auto computed = hashed_.digest(declared.kind);
  if (computed && *computed == declared.value) return {};
  return s3::fault_saying(s3::ErrorCode::bad_digest,
                          "The " + std::string(s3::checksum_algorithm(declared.kind)) +
                              " you specified did not match the calculated checksum.");
}

s3::Outcome<object::Seal> Upload::check_and_seal() {
  // A store that seals before it has read to the end would skip the last chunk's signature and the trailer.
  if (!hashed_.at_end()) return s3::fault(s3::ErrorCode::internal_error);
  TRY_VOID(check_content_md5());
  TRY_VOID(check_sha256());
  if (rules_.integrity.checksum) TRY_VOID(check_checksum(*rules_.integrity.checksum));
  if (rules_.integrity.trailer) {
    const auto trailer = rules_.trailer ? rules_.trailer() : std::nullopt;
    if (!trailer) return s3::fault(s3::ErrorCode::malformed_trailer_error);
    TRY_VOID(check_checksum(*trailer));
  }
  object::Seal seal;
  const auto crc64 = hashed_.digest(base::ChecksumKind::crc64nvme);
  // What the client chose comes first: it is what HEAD shows.
  std::vector<base::ChecksumKind> kinds;
  if (const auto kind = declared_kind(rules_)) add_once(kinds, *kind);
  if (rules_.also) add_once(kinds, *rules_.also);
  add_once(kinds, base::ChecksumKind::crc64nvme);
  for (const auto kind : kinds) {
    if (auto value = hashed_.digest(kind))
      seal.checksums.push_back({.kind = kind, .value = std::move(*value)});
  }
  seal.etag = rules_.etag == EtagKind::md5
                  ? base::to_hex(hashed_.digest(base::ChecksumKind::md5).value_or(base::Bytes{}))
                  : "crc64nvme-" + base::to_hex(crc64.value_or(base::Bytes{}));
  return seal;
}

}  // namespace reelway::transfer
