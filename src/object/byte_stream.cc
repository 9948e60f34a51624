#include "object/byte_stream.h"

#include <algorithm>

namespace reelway::object {

async::Task<std::size_t> read_full(ByteSource& source, base::MutableBytes into) {
  std::size_t filled = 0;
  while (filled < into.size()) {
    CO_TRY(const std::size_t count, co_await source.read(into.subspan(filled)));
    if (count == 0) break;
    filled += count;
  }
  co_return filled;
}

async::Task<std::size_t> MemorySource::read(base::MutableBytes into) {
  const std::size_t count = std::min(into.size(), rest_.size());
  std::copy_n(rest_.begin(), count, into.begin());
  rest_ = rest_.subspan(count);
  co_return count;
}

async::Task<void> MemorySink::write(base::ByteView bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  co_return base::Result<void>{};
}

}  // namespace reelway::object
