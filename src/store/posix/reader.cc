#include "store/posix/reader.h"

namespace reelway::store::posix {

namespace {

/// Copying more than this in one go would hold up the other connections of the reactor.
constexpr std::size_t kInlineBytesMax = 64 * base::kKiB;

base::Error changed_meanwhile() {
  return base::fail(base::Code::busy, "the file was changed while it was read", base::Scope::object,
                    base::Retry::later);
}

}  // namespace

std::optional<object::FileSegment> FileReader::file_segment() const {
  return object::FileSegment{
      .descriptor = found_.file.get(), .offset = range_.offset, .length = range_.length};
}

async::Task<std::size_t> FileReader::read(base::MutableBytes into) {
  const std::uint64_t left = range_.end() - position_;
  if (left == 0) co_return 0;
  if (into.size() > left) into = into.first(left);
  const int file = found_.file.get();
  std::size_t count = 0;
  if (into.size() <= kInlineBytesMax) {
    const auto hot = space_.files().read_cached(file, into, position_);
    if (hot) count = *hot;
  }
  if (count == 0) {
    CO_TRY(count, co_await async::offload(*space_.options().pool, [&]() -> base::Result<std::size_t> {
             return base::in_context(space_.files().read(file, into, position_), "read an object");
           }));
  }
  if (count == 0) co_return changed_meanwhile();
  position_ += count;
  if (position_ == range_.end()) {
    CO_TRY(const bool is_same, is_unchanged(space_, found_));
    if (!is_same) co_return changed_meanwhile();
  }
  co_return count;
}

}  // namespace reelway::store::posix
