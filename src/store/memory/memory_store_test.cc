#include "store/memory/memory_store.h"

#include "testing/multipart_contract.h"
#include "testing/tiered_contract.h"

namespace reelway::testing {
namespace {

class MemoryHolder final : public StoreHolder {
 public:
  object::Store& store() override { return *store_; }
  void let_objects_settle() override { clock_.advance(std::chrono::seconds{3}); }

 private:
  base::ManualClock clock_;
  base::SeededRng rng_{1};
  std::unique_ptr<object::Store> store_ = store::memory::make_memory_store({.clock = &clock_, .rng = &rng_});
};

const auto kFactories = ::testing::Values(StoreFactory{
    "memory", []() -> std::unique_ptr<StoreHolder> { return std::make_unique<MemoryHolder>(); }});
INSTANTIATE_TEST_SUITE_P(Memory, StoreContract, kFactories);
INSTANTIATE_TEST_SUITE_P(Memory, MultipartContract, kFactories);
INSTANTIATE_TEST_SUITE_P(Memory, TieredContract, kFactories);

}  // namespace
}  // namespace reelway::testing
