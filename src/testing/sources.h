#pragma once
// Small things that tests of stores hand in: seals, conditions, a source that gives its bytes in odd pieces.

#include <algorithm>
#include <optional>
#include <string>

#include "object/store.h"

namespace reelway::testing {

inline object::Sealer seal_with(std::string etag, std::vector<object::Checksum> checksums = {}) {
  return [etag = std::move(etag), checksums = std::move(checksums)]() -> base::Result<object::Seal> {
    return object::Seal{.etag = etag, .checksums = checksums};
  };
}

inline object::Conditions if_match(std::string etag) {
  object::Conditions conditions;
  conditions.if_match.push_back(std::move(etag));
  return conditions;
}
inline object::Conditions if_none_match(std::string etag) {
  object::Conditions conditions;
  conditions.if_none_match.push_back(std::move(etag));
  return conditions;
}

/// Gives its bytes in pieces of odd sizes, then perhaps an error.
class ChoppySource final : public object::ByteSource {
 public:
  explicit ChoppySource(std::string bytes, std::optional<base::Error> end = std::nullopt)
      : bytes_(std::move(bytes)), end_(std::move(end)) {}
  std::optional<std::uint64_t> length() const override { return std::nullopt; }
  async::Task<std::size_t> read(base::MutableBytes into) override {
    const std::size_t count = std::min({into.size(), bytes_.size() - position_, step_});
    step_ = step_ * 7 % 9973 + 1;
    std::copy_n(base::as_bytes(bytes_).begin() + static_cast<std::ptrdiff_t>(position_), count, into.begin());
    position_ += count;
    if (count == 0 && end_) co_return *end_;
    co_return count;
  }

 private:
  std::string bytes_;
  std::optional<base::Error> end_;
  std::size_t position_ = 0;
  std::size_t step_ = 1;
};

}  // namespace reelway::testing
