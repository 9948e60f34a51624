#include "base/checksum.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <stdexcept>

#ifdef __PCLMUL__
#include <immintrin.h>
#endif

#include <openssl/evp.h>

#include "base/http_head.h"

namespace reelway::base {

namespace {

// All three CRCs are reflected (bit 0 of a byte is its highest power), start with all ones and end inverted.
// `kPolynomial` is reflected too; the highest power, x^width, is left out.
template <class Word, Word polynomial>
struct CrcModel {
  using word = Word;
  static constexpr Word kPolynomial = polynomial;
  static constexpr unsigned kWidth = sizeof(Word) * 8;
  static constexpr Word kOne = Word{1} << (kWidth - 1);  ///< x^0

  static constexpr Word times_x(Word a) {
    return static_cast<Word>((a & 1) != 0 ? (a >> 1) ^ kPolynomial : a >> 1);
  }
  static constexpr Word multiply(Word a, Word b) {
    Word product = 0;
    for (Word bit = kOne; bit != 0; bit >>= 1, b = times_x(b)) {
      if ((a & bit) != 0) product ^= b;
    }
    return product;
  }
  static constexpr Word power_of_x(std::uint64_t exponent) {
    Word result = kOne;
    for (Word square = kOne >> 1; exponent != 0; exponent >>= 1, square = multiply(square, square)) {
      if ((exponent & 1) != 0) result = multiply(result, square);
    }
    return result;
  }
};

using Crc32 = CrcModel<std::uint32_t, 0xEDB88320U>;
using Crc32c = CrcModel<std::uint32_t, 0x82F63B78U>;
using Crc64Nvme = CrcModel<std::uint64_t, 0x9A6C9329AC4BC9B5ULL>;

/// kTables[k][b]: the remainder of byte b followed by k zero bytes.
template <class Model>
constexpr auto kTables = [] {
  std::array<std::array<typename Model::word, 256>, 8> tables{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    typename Model::word remainder = byte;
    for (int i = 0; i < 8; ++i) remainder = Model::times_x(remainder);
    tables[0][byte] = remainder;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const auto before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 255];
    }
  }
  return tables;
}();

/// Works on the register as it is between the two inversions.
template <class Model>
typename Model::word update_by_table(typename Model::word crc, const unsigned char* data, std::size_t size) {
  const auto& tables = kTables<Model>;
  for (; size >= 8; data += 8, size -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    word ^= crc;
    crc = 0;
    for (unsigned i = 0; i < 8; ++i) crc ^= tables[7 - i][word >> (8 * i) & 255];
  }
  for (; size > 0; ++data, --size)
    crc = static_cast<typename Model::word>((crc >> 8) ^ tables[0][(crc ^ *data) & 255]);
  return crc;
}

#ifdef __PCLMUL__

/// The pair of factors that moves a 128-bit block over `bits` bits. A carry-less product of two reflected
/// words reads as if multiplied by x, which the exponents take into account.
template <class Model>
struct FoldFactors {
  static constexpr std::uint64_t factor(std::uint64_t exponent) {
    return static_cast<std::uint64_t>(Model::power_of_x(exponent)) << (64 - Model::kWidth);
  }
  explicit constexpr FoldFactors(unsigned bits) : first(factor(bits + 63)), second(factor(bits - 1)) {}
  std::uint64_t first;  ///< for the 64 bits that come first in memory
  std::uint64_t second;
};

inline __m128i load_block(const unsigned char* data) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
}

inline __m128i fold(__m128i block, __m128i factors, __m128i next) {
  return _mm_xor_si128(
      _mm_xor_si128(_mm_clmulepi64_si128(block, factors, 0x00), _mm_clmulepi64_si128(block, factors, 0x11)),
      next);
}

/// At least 64 bytes. Four blocks travel side by side to hide the multiplier's latency; the last block and
/// the rest go by table.
template <class Model>
typename Model::word update_by_folding(typename Model::word crc, const unsigned char* data,
                                       std::size_t size) {
  static constexpr FoldFactors<Model> kFour(512);
  static constexpr FoldFactors<Model> kOne(128);
  const __m128i four =
      _mm_set_epi64x(static_cast<long long>(kFour.second), static_cast<long long>(kFour.first));
  const __m128i one = _mm_set_epi64x(static_cast<long long>(kOne.second), static_cast<long long>(kOne.first));

  __m128i a = _mm_xor_si128(load_block(data), _mm_set_epi64x(0, static_cast<long long>(crc)));
  __m128i b = load_block(data + 16);
  __m128i c = load_block(data + 32);
  __m128i d = load_block(data + 48);
  for (data += 64, size -= 64; size >= 64; data += 64, size -= 64) {
    a = fold(a, four, load_block(data));
    b = fold(b, four, load_block(data + 16));
    c = fold(c, four, load_block(data + 32));
    d = fold(d, four, load_block(data + 48));
  }
  __m128i rest = fold(fold(fold(a, one, b), one, c), one, d);
  for (; size >= 16; data += 16, size -= 16) rest = fold(rest, one, load_block(data));

  std::array<unsigned char, 16> last{};
  std::memcpy(last.data(), &rest, last.size());
  return update_by_table<Model>(update_by_table<Model>(0, last.data(), last.size()), data, size);
}

#endif

template <class Model>
typename Model::word update_crc(typename Model::word crc, ByteView bytes) {
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  auto inverted = static_cast<typename Model::word>(~crc);
#ifdef __PCLMUL__
  if (bytes.size() >= 128) return ~update_by_folding<Model>(inverted, data, bytes.size());
#endif
  return ~update_by_table<Model>(inverted, data, bytes.size());
}

template <class Model>
std::uint64_t combine(std::uint64_t a, std::uint64_t b, std::uint64_t b_length) {
  using Word = typename Model::word;
  // x^(8 n) as (x^n)^8, because 8 n may not fit 64 bits.
  Word shift = Model::power_of_x(b_length);
  for (int i = 0; i < 3; ++i) shift = Model::multiply(shift, shift);
  return Model::multiply(static_cast<Word>(a), shift) ^ static_cast<Word>(b);
}

Bytes big_endian(std::uint64_t value, std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = size; i-- > 0; value >>= 8) bytes[i] = static_cast<std::byte>(value & 255);
  return bytes;
}

template <class Word, Word (*update_function)(Word, ByteView)>
class CrcHasher final : public Hasher {
 public:
  void update(ByteView bytes) override { crc_ = update_function(crc_, bytes); }
  Bytes digest() const override { return big_endian(crc_, sizeof(Word)); }

 private:
  Word crc_ = 0;
};

[[noreturn]] void throw_openssl(const char* what) {
  throw std::runtime_error(std::string("OpenSSL cannot provide ") + what);
}

using MdPointer = std::unique_ptr<EVP_MD, decltype(&EVP_MD_free)>;
using MdContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

/// Fetched once: an implicit fetch at every use costs more than hashing a small message.
const EVP_MD* algorithm_of(ChecksumKind kind) {
  const auto fetch = [](const char* name) {
    MdPointer md(EVP_MD_fetch(nullptr, name, nullptr), EVP_MD_free);
    if (!md) throw_openssl(name);
    return md;
  };
  static const MdPointer sha1 = fetch("SHA1");
  static const MdPointer sha256 = fetch("SHA256");
  if (kind == ChecksumKind::sha1) return sha1.get();
  if (kind == ChecksumKind::sha256) return sha256.get();
  static const MdPointer md5 = fetch("MD5");
  return md5.get();
}

MdContext new_context() {
  MdContext context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!context) throw std::bad_alloc();
  return context;
}

void start(EVP_MD_CTX* context, ChecksumKind kind) {
  if (EVP_DigestInit_ex2(context, algorithm_of(kind), nullptr) != 1) throw_openssl("a digest");
}
void feed(EVP_MD_CTX* context, ByteView bytes) {
  if (EVP_DigestUpdate(context, bytes.data(), bytes.size()) != 1) throw_openssl("a digest");
}
Bytes finish(EVP_MD_CTX* context, ChecksumKind kind) {
  Bytes digest(digest_size(kind));
  if (EVP_DigestFinal_ex(context, reinterpret_cast<unsigned char*>(digest.data()), nullptr) != 1)
    throw_openssl("a digest");
  return digest;
}

/// For digests that begin and end within one call.
EVP_MD_CTX* scratch_context() {
  thread_local const MdContext context = new_context();
  return context.get();
}

class OpensslHasher final : public Hasher {
 public:
  explicit OpensslHasher(ChecksumKind kind) : kind_(kind), context_(new_context()) {
    start(context_.get(), kind);
  }
  void update(ByteView bytes) override { feed(context_.get(), bytes); }
  Bytes digest() const override {
    EVP_MD_CTX* copy = scratch_context();
    if (EVP_MD_CTX_copy_ex(copy, context_.get()) != 1) throw std::bad_alloc();
    return finish(copy, kind_);
  }

 private:
  ChecksumKind kind_;
  MdContext context_;
};

constexpr std::array<std::string_view, 6> kNames{"crc32", "crc32c", "crc64nvme", "sha1", "sha256", "md5"};

}  // namespace

std::string_view to_string(ChecksumKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::optional<ChecksumKind> parse_checksum_kind(std::string_view text) {
  const auto it =
      std::ranges::find_if(kNames, [&](std::string_view name) { return equals_ignoring_case(name, text); });
  if (it == kNames.end()) return std::nullopt;
  return static_cast<ChecksumKind>(it - kNames.begin());
}

std::size_t digest_size(ChecksumKind kind) {
  static constexpr std::array<std::size_t, 6> kSizes{4, 4, 8, 20, 32, 16};
  return kSizes[static_cast<std::size_t>(kind)];
}

std::uint32_t crc32c(std::uint32_t crc, ByteView bytes) { return update_crc<Crc32c>(crc, bytes); }
std::uint32_t crc32(std::uint32_t crc, ByteView bytes) { return update_crc<Crc32>(crc, bytes); }
std::uint64_t crc64nvme(std::uint64_t crc, ByteView bytes) { return update_crc<Crc64Nvme>(crc, bytes); }

std::uint64_t combine_crc(ChecksumKind kind, std::uint64_t a, std::uint64_t b, std::uint64_t b_length) {
  if (kind == ChecksumKind::crc32) return combine<Crc32>(a, b, b_length);
  if (kind == ChecksumKind::crc32c) return combine<Crc32c>(a, b, b_length);
  if (kind == ChecksumKind::crc64nvme) return combine<Crc64Nvme>(a, b, b_length);
  throw std::invalid_argument("combine_crc of a digest that is no CRC");
}

std::unique_ptr<Hasher> make_hasher(ChecksumKind kind) {
  switch (kind) {
    case ChecksumKind::crc32:
      return std::make_unique<CrcHasher<std::uint32_t, crc32>>();
    case ChecksumKind::crc32c:
      return std::make_unique<CrcHasher<std::uint32_t, crc32c>>();
    case ChecksumKind::crc64nvme:
      return std::make_unique<CrcHasher<std::uint64_t, crc64nvme>>();
    case ChecksumKind::sha1:
    case ChecksumKind::sha256:
    case ChecksumKind::md5:
      break;
  }
  return std::make_unique<OpensslHasher>(kind);
}

Bytes digest_of(ChecksumKind kind, ByteView bytes) {
  if (is_crc(kind)) {
    const auto hasher = make_hasher(kind);
    hasher->update(bytes);
    return hasher->digest();
  }
  EVP_MD_CTX* context = scratch_context();
  start(context, kind);
  feed(context, bytes);
  return finish(context, kind);
}

Bytes hmac_sha256(ByteView key, ByteView message) {
  // RFC 2104 with B = 64. Written out because OpenSSL's HMAC costs several allocations a call, and each
  // request is signed.
  constexpr std::size_t kBlock = 64;
  std::array<std::byte, kBlock> padded{};
  const Bytes short_key = key.size() > kBlock ? digest_of(ChecksumKind::sha256, key) : Bytes{};
  const ByteView used = key.size() > kBlock ? ByteView(short_key) : key;
  std::ranges::copy(used, padded.begin());
  const auto keyed_digest = [&](std::byte pad, ByteView text) {
    std::array<std::byte, kBlock> block{};
    std::ranges::transform(padded, block.begin(), [&](std::byte b) { return b ^ pad; });
    EVP_MD_CTX* context = scratch_context();
    start(context, ChecksumKind::sha256);
    feed(context, block);
    feed(context, text);
    return finish(context, ChecksumKind::sha256);
  };
  return keyed_digest(std::byte{0x5c}, keyed_digest(std::byte{0x36}, message));
}

}  // namespace reelway::base
