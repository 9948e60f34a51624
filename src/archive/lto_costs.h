#pragma once
// The planner's costs by the physics of media. `scale`: on a scale-model cartridge (a virtual library of
// small capacity) a byte stands for so many bytes of a real one's, so that positions and lengths keep their
// proportions; 1 for real ones.

#include <string_view>

#include "archive/planner/costs.h"
#include "media/personality.h"

namespace reelway::archive {

class LtoCosts final : public planner::Costs {
 public:
  LtoCosts(const media::Personality& personality, std::uint32_t block_bytes, double scale)
      : personality_(personality), block_bytes_(block_bytes), scale_(scale) {}
  double locate_s(std::uint64_t from_block, std::uint64_t to_block) const override;
  double read_s(std::uint64_t bytes) const override;
  double load_s() const override;
  double unload_s(std::uint64_t from_block) const override;
  std::uint64_t block_bytes() const override { return block_bytes_; }

 private:
  std::uint64_t scaled(std::uint64_t bytes) const {
    return static_cast<std::uint64_t>(static_cast<double>(bytes) * scale_);
  }
  const media::Personality& personality_;
  std::uint32_t block_bytes_;
  double scale_;
};

/// The costs of each generation that media knows.
class LtoCostTable {
 public:
  LtoCostTable(std::uint32_t block_bytes, double scale)
      : lto8_(media::lto8(), block_bytes, scale), lto9_(media::lto9(), block_bytes, scale) {}
  /// By the barcode's suffix; LTO-9's for cartridges that are not modelled.
  const LtoCosts& of(std::string_view barcode) const {
    return media::generation_of_barcode(barcode) == media::Generation::lto8 ? lto8_ : lto9_;
  }

 private:
  LtoCosts lto8_;
  LtoCosts lto9_;
};

}  // namespace reelway::archive
