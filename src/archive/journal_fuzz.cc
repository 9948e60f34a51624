#include "archive/journal.h"

/// What decodes must decode to the same again after encoding.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto deaths = reelway::archive::decode_journal({reinterpret_cast<const char*>(data), size});
  if (!deaths.has_value()) return 0;
  std::vector<reelway::archive::ObjectRow> rows;
  for (const auto& death : *deaths) {
    rows.emplace_back();
    rows.back().name = death.name;
    rows.back().identity.generation = death.generation;
  }
  const auto again = reelway::archive::decode_journal(reelway::archive::encode_journal(rows));
  if (!again.has_value() || *again != *deaths) __builtin_trap();
  return 0;
}
