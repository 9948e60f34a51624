#pragma once
// Files as contents and sinks; every call on them runs on a blocking pool.

#include <string>

#include "async/offload.h"
#include "s3client/client.h"

namespace reelway::s3client {

/// A regular file, opened once. data_loss when it shrinks while it is sent.
class FileContent final : public Content {
 public:
  static base::Result<std::unique_ptr<FileContent>> open(const std::string& path, async::BlockingPool& pool);
  ~FileContent() override;
  FileContent(const FileContent&) = delete;
  FileContent& operator=(const FileContent&) = delete;
  std::uint64_t size() const override { return size_; }
  async::Task<std::size_t> read_at(std::uint64_t offset, base::MutableBytes into) override;

 private:
  FileContent(int descriptor, std::uint64_t size, async::BlockingPool& pool)
      : descriptor_(descriptor), size_(size), pool_(pool) {}
  int descriptor_;
  std::uint64_t size_;
  async::BlockingPool& pool_;
};

/// Writes to an open descriptor that can seek, which stays the caller's. A retry overwrites what came before;
/// the caller truncates the file to the bytes of the GetResult.
class FileSink final : public Sink {
 public:
  FileSink(int descriptor, async::BlockingPool& pool) : descriptor_(descriptor), pool_(pool) {}
  async::Task<void> write(std::uint64_t offset, base::ByteView bytes) override;

 private:
  int descriptor_;
  async::BlockingPool& pool_;
};

}  // namespace reelway::s3client
