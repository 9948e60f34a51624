#pragma once
// Whether a cartridge is the one that the catalog knows under its barcode: three marks must agree, the label,
// the LTFS volume's UUID, and the serial number of the medium. The barcode itself is only a sticker. Pure.

#include <string>
#include <vector>

#include "archive/catalog.h"

namespace reelway::archive {

/// What a mounted cartridge says of itself.
struct CartridgeMarks {
  std::string label;  ///< the serial of VOL1, 6 characters; empty: it has none
  std::string uuid;
  std::string medium_serial;  ///< empty: the cartridge has no memory
};

/// Each mark that is another than the catalog's, as a part of a sentence; empty: they all agree. What the
/// catalog does not know is not compared, but for the label: of a volume that it does not know yet, that is
/// the beginning of the barcode.
std::vector<std::string> marks_that_differ(const VolumeRow& known, const CartridgeMarks& seen);

}  // namespace reelway::archive
