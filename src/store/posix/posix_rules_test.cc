// The rules that meet other POSIX processes, on real file systems: folders under the working directory, and
// XFS and a small tmpfs where this process may mount them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "store/posix/posix_store.h"
#include "testing/run_task.h"
#include "testing/sources.h"

namespace reelway::store::posix {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::if_none_match;
using testing::must;
using testing::run_task;
using testing::seal_with;

int run(const std::string& command) { return std::system((command + " > /dev/null 2>&1").c_str()); }

std::string slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What cannot be removed is left; it must not end the program from a destructor.
void sweep(const fs::path& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

class PosixRules : public ::testing::Test {
 protected:
  void SetUp() override { use(fs::absolute("posix_rules_test." + std::to_string(::getpid()))); }
  void TearDown() override {
    store_.reset();
    sweep(root_);
  }
  void use(const fs::path& root) {
    store_.reset();
    if (!root_.empty()) sweep(root_);
    root_ = root;
    fs::create_directories(root_);
    store_ = make();
    ASSERT_TRUE(
        run_task(store_->create_bucket({.name = "bucket", .created = {}, .owner = "owner", .region = "r"})));
  }
  std::unique_ptr<PosixStore> make() {
    auto store = PosixStore::create({.root = root_, .settle = {}, .pool = &pool_});
    EXPECT_TRUE(store) << to_string(store.error());
    return store ? std::move(*store) : nullptr;
  }
  static object::ObjectName name(std::string key) { return {"bucket", std::move(key)}; }
  static base::Result<object::ObjectInfo> put(object::Store& store, std::string key, std::string_view bytes,
                                              object::Conditions conditions = {}) {
    object::MemorySource source(base::as_bytes(bytes));
    object::PutRequest request{.name = name(std::move(key)),
                               .attributes = {},
                               .conditions = std::move(conditions),
                               .seal = seal_with("tag")};
    return run_task(store.put(std::move(request), source));
  }
  base::Result<object::ObjectInfo> put(std::string key, std::string_view bytes) {
    return put(*store_, std::move(key), bytes);
  }
  base::Result<object::ObjectInfo> head(std::string key) {
    return run_task(store_->head({.name = name(std::move(key)), .conditions = {}}));
  }
  base::Result<std::string> get(std::string key) {
    TRY(const std::unique_ptr<object::Reader> reader,
        run_task(
            store_->get({.name = name(std::move(key)), .conditions = {}, .range = {}, .part_number = {}})));
    std::string bytes(reader->range().length, '\0');
    TRY(const std::size_t count,
        run_task(object::read_full(*reader, std::as_writable_bytes(std::span(bytes)))));
    bytes.resize(count);
    return bytes;
  }
  base::Result<object::Identity> archive(std::string key) {
    TRY(const std::unique_ptr<object::ArchiveReader> reader,
        run_task(store_->tiered()->open_for_archive(name(std::move(key)))));
    return run_task(reader->confirm_unchanged());
  }
  base::Result<object::Identity> evict(std::string key) {
    TRY(const object::Identity archived, archive(key));
    return run_task(store_->tiered()->evict(name(std::move(key)), archived));
  }
  base::Result<object::Identity> recall(std::string key, std::string generation, std::string_view bytes) {
    TRY(const std::unique_ptr<object::RecallWriter> writer,
        run_task(store_->tiered()->begin_recall(name(std::move(key)), std::move(generation))));
    TRY_VOID(run_task(writer->write(base::as_bytes(bytes))));
    return run_task(
        writer->commit({.kind = base::ChecksumKind::sha256,
                        .value = base::digest_of(base::ChecksumKind::sha256, base::as_bytes(bytes)),
                        .composite_part_count = 0}));
  }
  std::vector<std::string> keys() {
    const auto page =
        run_task(store_->list({.bucket = "bucket", .prefix = {}, .delimiter = {}, .start_after = {}}));
    EXPECT_TRUE(page);
    std::vector<std::string> out;
    for (const auto& object : page->objects) out.push_back(object.name.key);
    return out;
  }
  fs::path path(const std::string& key) const { return root_ / "bucket" / key; }

  fs::path root_;
  async::BlockingPool pool_{"files", 4};
  std::unique_ptr<PosixStore> store_;
};

/// Lends chunks, and counts the reads that go elsewhere.
class LendingSource final : public object::ByteSource {
 public:
  LendingSource(std::string_view bytes, object::Buffers lent)
      : bytes_(base::as_bytes(bytes)), lent_(std::move(lent)) {}
  std::optional<std::uint64_t> length() const override { return bytes_.length(); }
  object::Buffers buffers() const override { return lent_; }
  async::Task<std::size_t> read(base::MutableBytes into) override {
    const bool in_chunk = std::ranges::any_of(*lent_, [&](const base::Chunk& chunk) {
      return into.data() >= chunk.bytes().data() &&
             into.data() + into.size() <= chunk.bytes().data() + chunk.bytes().size();
    });
    reads_elsewhere += in_chunk ? 0 : 1;
    return bytes_.read(into);
  }
  int reads_elsewhere = 0;

 private:
  object::MemorySource bytes_;
  object::Buffers lent_;
};

TEST_F(PosixRules, ALendingSourceIsReadIntoItsChunksOnly) {
  const auto pool = *base::BufferPool::create({});
  const std::size_t chunk = pool->chunk_bytes(base::PoolShare::http);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, chunk - 1, chunk, 2 * chunk, 3 * chunk + 7, 40 * chunk}) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 257);
    for (const std::size_t most : {std::size_t{5}, std::size_t{2}}) {
      const std::size_t count = std::min(size / chunk + 1, most);
      LendingSource source(bytes, std::make_shared<const std::vector<base::Chunk>>(
                                      *pool->try_take(base::PoolShare::http, count)));
      object::PutRequest request{
          .name = name("lent"), .attributes = {}, .conditions = {}, .seal = seal_with("tag")};
      ASSERT_TRUE(run_task(store_->put(std::move(request), source))) << size;
      EXPECT_EQ(slurp(path("lent")), bytes) << size << " bytes in " << count << " chunks";
      EXPECT_EQ(source.reads_elsewhere, 0) << size;
    }
  }
}

TEST_F(PosixRules, AFileThatSomebodyHoldsIsNeitherArchivedNorEvicted) {
  ASSERT_TRUE(put("k", "bytes"));
  const auto archived = archive("k");
  ASSERT_TRUE(archived);
  const auto evict_code = [&] {
    const auto evicted = run_task(store_->tiered()->evict(name("k"), *archived));
    return evicted ? base::Code::internal : evicted.error().code;
  };
  const int writer = ::open(path("k").c_str(), O_WRONLY);
  EXPECT_EQ(error_of(archive("k")).code, base::Code::busy);
  EXPECT_EQ(evict_code(), base::Code::busy);
  ::close(writer);
  const int reader = ::open(path("k").c_str(), O_RDONLY);
  EXPECT_EQ(evict_code(), base::Code::busy);
  void* mapping = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, reader, 0);
  ::close(reader);
  EXPECT_EQ(evict_code(), base::Code::busy) << "a mapping holds the file as well";
  ::munmap(mapping, 4096);
  EXPECT_TRUE(run_task(store_->tiered()->evict(name("k"), *archived)));
}

TEST_F(PosixRules, AnOpenReaderOfOursKeepsTheFile) {
  ASSERT_TRUE(put("k", "bytes"));
  const auto archived = archive("k");
  const auto reader =
      run_task(store_->get({.name = name("k"), .conditions = {}, .range = {}, .part_number = {}}));
  ASSERT_TRUE(archived && reader);
  EXPECT_FALSE(run_task(store_->tiered()->evict(name("k"), *archived)));
  EXPECT_EQ(get("k").value_or(""), "bytes");
}

TEST_F(PosixRules, ALeasedReadGivesWayToAWriter) {
  ASSERT_TRUE(put("k", std::string(100'000, 'a')));
  auto reader = run_task(store_->tiered()->open_for_archive(name("k")));
  ASSERT_TRUE(reader);
  std::array<std::byte, 100> buffer;
  ASSERT_TRUE(run_task((*reader)->read(buffer)));
  EXPECT_EQ(::open(path("k").c_str(), O_WRONLY | O_NONBLOCK), -1) << "the lease holds it back";
  EXPECT_EQ(error_of(run_task((*reader)->read(buffer))).code, base::Code::busy);
  EXPECT_EQ(error_of(run_task((*reader)->confirm_unchanged())).code, base::Code::precondition_failed);
  reader->reset();
  const int writer = ::open(path("k").c_str(), O_WRONLY | O_NONBLOCK);
  EXPECT_GE(writer, 0);
  ::close(writer);
}

TEST_F(PosixRules, AHardLinkedFileStays) {
  ASSERT_TRUE(put("k", "bytes"));
  fs::create_hard_link(path("k"), path("other"));
  const auto archived = archive("k");
  ASSERT_TRUE(archived);
  EXPECT_EQ(error_of(run_task(store_->tiered()->evict(name("k"), *archived))).code,
            base::Code::precondition_failed);
}

TEST_F(PosixRules, AFileChangedByPosixIsANewObject) {
  const auto stored = put("k", "bytes");
  const auto archived = archive("k");
  ASSERT_TRUE(archived);
  std::ofstream(path("k"), std::ios::app) << "more";
  const auto info = head("k");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->generation, "");
  EXPECT_TRUE(info->etag.ends_with("-0")) << info->etag;
  EXPECT_EQ(info->size, 9u);
  EXPECT_EQ(error_of(run_task(store_->tiered()->evict(name("k"), *archived))).code,
            base::Code::precondition_failed);
  EXPECT_EQ(get("k").value_or(""), "bytesmore");
}

TEST_F(PosixRules, FilesBornByPosixAreObjects) {
  fs::create_directories(path("dir/empty"));
  std::ofstream(path("dir/file")) << "born";
  ::mkfifo(path("dir/fifo").c_str(), 0644);
  fs::create_symlink("file", path("dir/link"));
  EXPECT_EQ(keys(), std::vector<std::string>{"dir/file"});
  EXPECT_EQ(get("dir/file").value_or(""), "born");
  EXPECT_TRUE(object::is_object_not_found(error_of(head("dir/fifo"))));
  EXPECT_TRUE(object::is_object_not_found(error_of(head("dir/link"))));
  EXPECT_TRUE(object::is_object_not_found(error_of(head("dir"))));
  const std::string etag = must(head("dir/file")).etag;
  const auto archived = archive("dir/file");
  ASSERT_TRUE(archived) << to_string(archived.error());
  EXPECT_EQ(archived->generation.size(), 26u);
  EXPECT_EQ(must(head("dir/file")).generation, archived->generation);
  EXPECT_EQ(must(head("dir/file")).etag, etag) << "an ETag once given stays";
  EXPECT_TRUE(run_task(store_->tiered()->evict(name("dir/file"), *archived)));
}

TEST_F(PosixRules, ACopiedFileDoesNotTakeTheGenerationAlong) {
  ASSERT_TRUE(put("k", "bytes"));
  ASSERT_EQ(run("cp -a " + path("k").string() + " " + path("copy").string()), 0);
  EXPECT_EQ(must(head("copy")).generation, "");
  EXPECT_EQ(must(head("copy")).name.key, "copy");
}

TEST_F(PosixRules, ToolsNeverCarryFalseBytes) {
  const std::string bytes(300'000, 'z');
  ASSERT_TRUE(put("tree/evicted", bytes));
  ASSERT_TRUE(put("tree/kept", "kept"));
  ASSERT_TRUE(evict("tree/evicted"));
  const std::string tree = path("tree").string();
  const fs::path out = root_ / "out";
  fs::create_directories(out);
  EXPECT_NE(run("cp " + tree + "/evicted " + (out / "cp").string()), 0);
  EXPECT_FALSE(fs::exists(fs::symlink_status(out / "cp")));
  EXPECT_NE(run("cat " + tree + "/evicted"), 0);
  const auto expect_link = [&](const fs::path& copy) {
    EXPECT_TRUE(fs::is_symlink(copy / "evicted")) << copy;
    EXPECT_EQ(slurp(copy / "kept"), "kept");
  };
  ASSERT_EQ(run("cp -a " + tree + " " + (out / "cpa").string()), 0);
  expect_link(out / "cpa");
  ASSERT_EQ(
      run("cd " + root_.string() +
          "/bucket && tar cf ../out/t.tar tree && mkdir ../out/tar && tar xf ../out/t.tar -C ../out/tar"),
      0);
  expect_link(out / "tar/tree");
  if (run("command -v rsync") == 0) {
    ASSERT_EQ(run("rsync -a " + tree + "/ " + (out / "rsync").string()), 0);
    expect_link(out / "rsync");
  }
  ASSERT_TRUE(recall("tree/evicted", must(head("tree/evicted")).generation, bytes));
  EXPECT_TRUE(slurp(path("tree/evicted")) == bytes);
}

TEST_F(PosixRules, AStubIsFollowedThroughMvAndNowhereElse) {
  ASSERT_TRUE(put("a", "bytes"));
  ASSERT_TRUE(evict("a"));
  const std::string generation = must(head("a")).generation;
  ASSERT_EQ(run("cp -a " + path("a").string() + " " + path("copy").string()), 0);
  EXPECT_TRUE(object::is_object_not_found(error_of(head("copy"))))
      << "a copied stub is a conflict, not an object";
  EXPECT_EQ(keys(), std::vector<std::string>{"a"});
  fs::create_directories(path("dir"));
  fs::rename(path("a"), path("dir/moved"));
  EXPECT_EQ(must(head("dir/moved")).generation, generation);
  EXPECT_EQ(must(head("dir/moved")).name.key, "dir/moved");
  EXPECT_TRUE(object::is_object_not_found(error_of(head("a"))));
  ASSERT_TRUE(recall("dir/moved", generation, "bytes"));
  EXPECT_EQ(get("dir/moved").value_or(""), "bytes");
  EXPECT_EQ(must(head("dir/moved")).etag, "tag");
}

TEST_F(PosixRules, ARecallBringsBackModeOwnerTimesAndAttributes) {
  ASSERT_TRUE(put("k", "bytes"));
  ::chmod(path("k").c_str(), 0640);
  const bool is_root = ::chown(path("k").c_str(), 1234, 4321) == 0;
  ASSERT_EQ(run("setfattr -n user.color -v blue " + path("k").string() +
                " || python3 -c 'import os,sys;os.setxattr(sys.argv[1],\"user.color\",b\"blue\")' " +
                path("k").string()),
            0);
  struct stat before{};
  ASSERT_EQ(::stat(path("k").c_str(), &before), 0);
  ASSERT_TRUE(evict("k"));
  ASSERT_TRUE(recall("k", must(head("k")).generation, "bytes"));
  struct stat after{};
  ASSERT_EQ(::stat(path("k").c_str(), &after), 0);
  EXPECT_EQ(after.st_mode, before.st_mode);
  EXPECT_EQ(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
  EXPECT_EQ(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
  if (is_root) EXPECT_EQ(after.st_uid, 1234u);
  EXPECT_EQ(run("python3 -c 'import os,sys;sys.exit(os.getxattr(sys.argv[1],\"user.color\")!=b\"blue\")' " +
                path("k").string()),
            0);
}

TEST_F(PosixRules, NothingLeavesTheBucket) {
  const fs::path outside = root_.string() + ".outside";
  fs::create_directories(outside);
  std::ofstream(outside / "secret") << "secret";
  fs::create_directory_symlink(outside, path("door"));
  fs::create_symlink(outside / "secret", path("file"));
  fs::create_directory_symlink(outside, root_ / "bucket2");
  for (const char* key :
       {"door/secret", "file", "../bucket/../../secret", "/etc/passwd", "../.reelway/site.key"}) {
    SCOPED_TRACE(key);
    EXPECT_TRUE(object::is_object_not_found(error_of(head(key))));
    ASSERT_TRUE(put(key, "mine"));
    EXPECT_EQ(get(key).value_or(""), "mine");
  }
  EXPECT_TRUE(object::is_bucket_not_found(error_of(run_task(store_->head_bucket("bucket2")))));
  EXPECT_TRUE(object::is_bucket_not_found(error_of(run_task(store_->head_bucket(".reelway")))));
  EXPECT_TRUE(object::is_bucket_not_found(error_of(run_task(store_->head_bucket("../etc")))));
  EXPECT_EQ(slurp(outside / "secret"), "secret");
  EXPECT_EQ(std::distance(fs::directory_iterator(outside), {}), 1);
  EXPECT_EQ(slurp(root_ / ".reelway/site.key").size(), 32u);
  fs::remove_all(outside);
}

TEST_F(PosixRules, TwoStoresOnOneRootAgree) {
  const auto second = make();
  for (int round = 0; round < 10; ++round) {
    const std::string key = "raced/" + std::to_string(round);
    std::atomic<int> won = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        won += put(i % 2 == 0 ? *store_ : *second, key, std::to_string(i), if_none_match("*")).has_value();
      });
    threads.clear();
    EXPECT_EQ(won, 1) << key;
  }
}

TEST_F(PosixRules, PutsAndRemovalsOfOneFolderDoNotLoseEachOther) {
  std::vector<std::jthread> threads;
  std::atomic<int> failures = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 30; ++round) {
        const std::string key = "deep/er/" + std::to_string(i);
        if (!put(key, "x") || get(key).value_or("") != "x") ++failures;
        if (!run_task(store_->remove({.name = name(key), .conditions = {}}))) ++failures;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(failures, 0);
  EXPECT_FALSE(fs::exists(path("deep"))) << "empty folders go";
}

TEST_F(PosixRules, APathShadowsAnOddKeyAndARemovalTakesBoth) {
  ASSERT_TRUE(put("a/b", "below"));
  ASSERT_TRUE(put("a", "odd"));
  ASSERT_TRUE(run_task(store_->remove({.name = name("a/b"), .conditions = {}})));
  std::ofstream(path("a")) << "posix";
  EXPECT_EQ(get("a").value_or(""), "posix");
  EXPECT_EQ(keys(), std::vector<std::string>{"a"});
  ASSERT_TRUE(run_task(store_->remove({.name = name("a"), .conditions = {}})));
  EXPECT_TRUE(keys().empty());
}

TEST_F(PosixRules, SendfileIsGivenTheRange) {
  ASSERT_TRUE(put("k", "0123456789"));
  const auto reader = run_task(store_->get({.name = name("k"),
                                            .conditions = {},
                                            .range = object::RangeRequest{.first = 3, .last = 5},
                                            .part_number = {}}));
  ASSERT_TRUE(reader);
  const auto segment = (*reader)->file_segment();
  ASSERT_TRUE(segment);
  std::string bytes(segment->length, '\0');
  EXPECT_EQ(::pread(segment->descriptor, bytes.data(), bytes.size(), static_cast<off_t>(segment->offset)), 3);
  EXPECT_EQ(bytes, "345");
}

/// A file system of its own for one test: a tmpfs, or an image mounted by a loop device. Empty when this
/// process may not. It is taken away after the store that lies on it.
class Mount {
 public:
  Mount(const fs::path& at, const std::string& make, const std::string& size)
      : at_(at), image_(at.string() + ".image") {
    fs::create_directories(at_);
    const std::string image = image_.string();
    if (::geteuid() != 0) return;
    if (make == "tmpfs") {
      mounted_ = run("mount -t tmpfs -o size=" + size + " tmpfs " + at_.string()) == 0;
    } else {
      mounted_ = run("truncate -s " + size + " " + image + " && " + make + " " + image +
                     " && mount -o loop " + image + " " + at_.string()) == 0;
    }
  }
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;
  ~Mount() {
    if (mounted_) run("umount " + at_.string() + " || umount -l " + at_.string());
    sweep(at_);
    sweep(image_);
  }
  explicit operator bool() const { return mounted_; }

 private:
  fs::path at_;
  fs::path image_;
  bool mounted_ = false;
};

class PosixMount : public PosixRules {
 protected:
  void TearDown() override {
    store_.reset();
    mount_.reset();
    PosixRules::TearDown();
  }
  /// False: not here, and why.
  bool mount(const std::string& make, const std::string& size) {
    const fs::path at = root_.string() + ".mnt";
    mount_ = std::make_unique<Mount>(at, make, size);
    if (*mount_) use(at / "root");
    return static_cast<bool>(*mount_);
  }
  void keeps_attribute_and_sidecar() {
    for (const std::size_t user_bytes : {std::size_t{100}, std::size_t{6000}}) {
      SCOPED_TRACE(user_bytes);
      const std::string key = "dir/k" + std::to_string(user_bytes);
      object::MemorySource source(base::as_bytes("bytes"));
      object::PutRequest request{
          .name = name(key), .attributes = {}, .conditions = {}, .seal = seal_with("tag")};
      request.attributes.user["note"] = std::string(user_bytes, 'm');
      must(run_task(store_->put(std::move(request), source)));
      const auto note = [&] { return must(head(key)).attributes.user.at("note").size(); };
      EXPECT_EQ(note(), user_bytes);
      must(evict(key));
      EXPECT_EQ(note(), user_bytes);
      must(recall(key, must(head(key)).generation, "bytes"));
      EXPECT_EQ(get(key).value_or(""), "bytes");
      EXPECT_EQ(note(), user_bytes);
      must(run_task(store_->copy({.source = name(key),
                                  .source_conditions = {},
                                  .target = name("clone"),
                                  .target_conditions = {},
                                  .replace_attributes = {},
                                  .storage_class = {}})));
      EXPECT_EQ(get("clone").value_or(""), "bytes");
      EXPECT_EQ(must(head("clone")).attributes.user.at("note").size(), user_bytes);
    }
  }
  std::unique_ptr<Mount> mount_;
};

constexpr const char* kNoLoop = "needs root, loop devices and the file system's mkfs";

TEST_F(PosixMount, WorksOnXfs) {
  if (!mount("mkfs.xfs -q", "320M")) GTEST_SKIP() << kNoLoop;
  keeps_attribute_and_sidecar();
}

TEST_F(PosixMount, WorksOnExt4) {
  if (!mount("mkfs.ext4 -q", "64M")) GTEST_SKIP() << kNoLoop;
  keeps_attribute_and_sidecar();
}

TEST_F(PosixMount, AFullDiskRefusesAndKeepsNothing) {
  if (!mount("tmpfs", "2M")) GTEST_SKIP() << "needs root, to mount a tmpfs";
  EXPECT_FALSE(store_->leases_are_believed()) << "tmpfs may be anybody's";
  ASSERT_TRUE(put("small", "here"));
  const auto free_before = fs::space(root_).available;
  EXPECT_EQ(error_of(put("large", std::string(4'000'000, 'l'))).code, base::Code::no_space);
  EXPECT_TRUE(object::is_object_not_found(error_of(head("large"))));
  const auto upload = must(run_task(store_->multipart()->create_upload(
      {.name = name("parts"), .attributes = {}, .checksum_kind = {}, .checksum_full_object = false})));
  const std::string half(1'200'000, 'h');
  object::MemorySource part(base::as_bytes(half));
  object::PutPartRequest request{
      .name = name("parts"), .upload_id = upload.upload_id, .part_number = 1, .seal = seal_with("p")};
  const auto stored = must(run_task(store_->multipart()->put_part(std::move(request), part)));
  const auto completed =
      run_task(store_->multipart()->complete_upload({.name = name("parts"),
                                                     .upload_id = upload.upload_id,
                                                     .parts = {stored},
                                                     .seal = {.etag = "w", .checksums = {}},
                                                     .conditions = {}}));
  EXPECT_EQ(error_of(completed).code, base::Code::no_space);
  EXPECT_TRUE(run_task(store_->multipart()->abort_upload(name("parts"), upload.upload_id)));
  EXPECT_EQ(error_of(evict("small")).code, base::Code::unsupported);
  EXPECT_GE(fs::space(root_).available + 64 * 1024, free_before);
  EXPECT_EQ(get("small").value_or(""), "here");
}

TEST_F(PosixMount, ARecallToAFullDiskLeavesTheStub) {
  if (!mount("mkfs.ext4 -q -m 0", "16M")) GTEST_SKIP() << kNoLoop;
  const std::string bytes(2'000'000, 'r');
  must(put("k", bytes));
  must(evict("k"));
  const std::string generation = must(head("k")).generation;
  std::ofstream filler(root_ / "filler", std::ios::binary);
  while (filler << std::string(65536, 'f') << std::flush) continue;
  filler.close();
  EXPECT_EQ(error_of(recall("k", generation, bytes)).code, base::Code::no_space);
  EXPECT_EQ(must(head("k")).residency, object::Residency::evicted);
  EXPECT_EQ(must(head("k")).etag, "tag");
  EXPECT_TRUE(fs::is_empty(root_ / ".reelway/evicting"));
  EXPECT_TRUE(fs::is_empty(root_ / ".reelway/tmp"));
  fs::remove(root_ / "filler");
  must(recall("k", generation, bytes));
  EXPECT_TRUE(get("k").value_or("") == bytes);
}

TEST_F(PosixMount, ABucketOnAnotherFileSystemIsRefusedByName) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to mount a tmpfs";
  const Mount bucket(path("mounted"), "tmpfs", "2M");
  if (!bucket) GTEST_SKIP() << "needs to mount a tmpfs";
  const auto stored = put("mounted/key", "bytes");
  EXPECT_EQ(error_of(stored).code, base::Code::unsupported);
  EXPECT_TRUE(error_of(stored).detail.contains("another file system")) << error_of(stored).detail;
  EXPECT_TRUE(object::is_object_not_found(error_of(head("mounted/key"))));
  std::ofstream(path("mounted/born")) << "by POSIX";
  EXPECT_EQ(get("mounted/born").value_or(""), "by POSIX");
  EXPECT_EQ(error_of(evict("mounted/born")).code, base::Code::unsupported);
  EXPECT_EQ(get("mounted/born").value_or(""), "by POSIX");
}

}  // namespace
}  // namespace reelway::store::posix
