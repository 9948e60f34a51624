#pragma once
// For tests of this room: a cartridge in a drive, and short words for what is done to its volume.

#include <gtest/gtest.h>

#include <string>

#include "scsi/commands.h"
#include "tape/ltfs/volume.h"
#include "testing/tape_rig.h"

namespace reelway::tape::ltfs {

class VolumeRig : public ::testing::Test {
 protected:
  explicit VolumeRig(vtl::Options options = {}) : rig_(std::move(options)) {}
  static constexpr std::size_t kBlock = 4096;  // small, so that files have many blocks

  Environment environment() { return {.clock = rig_.clock(), .rng = rig_.rng()}; }
  Volume& volume() { return *volume_; }

  void format() {
    rig_.load(rig_.barcode());
    FormatOptions options{
        .barcode = rig_.barcode(), .volume_name = "test", .media_pool = "pool", .block_bytes = kBlock};
    volume_ = testing::must(Volume::format(rig_.drive(), environment(), options, mount_options_));
  }
  void mount(MountOptions options = {}) {
    volume_.reset();
    rig_.load(rig_.barcode());
    volume_ = testing::must(Volume::mount(rig_.drive(), environment(), options));
  }
  void unmount() {
    testing::must(volume_->unmount());
    volume_.reset();
  }
  /// As after a kill of the process: the drive got everything that was sent.
  void remount_without_unmount() {
    volume_.reset();
    rig_.reopen();
    mount();
  }

  StoredFile put(const std::string& path, std::string_view content,
                 std::vector<ExtendedAttribute> attributes = {}, const std::string& displaced = {}) {
    FileSpec spec{.path = path, .displaced_path = displaced, .modify_time = rig_.clock().now()};
    testing::must(volume_->begin_file(std::move(spec)));
    testing::must(volume_->append(base::as_bytes(content)));
    return testing::must(volume_->finish_file(std::move(attributes)));
  }
  BatchReceipt commit() {
    const auto receipt = testing::must(volume_->write_manifest({}));
    testing::must(volume_->sync());
    return receipt;
  }
  base::Result<std::string> try_get(const std::string& path, std::size_t offset = 0,
                                    std::size_t length = SIZE_MAX) {
    const auto* file = volume_->index().find_file(path);
    if (file == nullptr) return base::fail(base::Code::not_found, path);
    std::string out;
    std::string buffer(3 * kBlock + 100, '\0');
    while (out.size() < length && offset + out.size() < file->length) {
      const auto wanted = std::min(buffer.size(), length - out.size());
      const auto into = std::as_writable_bytes(std::span(buffer)).first(wanted);
      const ReadRequest request{
          .extents = file->extents, .file_length = file->length, .offset = offset + out.size()};
      TRY(const auto bytes, testing::run_task(volume_->read(request, into)));
      if (bytes == 0) break;
      out += buffer.substr(0, bytes);
    }
    return out;
  }
  std::string get(const std::string& path, std::size_t offset = 0, std::size_t length = SIZE_MAX) {
    auto result = try_get(path, offset, length);
    return result ? *result : to_string(result.error());
  }

  static std::string text(std::size_t bytes, unsigned seed) {
    std::string out(bytes, '\0');
    base::SeededRng(seed).fill(std::as_writable_bytes(std::span(out)));
    return out;
  }
  /// The index's text from the tree on: what comes before differs between the two partitions.
  static std::string tree_of(const Index& index) {
    std::string out;
    IndexSerializer(index).fill(out, SIZE_MAX);
    return out.substr(out.find("<highestfileuid>"));
  }
  /// A partition's objects: B block, M filemark.
  std::string kinds(std::uint32_t partition) {
    testing::must(rig_.drive().locate({partition, 0}));
    base::Bytes block(kBlock);
    std::string out;
    while (true) {
      const auto read = testing::must(rig_.drive().read_block(block));
      if (read.end == ReadEnd::end_of_data) return out;
      out += read.end == ReadEnd::block ? 'B' : 'M';
    }
  }
  std::string block(Position position) {
    testing::must(rig_.drive().locate(position));
    base::Bytes bytes(kBlock);
    const auto read = testing::must(rig_.drive().read_block(bytes));
    return std::string(base::as_text(base::ByteView(bytes).first(read.bytes)));
  }

  testing::TapeRig rig_;
  MountOptions mount_options_;
  std::unique_ptr<Volume> volume_;
};

}  // namespace reelway::tape::ltfs
