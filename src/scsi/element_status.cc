// READ ELEMENT STATUS data (SMC-3 section 6.10): a header, then pages of one element type each, then a
// descriptor per element.

#include <fmt/format.h>

#include <algorithm>

#include "scsi/fields.h"
#include "scsi/replies.h"

namespace reelway::scsi {
namespace {

constexpr std::size_t kHeaderBytes = 8;
constexpr std::size_t kDescriptorBytesMin = 12;
constexpr std::size_t kVolumeTagBytes = 36;
constexpr std::size_t kBarcodeBytes = 32;

base::Error malformed(std::string_view what) {
  return base::fail(base::Code::data_loss, fmt::format("malformed element status: {}", what),
                    base::Scope::library);
}

std::string trimmed(base::ByteView bytes) {
  std::string_view text = base::as_text(bytes);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\0')) text.remove_suffix(1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return std::string(text);
}

struct PageForm {
  ElementType type;
  bool primary_tags;
  bool alternate_tags;
};

Element parse_descriptor(const PageForm& form, base::ByteView bytes) {
  const std::uint8_t flags = get_u8(bytes, 2);
  Element element{.type = form.type,
                  .address = get_u16(bytes, 0),
                  .full = (flags & 0x01) != 0,
                  .accessible = (flags & 0x08) != 0,
                  .exception = (flags & 0x04) != 0,
                  .by_operator = (flags & 0x02) != 0,
                  .asc = get_u8(bytes, 4),
                  .ascq = get_u8(bytes, 5)};
  if ((get_u8(bytes, 9) & 0x80) != 0) element.source = get_u16(bytes, 10);
  std::size_t at = kDescriptorBytesMin;
  if (form.primary_tags && bytes.size() >= at + kVolumeTagBytes) {
    if (element.full) element.barcode = trimmed(bytes.subspan(at, kBarcodeBytes));
    at += kVolumeTagBytes;
  }
  if (form.alternate_tags) at += kVolumeTagBytes;
  // A device identification descriptor follows, or nothing but vendor bytes.
  if (form.type == ElementType::drive_bay && bytes.size() >= at + 4) {
    const std::size_t length = std::min<std::size_t>(get_u8(bytes, at + 3), bytes.size() - at - 4);
    element.device_id = trimmed(bytes.subspan(at + 4, length));
  }
  return element;
}

}  // namespace

base::Result<std::vector<Element>> parse_element_status(base::ByteView reply) {
  if (reply.size() < kHeaderBytes) return malformed("under 8 bytes");
  const std::size_t total = get_u24(reply, 5);
  if (total > reply.size() - kHeaderBytes) return malformed("longer than the reply");
  base::ByteView rest = reply.subspan(kHeaderBytes, total);
  std::vector<Element> elements;
  while (!rest.empty()) {
    if (rest.size() < kHeaderBytes) return malformed("page header cut short");
    const PageForm form{.type = static_cast<ElementType>(get_u8(rest, 0) & 0x0f),
                        .primary_tags = (get_u8(rest, 1) & 0x80) != 0,
                        .alternate_tags = (get_u8(rest, 1) & 0x40) != 0};
    if (form.type == ElementType::all || form.type > ElementType::drive_bay)
      return malformed("unknown element type");
    const std::size_t each = get_u16(rest, 2);
    const std::size_t length = get_u24(rest, 5);
    if (each < kDescriptorBytesMin || length > rest.size() - kHeaderBytes || length % each != 0) {
      return malformed("page lengths disagree");
    }
    for (std::size_t at = kHeaderBytes; at < kHeaderBytes + length; at += each) {
      elements.push_back(parse_descriptor(form, rest.subspan(at, each)));
    }
    rest = rest.subspan(kHeaderBytes + length);
  }
  return elements;
}

}  // namespace reelway::scsi
