#pragma once
// A virtual library in a scratch folder with our drive, changer and library objects on it, for tests of what
// lives above SCSI. File calls run inline and nothing waits, so a test's order of events is fixed.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "async/timer.h"
#include "base/rng.h"
#include "tape/library.h"
#include "testing/run_task.h"
#include "vtl/library.h"

namespace reelway::testing {

class TapeRig {
 public:
  explicit TapeRig(vtl::Options options = {}) {
    std::string name = (std::filesystem::temp_directory_path() / "tape_rig_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    options.directory = folder_ / "library";
    options.inline_io = true;
    options.sync = false;                                            // power cuts are modelled, not suffered
    if (options.capacity_scale == 1) options.capacity_scale = 1e-4;  // cartridges of 1.8 GB
    options_ = options;
    open();
  }
  ~TapeRig() {
    close();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TapeRig(const TapeRig&) = delete;
  TapeRig& operator=(const TapeRig&) = delete;

  /// As after a restart of the process: our objects and the virtual library's are new, the cartridges are as
  /// they were.
  void reopen() {
    close();
    open();
  }
  /// Everything loses power; what was not synced is partly gone. Our objects are new afterwards.
  void power_cut(std::uint64_t seed) {
    auto cut = vtl_->power_cut(seed);
    EXPECT_TRUE(cut.has_value()) << (cut ? "" : to_string(cut.error()));
    reopen();
  }
  void load(const std::string& barcode, std::size_t drive_number = 0) {
    auto loaded = run_task(library_->load(barcode, drive_number));
    ASSERT_TRUE(loaded.has_value()) << to_string(loaded.error());
  }

  vtl::Library& vtl() { return *vtl_; }
  tape::Library& library() { return *library_; }
  tape::Changer& changer() { return *changer_; }
  tape::Drive& drive(std::size_t number = 0) { return *drives_[number]; }
  std::string barcode(std::size_t number = 0) const { return vtl_->barcodes()[number]; }
  base::ManualClock& clock() { return clock_; }
  base::Rng& rng() { return rng_; }

 private:
  void open() {
    auto opened = vtl::Library::open(options_);
    if (!opened) FAIL() << to_string(opened.error());
    vtl_ = std::move(*opened);
    changer_ = std::make_unique<tape::Changer>(vtl_->changer());
    std::vector<tape::Drive*> drives;
    for (std::uint32_t i = 0; i < vtl_->drive_count(); ++i) {
      drives_.push_back(std::make_unique<tape::Drive>(vtl_->drive(i), timer_));
      drives.push_back(drives_.back().get());
    }
    library_ = std::make_unique<tape::Library>(*changer_, drives);
  }
  void close() {
    library_.reset();
    drives_.clear();
    changer_.reset();
    vtl_.reset();
  }

  std::filesystem::path folder_;
  vtl::Options options_;
  async::SystemTimer timer_;
  base::ManualClock clock_;
  base::SeededRng rng_{7};
  std::unique_ptr<vtl::Library> vtl_;
  std::unique_ptr<tape::Changer> changer_;
  std::vector<std::unique_ptr<tape::Drive>> drives_;
  std::unique_ptr<tape::Library> library_;
};

/// Fails the test when the task does; gives its value.
template <class T>
T must(async::Task<T> task) {
  auto result = run_task(std::move(task));
  if (!result) ADD_FAILURE() << to_string(result.error());
  if (!result) throw std::runtime_error(to_string(result.error()));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

template <class T>
base::Code code_of(async::Task<T> task) {
  const auto result = run_task(std::move(task));
  if (result) ADD_FAILURE() << "it should have failed";
  return result ? base::Code::internal : result.error().code;
}

}  // namespace reelway::testing
