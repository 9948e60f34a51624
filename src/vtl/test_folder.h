#pragma once
// For tests and fuzzers of this room: a folder that goes away with its owner.

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace reelway::vtl {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "vtl_test_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace reelway::vtl
