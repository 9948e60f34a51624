#include "s3client/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "async/spawn.h"

namespace reelway::s3client {
namespace {

class FileTest : public testing::Test {
 protected:
  FileTest() {
    std::string name = (std::filesystem::temp_directory_path() / "reelway-file-XXXXXX").string();
    descriptor_ = ::mkstemp(name.data());
    path_ = name;
  }
  ~FileTest() override {
    ::close(descriptor_);
    std::filesystem::remove(path_);
  }
  async::BlockingPool pool_{"file-test", 1};
  int descriptor_ = -1;
  std::string path_;
};

TEST_F(FileTest, WhatIsWrittenIsReadAtAnyOffset) {
  FileSink sink(descriptor_, pool_);
  ASSERT_TRUE(async::run_until_done(sink.write(0, base::as_bytes("xxxxxworld"))));
  ASSERT_TRUE(async::run_until_done(sink.write(0, base::as_bytes("hello"))));
  const auto content = FileContent::open(path_, pool_);
  ASSERT_TRUE(content) << content.error().detail;
  EXPECT_EQ((*content)->size(), 10U);
  std::array<std::byte, 4> buffer{};
  const auto got = async::run_until_done((*content)->read_at(7, buffer));
  ASSERT_TRUE(got);
  EXPECT_EQ(base::as_text(base::ByteView(buffer).first(*got)), "rld");
}

TEST_F(FileTest, OnlyRegularFilesThatExist) {
  EXPECT_EQ(FileContent::open(path_ + ".none", pool_).error().code, base::Code::not_found);
  EXPECT_EQ(FileContent::open("/", pool_).error().code, base::Code::invalid_argument);
}

}  // namespace
}  // namespace reelway::s3client
