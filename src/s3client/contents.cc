#include <algorithm>

#include "s3client/client.h"

namespace reelway::s3client {

async::Task<std::size_t> MemoryContent::read_at(std::uint64_t offset, base::MutableBytes into) {
  if (offset > bytes_.size())
    co_return base::fail(base::Code::out_of_range, "read past the end of a memory content");
  const std::size_t size = std::min<std::size_t>(into.size(), bytes_.size() - offset);
  std::ranges::copy(bytes_.subspan(offset, size), into.begin());
  co_return size;
}

async::Task<void> MemorySink::write(std::uint64_t offset, base::ByteView bytes) {
  bytes_.resize(offset);
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  co_return base::Result<void>{};
}

}  // namespace reelway::s3client
