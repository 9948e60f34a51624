#pragma once
// A GET: the open file, read in place while its pages are hot and on the blocking pool when they are not. The
// last bytes are held back when the file was changed meanwhile: busy.

#include "async/offload.h"
#include "store/posix/objects.h"

namespace reelway::store::posix {

class FileReader final : public object::Reader {
 public:
  FileReader(Space& space, Found found, base::ByteRange range)
      : space_(space), found_(std::move(found)), range_(range), position_(range.offset) {}
  const object::ObjectInfo& info() const override { return found_.info; }
  base::ByteRange range() const override { return range_; }
  std::optional<object::FileSegment> file_segment() const override;
  async::Task<std::size_t> read(base::MutableBytes into) override;

 private:
  Space& space_;
  Found found_;
  base::ByteRange range_;
  std::uint64_t position_;
};

}  // namespace reelway::store::posix
