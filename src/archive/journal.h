#pragma once
// What happened to archived objects afterwards, as it goes onto the tapes: files /.reelway/journal/<n>, JSON
// lines
// {"dead": {"bucket": base64, "key": base64, "generation": text}}. A rebuild from tapes reads them, so that
// it raises no dead object (docs/formats/journal.md). Unknown lines are skipped: later versions add kinds.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "archive/catalog.h"

namespace reelway::archive {

inline constexpr std::string_view kJournalFolder = "/.reelway/journal";

struct Death {
  object::ObjectName name;
  std::string generation;
  friend bool operator==(const Death&, const Death&) = default;
};

std::string encode_journal(const std::vector<ObjectRow>& dead);
/// data_loss for lines that are no JSON objects, or a death that lacks a field.
base::Result<std::vector<Death>> decode_journal(std::string_view text);

}  // namespace reelway::archive
