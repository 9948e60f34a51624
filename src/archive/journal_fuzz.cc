#include "archive/journal.h"

/// What decodes must decode to the same again after encoding, texts that JSON cannot carry aside.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto journal = reelway::archive::decode_journal({reinterpret_cast<const char*>(data), size});
  if (!journal.has_value()) return 0;
  const auto again = reelway::archive::decode_journal(reelway::archive::encode_journal(*journal));
  if (!again.has_value() || *again != *journal) __builtin_trap();
  return 0;
}
