#pragma once
// Reads CBOR (RFC 8949) item by item, without building anything: definite lengths only, the shortest walk
// over bytes that nobody vouches for. Every error is data_loss. What is not needed is skipped, nested no
// deeper than a few levels.

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace reelway::object {

class CborReader {
 public:
  explicit CborReader(base::ByteView bytes) : rest_(bytes) {}

  base::Result<std::uint64_t> map_size();    ///< of the map that follows: that many pairs
  base::Result<std::uint64_t> array_size();  ///< of the array that follows: that many items
  base::Result<std::string_view> text();     ///< points into the input
  base::Result<base::ByteView> byte_string();
  base::Result<std::uint64_t> unsigned_number();
  base::Result<std::int64_t> number();
  /// Passes over one item of any kind.
  base::Result<void> skip();
  bool at_end() const { return rest_.empty(); }

 private:
  struct Head {
    std::uint8_t major = 0;
    std::uint64_t argument = 0;
  };
  base::Result<Head> head();
  base::Result<std::uint64_t> argument_of(std::uint8_t major);
  base::Result<base::ByteView> take(std::uint64_t count);
  base::Result<void> skip(int depth);

  base::ByteView rest_;
};

}  // namespace reelway::object
