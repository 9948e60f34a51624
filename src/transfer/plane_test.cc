#include "transfer/plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "async/spawn.h"
#include "base/checksum.h"

namespace reelway::transfer {
namespace {

using base::Code;
using base::Result;

constexpr std::size_t kChunk = 64 * base::kKiB;
const std::string kToken = "1000:40000000:ofi1:fake:aa:1";

std::byte pattern(std::size_t i) { return static_cast<std::byte>((i * 31 + i / 257) & 0xff); }

/// Client memory that a plane reaches, and what shall go wrong.
struct Script {
  std::vector<std::byte> memory;
  std::uint64_t window_length = 0;
  int fail_transfer_at = -1;  ///< the n-th push or pull fails
  std::optional<base::Error> open_error;
  std::optional<base::Error> admit_error;
  int open_count = 0;
  int transfer_count = 0;
  int fence_count = 0;
  bool alive = false;  ///< a transfer exists
  bool pushes_files = false;
  int file_push_count = 0;
  std::vector<std::size_t> sizes;
};

class FakeTransfer final : public rdma::Transfer {
 public:
  explicit FakeTransfer(Script& script) : script_(script) { script_.alive = true; }
  ~FakeTransfer() override { script_.alive = false; }
  async::Task<void> push(std::uint64_t offset, base::ByteView bytes) override {
    CO_TRY_VOID(step(offset, bytes.size()));
    std::memcpy(script_.memory.data() + offset, bytes.data(), bytes.size());
    co_return Result<void>{};
  }
  async::Task<void> pull(std::uint64_t offset, base::MutableBytes into) override {
    CO_TRY_VOID(step(offset, into.size()));
    std::memcpy(into.data(), script_.memory.data() + offset, into.size());
    co_return Result<void>{};
  }
  async::Task<void> push_file(std::uint64_t offset, rdma::FileRange from) override {
    CO_TRY_VOID(step(offset, from.length));
    ++script_.file_push_count;
    const ssize_t count =
        pread(from.file, script_.memory.data() + offset, from.length, static_cast<off_t>(from.offset));
    if (count != static_cast<ssize_t>(from.length)) co_return base::fail(Code::unavailable, "a short file");
    co_return Result<void>{};
  }
  async::Task<void> fence() override {
    ++script_.fence_count;
    co_return Result<void>{};
  }

 private:
  Result<void> step(std::uint64_t offset, std::size_t size) {
    if (offset + size > script_.memory.size()) return base::fail(Code::out_of_range, "outside");
    if (script_.transfer_count++ == script_.fail_transfer_at)
      return base::fail(Code::unavailable, "scripted");
    script_.sizes.push_back(size);
    return {};
  }
  Script& script_;
};

class FakePlane final : public rdma::Plane {
 public:
  explicit FakePlane(Script& script) : script_(script) {}
  rdma::PlaneInfo info() const override { return {.form = "ofi1", .provider = "fake", .window_max = 1}; }
  bool pushes_files() const override { return script_.pushes_files; }
  Result<base::Window> parse(std::string_view token) const override {
    if (token != kToken) return base::fail(Code::unsupported, "another's");
    base::Window window;
    window.plane = "ofi1/fake";
    window.length = script_.window_length;
    return window;
  }
  Result<void> admit(const base::Window&, const base::HttpPeer&) const override {
    if (script_.admit_error) return *script_.admit_error;
    return {};
  }
  async::Task<std::unique_ptr<rdma::Transfer>> open(base::Window, base::SteadyPoint) override {
    ++script_.open_count;
    if (script_.open_error) co_return *script_.open_error;
    co_return std::unique_ptr<rdma::Transfer>(std::make_unique<FakeTransfer>(script_));
  }
  async::Task<void> close() override { co_return Result<void>{}; }

 private:
  Script& script_;
};

/// Gives the pattern in reads of odd sizes.
class PatternReader final : public object::Reader {
 public:
  PatternReader(std::uint64_t size, std::uint64_t given) : size_(size), given_(given) {}
  explicit PatternReader(std::uint64_t size) : PatternReader(size, size) {}
  const object::ObjectInfo& info() const override { return info_; }
  base::ByteRange range() const override { return {.offset = 0, .length = size_}; }
  std::optional<object::FileSegment> file_segment() const override { return segment; }
  async::Task<std::size_t> read(base::MutableBytes into) override {
    ++read_count;
    if (error_after && done_ >= *error_after) co_return base::fail(Code::data_loss, "scripted");
    const std::size_t size = std::min<std::uint64_t>({into.size(), given_ - done_, 10'007});
    for (std::size_t i = 0; i < size; ++i) into[i] = pattern(static_cast<std::size_t>(done_) + i);
    done_ += size;
    co_return size;
  }
  int read_count = 0;
  std::optional<std::uint64_t> error_after;
  std::optional<object::FileSegment> segment;
  object::ObjectInfo info_;

 private:
  std::uint64_t size_;
  std::uint64_t given_;
  std::uint64_t done_ = 0;
};

class PlaneTest : public testing::Test {
 protected:
  void SetUp() override {
    base::BufferPoolOptions options;
    options.chunk_bytes = kChunk;
    options.drives_bytes = options.planes_bytes = options.http_bytes = 4 * kChunk;
    pool_ = *base::BufferPool::create(options);
    planes_.add(std::make_unique<FakePlane>(script_));
    set_window(1 << 20);
    options_.chunk_patience = std::chrono::milliseconds{1};
  }
  void set_window(std::size_t size) {
    script_.memory.assign(size, std::byte{0xee});
    script_.window_length = size;
  }
  PlaneGet get(object::Reader& reader, const std::string& token = kToken, bool partial = false,
               bool required = false) {
    auto task = get_by_plane(planes_, *pool_, clock_, token, peer_, reader, partial, required, options_);
    auto result = async::run_until_done(std::move(task));
    EXPECT_TRUE(result) << to_string(result.error());
    EXPECT_FALSE(script_.alive) << "the window is still leased";
    EXPECT_EQ(pool_->free_count(base::PoolShare::planes), 4U);
    return *result;
  }
  PlanePut put(const std::string& token = kToken) {
    auto result = async::run_until_done(open_put(planes_, *pool_, clock_, token, peer_, options_));
    EXPECT_TRUE(result) << to_string(result.error());
    return std::move(*result);
  }

  Script script_;
  std::unique_ptr<base::BufferPool> pool_;
  rdma::Planes planes_;
  base::SystemClock clock_;
  base::HttpPeer peer_;
  PlaneOptions options_;
};

std::string field(const rdma::Answer& answer, std::string_view name) {
  return std::string(answer.fields.get_or(name, "-"));
}

TEST_F(PlaneTest, GetPlacesEveryByteAndSaysSo) {
  for (const std::size_t size : {std::size_t{1}, kChunk - 1, kChunk, kChunk + 1, 5 * kChunk + 3}) {
    set_window(1 << 20);
    PatternReader reader(size);
    const PlaneGet got = get(reader);
    EXPECT_TRUE(got.moved);
    EXPECT_EQ(got.bytes, size);
    EXPECT_EQ(got.answer.status, 200);
    EXPECT_EQ(field(got.answer, rdma::kReplyHeader), "200");
    EXPECT_EQ(field(got.answer, rdma::kBytesHeader), std::to_string(size));
    const base::ByteView placed = base::ByteView(script_.memory).first(size);
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(placed[i], pattern(i)) << i;
    EXPECT_EQ(script_.memory[size], std::byte{0xee});
    EXPECT_EQ(got.crc64nvme, base::crc64nvme(0, placed));
    EXPECT_EQ(got.plane, "ofi1/fake");
    EXPECT_EQ(script_.fence_count, script_.open_count);
  }
}

TEST_F(PlaneTest, RangedGetAnswers206AndChecksumCanBeLeftOut) {
  options_.checksum = false;
  PatternReader reader(10);
  const PlaneGet got = get(reader, kToken, true);
  EXPECT_EQ(got.answer.status, 206);
  EXPECT_EQ(field(got.answer, rdma::kReplyHeader), "206");
  EXPECT_EQ(field(got.answer, rdma::kChecksumHeader), "-");
}

TEST_F(PlaneTest, AWholeObjectHasTheChecksumOfItsPutAndARangeItsOwn) {
  const base::Bytes recorded(8, std::byte{0x11});
  PatternReader whole(3 * kChunk);
  whole.info_.size = 3 * kChunk;
  whole.info_.checksums = {{.kind = base::ChecksumKind::crc64nvme, .value = recorded}};
  EXPECT_EQ(get(whole).crc64nvme, 0x1111111111111111U);
  PatternReader part(3 * kChunk);
  part.info_.size = 4 * kChunk;
  part.info_.checksums = whole.info_.checksums;
  EXPECT_EQ(get(part).crc64nvme, base::crc64nvme(0, base::ByteView(script_.memory).first(3 * kChunk)));
  PatternReader composite(kChunk);
  composite.info_.size = kChunk;
  composite.info_.checksums = {
      {.kind = base::ChecksumKind::crc64nvme, .value = recorded, .composite_part_count = 2}};
  EXPECT_EQ(get(composite).crc64nvme, base::crc64nvme(0, base::ByteView(script_.memory).first(kChunk)));
}

/// A file of the pattern, one byte in front.
class PatternFile {
 public:
  explicit PatternFile(std::size_t size) : descriptor_(memfd_create("pattern", MFD_CLOEXEC)) {
    std::vector<std::byte> bytes(size + 1);
    for (std::size_t i = 0; i < size; ++i) bytes[i + 1] = pattern(i);
    EXPECT_EQ(pwrite(descriptor_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  ~PatternFile() { close(descriptor_); }
  PatternFile(const PatternFile&) = delete;
  PatternFile& operator=(const PatternFile&) = delete;
  object::FileSegment segment(std::uint64_t length) const {
    return {.descriptor = descriptor_, .offset = 1, .length = length};
  }

 private:
  int descriptor_;
};

/// A whole object with its checksum, in a file.
PatternReader whole_in(const PatternFile& file, std::size_t size) {
  PatternReader reader(size);
  reader.info_.size = size;
  reader.info_.checksums = {
      {.kind = base::ChecksumKind::crc64nvme, .value = base::Bytes(8, std::byte{0x11})}};
  reader.segment = file.segment(size);
  return reader;
}

TEST_F(PlaneTest, AFileWhoseChecksumIsKnownGoesWithoutChunks) {
  const auto all = pool_->try_take(base::PoolShare::planes, pool_->total_count(base::PoolShare::planes));
  ASSERT_TRUE(all);
  script_.pushes_files = true;
  const PatternFile file(3 * kChunk);
  auto reader = whole_in(file, 3 * kChunk);
  const auto result = async::run_until_done(
      get_by_plane(planes_, *pool_, clock_, kToken, peer_, reader, false, false, options_));
  ASSERT_TRUE(result);
  const PlaneGet& got = *result;
  ASSERT_TRUE(got.moved);
  EXPECT_EQ(script_.file_push_count, 1);
  EXPECT_EQ(reader.read_count, 0);
  EXPECT_EQ(got.bytes, 3 * kChunk);
  EXPECT_EQ(got.crc64nvme, 0x1111111111111111U);
  EXPECT_EQ(script_.fence_count, script_.open_count);
  for (std::size_t i = 0; i < 3 * kChunk; ++i) ASSERT_EQ(script_.memory[i], pattern(i)) << i;
  EXPECT_EQ(script_.memory[3 * kChunk], std::byte{0xee});
}

TEST_F(PlaneTest, OtherwiseAFileGoesInChunks) {
  const PatternFile file(3 * kChunk);
  auto reader = whole_in(file, 3 * kChunk);
  EXPECT_TRUE(get(reader).moved) << "the plane pushes no files";
  script_.pushes_files = true;
  auto range = whole_in(file, 3 * kChunk);
  range.info_.size += 1;
  EXPECT_EQ(get(range).crc64nvme, base::crc64nvme(0, base::ByteView(script_.memory).first(3 * kChunk)))
      << "the checksum of a range is not known before it is read";
  auto small = whole_in(file, kChunk);
  EXPECT_TRUE(get(small).moved);
  EXPECT_EQ(script_.file_push_count, 0);
}

TEST_F(PlaneTest, AFileThatWasCutShortFailsItsGetAlone) {
  script_.pushes_files = true;
  const PatternFile file(kChunk);
  auto reader = whole_in(file, 3 * kChunk);
  const PlaneGet got = get(reader);
  EXPECT_EQ(got.answer.status, 500);
  EXPECT_FALSE(got.moved);
  EXPECT_EQ(script_.fence_count, 1);
}

TEST_F(PlaneTest, AnEmptyObjectMovesNothingAndSucceeds) {
  PatternReader reader(0);
  const PlaneGet got = get(reader);
  EXPECT_TRUE(got.moved);
  EXPECT_EQ(got.bytes, 0U);
  EXPECT_EQ(field(got.answer, rdma::kBytesHeader), "0");
  EXPECT_EQ(script_.open_count, 0);
}

struct Decline {
  std::string reason;
  std::optional<base::Error> open_error;
  std::optional<base::Error> admit_error;
  std::size_t window = 1 << 20;
  std::string token = kToken;
};

std::vector<Decline> declines() {
  const auto error = [](Code code) { return base::fail(code, "scripted"); };
  return {{.reason = "busy", .open_error = error(Code::busy), .admit_error = {}},
          {.reason = "fabric", .open_error = error(Code::unavailable), .admit_error = {}},
          {.reason = "disabled", .open_error = error(Code::closed), .admit_error = {}},
          {.reason = "policy", .open_error = {}, .admit_error = error(Code::access_denied)},
          {.reason = "token-form", .open_error = {}, .admit_error = {}, .token = "1000:10:ofi1:other:aa:1"}};
}

TEST_F(PlaneTest, ADeclinedGetHasReadNothing) {
  auto all = declines();
  all.push_back({.reason = "size", .open_error = {}, .admit_error = {}, .window = 99});
  for (const Decline& decline : all) {
    set_window(decline.window);
    script_.open_error = decline.open_error;
    script_.admit_error = decline.admit_error;
    for (const bool required : {false, true}) {
      PatternReader reader(100);
      const PlaneGet got = get(reader, decline.token, false, required);
      EXPECT_FALSE(got.moved) << decline.reason;
      EXPECT_EQ(got.answer.body_in_band, !required) << decline.reason;
      EXPECT_EQ(got.answer.status, required ? 501 : 200) << decline.reason;
      EXPECT_EQ(field(got.answer, rdma::kReplyHeader), "501") << decline.reason;
      EXPECT_EQ(field(got.answer, rdma::kDeclineHeader), decline.reason);
      EXPECT_EQ(reader.read_count, 0) << decline.reason;
      EXPECT_EQ(got.detail.find("aa:1"), std::string::npos) << "the token must not be logged";
    }
  }
}

TEST_F(PlaneTest, AMalformedTokenIs400) {
  PatternReader reader(100);
  const PlaneGet got = get(reader, "1000:0:ofi1:fake:aa:1");
  EXPECT_EQ(got.answer.status, 400);
  EXPECT_FALSE(got.answer.body_in_band);
  EXPECT_EQ(put("nonsense").refusal.status, 400);
}

TEST_F(PlaneTest, WithoutChunksAGetIsDeclinedAsBusy) {
  auto all = *pool_->try_take(base::PoolShare::planes, 3);
  PatternReader reader(2 * kChunk);
  auto task = get_by_plane(planes_, *pool_, clock_, kToken, peer_, reader, false, false, options_);
  const auto got = async::run_until_done(std::move(task));
  ASSERT_TRUE(got);
  EXPECT_EQ(field(got->answer, rdma::kDeclineHeader), "busy");
  EXPECT_EQ(script_.open_count, 0);
}

TEST_F(PlaneTest, AnyFailedPushOrReadFailsTheGetAfterTheFence) {
  const std::size_t size = 4 * kChunk;
  for (int n = 0; n < 4; ++n) {
    script_.fail_transfer_at = n;
    script_.transfer_count = script_.fence_count = 0;
    PatternReader reader(size);
    const PlaneGet got = get(reader);
    EXPECT_FALSE(got.moved);
    EXPECT_EQ(got.answer.status, 500) << n;
    EXPECT_EQ(got.answer.error_code, "RDMATransferFailed");
    EXPECT_EQ(field(got.answer, rdma::kReplyHeader), "-");
    EXPECT_EQ(script_.fence_count, 1);
  }
  script_.fail_transfer_at = -1;
  for (const std::uint64_t after : {std::uint64_t{0}, std::uint64_t{kChunk}, std::uint64_t{3 * kChunk}}) {
    PatternReader reader(size);
    reader.error_after = after;
    EXPECT_EQ(get(reader).answer.status, 500) << after;
  }
  PatternReader ends_early(size, size - 1);
  EXPECT_EQ(get(ends_early).answer.status, 500);
}

async::Task<void> read_all(object::ByteSource& source, base::MutableBytes buffer,
                           std::vector<std::byte>& out) {
  while (true) {
    CO_TRY(const std::size_t size, co_await source.read(buffer));
    if (size == 0) co_return Result<void>{};
    out.insert(out.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(size));
  }
}

async::Task<void> finish(PlaneSource& source) { return source.finish(); }

TEST_F(PlaneTest, PutGivesTheWindowWhateverTheReadersMemory) {
  const std::size_t size = 3 * kChunk + 11;
  auto chunk = *pool_->try_take(base::PoolShare::planes, 1);
  std::vector<std::byte> own(1000);
  const std::vector<base::MutableBytes> buffers = {chunk[0].bytes(), chunk[0].bytes().first(777), own};
  for (const base::MutableBytes buffer : buffers) {
    set_window(size);
    for (std::size_t i = 0; i < size; ++i) script_.memory[i] = pattern(i);
    script_.sizes.clear();
    const PlanePut opened = put();
    ASSERT_TRUE(opened.source);
    EXPECT_EQ(opened.source->length(), size);
    std::vector<std::byte> out;
    ASSERT_TRUE(async::run_until_done(read_all(*opened.source, buffer, out)));
    ASSERT_TRUE(async::run_until_done(finish(*opened.source)));
    EXPECT_EQ(out, script_.memory);
    EXPECT_FALSE(opened.source->failed());
    // Registered memory is filled in place; other memory goes through whole chunks.
    const bool staged = buffer.data() == own.data();
    EXPECT_EQ(script_.sizes.front(), staged ? kChunk : buffer.size());
  }
  EXPECT_FALSE(script_.alive);
}

TEST_F(PlaneTest, AFailedPullIsTheSourcesFault) {
  const std::size_t size = 3 * kChunk;
  std::vector<std::byte> own(kChunk);
  for (int n = 0; n < 3; ++n) {
    set_window(size);
    script_.fail_transfer_at = n;
    script_.transfer_count = 0;
    const PlanePut opened = put();
    ASSERT_TRUE(opened.source);
    std::vector<std::byte> out;
    EXPECT_FALSE(async::run_until_done(read_all(*opened.source, own, out)));
    EXPECT_TRUE(opened.source->failed());
    EXPECT_EQ(out.size(), static_cast<std::size_t>(n) * kChunk);
  }
}

TEST_F(PlaneTest, ADeclinedPutIs501AndHasNoSource) {
  for (const Decline& decline : declines()) {
    script_.open_error = decline.open_error;
    script_.admit_error = decline.admit_error;
    const PlanePut refused = put(decline.token);
    EXPECT_FALSE(refused.source);
    EXPECT_EQ(refused.refusal.status, 501) << decline.reason;
    EXPECT_EQ(field(refused.refusal, rdma::kReplyHeader), "501");
    EXPECT_EQ(field(refused.refusal, rdma::kDeclineHeader), decline.reason);
    EXPECT_EQ(refused.refusal.error_code, "NotImplemented");
  }
  EXPECT_EQ(pool_->free_count(base::PoolShare::planes), 4U);
}

TEST(Planes, NoneOpenIsDisabled) {
  rdma::Planes none;
  const auto pool = *base::BufferPool::create({});
  const base::SystemClock clock;
  const auto refused = async::run_until_done(open_put(none, *pool, clock, kToken, {}, {}));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->refusal.status, 501);
  EXPECT_EQ(field(refused->refusal, rdma::kDeclineHeader), "disabled");
}

}  // namespace
}  // namespace reelway::transfer
