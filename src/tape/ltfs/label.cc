#include "tape/ltfs/label.h"

#include <algorithm>
#include <map>

#include "tape/ltfs/sax.h"
#include "tape/ltfs/version.h"

namespace reelway::tape::ltfs {

using base::Code;
using base::fail;
using base::Result;

namespace {

constexpr std::size_t kVol1Bytes = 80;
constexpr std::size_t kSerialBytes = 6;
constexpr std::size_t kLabelBytesMax = 64 << 10;

base::Error damaged(std::string_view what) {
  return fail(Code::data_loss, "LTFS label: " + std::string(what), base::Scope::cartridge,
              base::Retry::elsewhere);
}

/// Collects the text of each leaf by its path, "partitions/index".
class LabelHandler final : public XmlHandler {
 public:
  Result<void> start(std::string_view name, const std::vector<XmlAttribute>& attributes) override {
    if (path_.empty()) {
      if (name != "ltfslabel") return damaged("not a label");
      for (const auto& attribute : attributes) {
        if (attribute.name == "version") version = attribute.value;
      }
    }
    path_.emplace_back(name);
    text_.clear();
    return {};
  }
  Result<void> text(std::string_view text) override {
    text_ += text;
    return {};
  }
  Result<void> end(std::string_view) override {
    std::string path;
    for (std::size_t i = 1; i < path_.size(); ++i) path += (i > 1 ? "/" : "") + path_[i];
    values.try_emplace(std::move(path), std::exchange(text_, {}));
    path_.pop_back();
    return {};
  }

  std::string version;
  std::map<std::string, std::string> values;

 private:
  std::vector<std::string> path_;
  std::string text_;
};

Result<std::string> take(LabelHandler& handler, const char* path) {
  const auto found = handler.values.find(path);
  if (found == handler.values.end()) return damaged(std::string(path) + " is missing");
  return std::move(found->second);
}

Result<char> take_partition(LabelHandler& handler, const char* path) {
  TRY(const auto text, take(handler, path));
  if (text.size() != 1 || text[0] < 'a' || text[0] > 'z')
    return damaged(std::string(path) + " is no partition");
  return text[0];
}

bool is_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const char c = text[i];
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (dash ? c != '-' : !hex) return false;
  }
  return true;
}

}  // namespace

base::Bytes encode_vol1(std::string_view serial) {
  std::string record(kVol1Bytes, ' ');
  record.replace(0, 4, "VOL1");
  serial = serial.substr(0, kSerialBytes);
  record.replace(4, serial.size(), serial);
  record[10] = 'L';
  record.replace(24, 4, "LTFS");
  record[79] = '4';
  const auto bytes = base::as_bytes(record);
  return {bytes.begin(), bytes.end()};
}

Result<std::string> decode_vol1(base::ByteView record) {
  const auto text = base::as_text(record);
  const bool is_ours = text.size() == kVol1Bytes && text.starts_with("VOL1") && text.substr(24, 4) == "LTFS";
  if (!is_ours) return fail(Code::unsupported, "the cartridge holds no LTFS volume", base::Scope::cartridge);
  auto serial = std::string(text.substr(4, kSerialBytes));
  serial.erase(serial.find_last_not_of(' ') + 1);
  for (const char c : serial) {
    if (c < 0x20 || c > 0x7E) return damaged("a serial that is not text");
  }
  return serial;
}

std::string encode_label(const Label& label) {
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ltfslabel version=\"";
  append_escaped(label.version, out);
  out += "\">\n";
  append_element("creator", label.creator, out);
  append_element("formattime", label.format_time, out);
  append_element("volumeuuid", label.volume_uuid, out);
  out += "<location>\n";
  append_element("partition", {&label.location, 1}, out);
  out += "</location>\n<partitions>\n";
  append_element("index", {&label.index_partition, 1}, out);
  append_element("data", {&label.data_partition, 1}, out);
  out += "</partitions>\n";
  append_element("blocksize", std::to_string(label.block_bytes), out);
  append_element("compression", label.compression ? "true" : "false", out);
  out += "</ltfslabel>\n";
  return out;
}

Result<Label> decode_label(base::ByteView record) {
  if (record.size() > kLabelBytesMax) return damaged("too large");
  LabelHandler handler;
  XmlParser parser(handler,
                   {.document_bytes_max = kLabelBytesMax, .tag_bytes_max = kLabelBytesMax, .depth_max = 8});
  TRY_VOID(parser.feed(record));
  TRY_VOID(parser.finish());
  if (!is_supported_version(handler.version)) {
    return fail(Code::unsupported, "an LTFS label of version " + printable(handler.version),
                base::Scope::cartridge);
  }
  Label label;
  label.version = handler.version;
  TRY(label.creator, take(handler, "creator"));
  TRY(label.format_time, take(handler, "formattime"));
  TRY(label.volume_uuid, take(handler, "volumeuuid"));
  TRY(label.location, take_partition(handler, "location/partition"));
  TRY(label.index_partition, take_partition(handler, "partitions/index"));
  TRY(label.data_partition, take_partition(handler, "partitions/data"));
  TRY(const auto block_bytes, take(handler, "blocksize"));
  TRY(const auto compression, take(handler, "compression"));
  const auto size = base::parse_decimal(block_bytes);
  if (!size || *size < kBlockBytesMin || *size > kBlockBytesMax)
    return damaged("a block size that we cannot read");
  label.block_bytes = static_cast<std::uint32_t>(*size);
  label.compression = compression == "true" || compression == "1";
  if (!is_uuid(label.volume_uuid)) return damaged("no UUID");
  const bool known = label.location == label.index_partition || label.location == label.data_partition;
  if (label.index_partition == label.data_partition || !known) return damaged("contradictory partitions");
  return label;
}

Result<void> check_labels_agree(const Label& a, const Label& b) {
  auto moved = b;
  moved.location = a.location;
  moved.creator = a.creator;
  if (a.location == b.location || !(moved == a))
    return damaged("the two partitions have labels of different volumes");
  return {};
}

}  // namespace reelway::tape::ltfs
