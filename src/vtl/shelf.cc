#include "vtl/shelf.h"

#include <fmt/format.h>

#include <algorithm>

#include "vtl/cartridge.h"
#include "vtl/file.h"

namespace reelway::vtl {
namespace {

constexpr std::string_view kFirstLine = "reelway-vtl 1";
constexpr std::uint32_t kElementsMax = 0xe000;

base::Error unreadable(std::string_view what) {
  return base::fail(base::Code::data_loss, fmt::format("library state: {}", what), base::Scope::library);
}

}  // namespace

base::Result<Shelf> Shelf::open(const std::filesystem::path& file, const ShelfOptions& options) {
  if (options.drives > 0xf00 || options.mail_slots > 0xf0 || options.slots > kElementsMax) {
    return base::fail(base::Code::invalid_argument, "too many elements for one library");
  }
  Shelf shelf;
  shelf.file_ = file;
  shelf.sync_ = options.sync;
  const auto add = [&](std::uint32_t count, std::uint16_t first, scsi::ElementType type) {
    for (std::uint32_t i = 0; i < count; ++i) {
      shelf.bays_.push_back({.address = static_cast<std::uint16_t>(first + i), .type = type});
    }
  };
  add(1, kPicker, scsi::ElementType::picker);
  add(options.mail_slots, kFirstMailSlot, scsi::ElementType::mail_slot);
  add(options.drives, kFirstDriveBay, scsi::ElementType::drive_bay);
  add(options.slots, kFirstSlot, scsi::ElementType::slot);
  auto text = read_file(file);
  if (text) {
    TRY_VOID(shelf.take(*text));
  } else if (text.error().code != base::Code::not_found) {
    return text.error();
  }
  return shelf;
}

base::Result<void> Shelf::take(std::string_view text) {
  std::vector<std::string> homeless;
  bool first = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (std::exchange(first, false)) {
      if (line != kFirstLine) return unreadable("unknown first line");
      continue;
    }
    const std::vector<std::string_view> words = words_of(line);
    if (words.size() != 4) return unreadable("bad line");
    const auto address = base::parse_hex_u64(words[0]);
    const auto source = base::parse_hex_u64(words[2]);
    if (!address || !source || *address > 0xffff || *source > 0xffff || find(words[1]) != nullptr)
      return unreadable("bad bay");
    Bay* bay = find(static_cast<std::uint16_t>(*address));
    if (bay == nullptr || !bay->barcode.empty()) {
      homeless.emplace_back(words[1]);
      continue;
    }
    bay->barcode = words[1];
    bay->source = static_cast<std::uint16_t>(*source);
    bay->by_operator = words[3] == "1";
  }
  for (std::string& barcode : homeless) {
    Bay* bay = free_bay(scsi::ElementType::slot);
    if (bay == nullptr) {
      const auto address = static_cast<std::uint16_t>(kFirstSlot + count(scsi::ElementType::slot));
      bay = &bays_.emplace_back(Bay{.address = address});
    }
    bay->barcode = std::move(barcode);
  }
  return {};
}

Bay* Shelf::find(std::uint16_t address) {
  const auto at = std::ranges::lower_bound(bays_, address, {}, &Bay::address);
  return at != bays_.end() && at->address == address ? &*at : nullptr;
}

Bay* Shelf::find(std::string_view barcode) {
  const auto at = std::ranges::find(bays_, barcode, &Bay::barcode);
  return at != bays_.end() && !barcode.empty() ? &*at : nullptr;
}

Bay* Shelf::free_bay(scsi::ElementType type) {
  const auto at =
      std::ranges::find_if(bays_, [&](const Bay& bay) { return bay.type == type && bay.barcode.empty(); });
  return at == bays_.end() ? nullptr : &*at;
}

std::uint32_t Shelf::count(scsi::ElementType type) const {
  return static_cast<std::uint32_t>(std::ranges::count(bays_, type, &Bay::type));
}

base::Result<void> Shelf::save() const {
  std::string text = fmt::format("{}\n", kFirstLine);
  for (const Bay& bay : bays_) {
    if (bay.barcode.empty()) continue;
    text +=
        fmt::format("{:04x} {} {:04x} {}\n", bay.address, bay.barcode, bay.source, bay.by_operator ? 1 : 0);
  }
  return replace_file(file_, text, sync_ ? Durable::yes : Durable::no);
}

}  // namespace reelway::vtl
