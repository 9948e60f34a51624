// The contract suites over a real folder (under the working directory, because tmpfs has no leases that are
// believed).
#include "store/posix/posix_store.h"

#include <filesystem>

#include "testing/multipart_contract.h"
#include "testing/tiered_contract.h"

namespace reelway::testing {
namespace {

namespace fs = std::filesystem;

/// The system's time, moved on by hand.
class ShiftedClock final : public base::Clock {
 public:
  base::TimePoint now() const override { return system_.now() + shift_; }
  base::SteadyPoint steady_now() const override { return system_.steady_now(); }
  void shift(base::Duration by) { shift_ += by; }

 private:
  base::SystemClock system_;
  base::Duration shift_{};
};

class PosixHolder final : public StoreHolder {
 public:
  explicit PosixHolder(store::posix::Durability durability)
      : root_(fs::absolute("posix_store_test." + std::to_string(::getpid()))), pool_("files", 4) {
    sweep();
    fs::create_directories(root_);
    auto store =
        store::posix::PosixStore::create({.root = root_,
                                          .durability = durability,
                                          .settle = std::chrono::hours{1},  // longer than any test takes
                                          .pool = &pool_,
                                          .clock = &clock_});
    EXPECT_TRUE(store) << to_string(store.error());
    if (store) store_ = std::move(*store);
  }
  ~PosixHolder() override {
    store_.reset();
    sweep();
  }
  object::Store& store() override { return *store_; }
  void let_objects_settle() override { clock_.shift(std::chrono::hours{2}); }

 private:
  void sweep() {
    std::error_code ignored;  // a destructor must not throw
    fs::remove_all(root_, ignored);
  }
  fs::path root_;
  ShiftedClock clock_;
  async::BlockingPool pool_;
  std::unique_ptr<store::posix::PosixStore> store_;
};

std::unique_ptr<StoreHolder> make_durable() {
  return std::make_unique<PosixHolder>(store::posix::Durability::full);
}
std::unique_ptr<StoreHolder> make_fast() {
  return std::make_unique<PosixHolder>(store::posix::Durability::none);
}

const auto kFactories =
    ::testing::Values(StoreFactory{"durable", make_durable}, StoreFactory{"fast", make_fast});
const auto name_of = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Posix, StoreContract, kFactories, name_of);
INSTANTIATE_TEST_SUITE_P(Posix, MultipartContract, kFactories, name_of);
INSTANTIATE_TEST_SUITE_P(Posix, TieredContract, kFactories, name_of);

}  // namespace
}  // namespace reelway::testing
