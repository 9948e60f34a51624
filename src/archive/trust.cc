#include "archive/trust.h"

#include <fmt/format.h>

namespace reelway::archive {

namespace {

constexpr std::size_t kLabelLength = 6;

std::string shown(const std::string& mark) { return mark.empty() ? "nothing" : mark; }

}  // namespace

std::vector<std::string> marks_that_differ(const VolumeRow& known, const CartridgeMarks& seen) {
  const bool is_known = !known.uuid.empty();
  std::vector<std::string> differing;
  const auto compare = [&](const char* what, const std::string& ours, const std::string& theirs) {
    if (ours != theirs)
      differing.push_back(fmt::format("its {} is {}, the catalog has {}", what, shown(theirs), shown(ours)));
  };
  if (is_known || !seen.label.empty())
    compare("label (VOL1)", is_known ? known.serial : known.barcode.substr(0, kLabelLength), seen.label);
  if (is_known) compare("LTFS volume UUID", known.uuid, seen.uuid);
  if (!known.medium_serial.empty()) compare("medium serial", known.medium_serial, seen.medium_serial);
  return differing;
}

}  // namespace reelway::archive
