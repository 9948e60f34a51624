#pragma once
// What tapes carry besides objects: deaths of archived objects, and policies as they were set and removed.
// Files /.reelway/journal/<n> of JSON lines (docs/formats/journal.md). A rebuild from tapes reads them, so
// that it raises no dead object and brings policies back. Unknown lines are skipped: later versions add
// kinds.

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

struct Journal {
  std::vector<Death> deaths;
  std::vector<PolicyChange> policies;
  friend bool operator==(const Journal&, const Journal&) = default;
};

std::string encode_journal(const Journal& journal);
/// data_loss for lines that are no JSON objects, and for a death or a policy that lacks a field.
base::Result<Journal> decode_journal(std::string_view text);

}  // namespace reelway::archive
