#include "vtl/cartridge.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace reelway::vtl {
namespace {

constexpr std::string_view kMemoryFile = "memory";
// LTFS indexes do not shrink with the capacity scale, so a scaled index partition keeps room for some.
constexpr std::uint64_t kIndexPartitionMin = base::kGiB;

base::Error unreadable(std::string_view barcode, std::string_view what) {
  return base::fail(base::Code::data_loss, fmt::format("memory file of {}: {}", barcode, what),
                    base::Scope::cartridge);
}

template <class T>
bool parse_number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

base::Result<std::unique_ptr<Cartridge>> Cartridge::open(const std::filesystem::path& folder,
                                                         std::string barcode,
                                                         const CartridgeOptions& options) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return base::from_errno(error.value(), "create " + folder.string());
  std::unique_ptr<Cartridge> cartridge(new Cartridge);
  cartridge->folder_ = folder;
  cartridge->barcode_ = std::move(barcode);
  cartridge->medium_serial_ = "RWMED" + cartridge->barcode_;
  cartridge->options_ = options.partition;
  cartridge->generation_ = media::generation_of_barcode(cartridge->barcode_).value_or(options.generation);
  cartridge->scale_ = options.capacity_scale;
  auto memory = read_file(folder / kMemoryFile);
  if (memory) {
    TRY_VOID(cartridge->read_memory(*memory));
  } else if (memory.error().code != base::Code::not_found) {
    return memory.error();
  }
  TRY_VOID(cartridge->open_partitions(cartridge->formatted_partitions_));
  if (!memory) TRY_VOID(cartridge->write_memory());
  return cartridge;
}

base::Result<void> Cartridge::open_partitions(std::uint8_t count) {
  partitions_.clear();
  for (std::uint8_t number = 0; number < count; ++number) {
    TRY(Partition partition, Partition::open(folder_, number, options_));
    partitions_.push_back(std::move(partition));
  }
  return {};
}

base::Result<void> Cartridge::read_memory(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string_view> words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!words.empty()) TRY_VOID(take_line(words));
  }
  if (formatted_partitions_ < 1 || formatted_partitions_ > 2)
    return unreadable(barcode_, "wrong partition count");
  return {};
}

base::Result<void> Cartridge::take_line(const std::vector<std::string_view>& words) {
  const std::string_view name = words[0];
  if (name == "attribute" && (words.size() == 5 || words.size() == 4)) {
    scsi::Attribute attribute;
    AttributeKey key{};
    unsigned format = 0;
    auto value = base::from_hex(words.size() == 5 ? words[4] : "");
    if (!parse_number(words[1], key.first) || !parse_number(words[2], key.second) ||
        !parse_number(words[3], format) || format > 2 || !value) {
      return unreadable(barcode_, "bad attribute");
    }
    attribute = {
        .id = key.second, .format = static_cast<scsi::AttributeFormat>(format), .value = std::move(*value)};
    attributes_[key] = std::move(attribute);
    return {};
  }
  if (words.size() != 2) return unreadable(barcode_, "bad line");
  const std::string_view value = words[1];
  bool good = true;
  unsigned flag = 0;
  if (name == "serial") {
    medium_serial_ = value;
  } else if (name == "scale") {
    good = parse_number(value, scale_) && scale_ > 0;
  } else if (name == "proportion") {
    good = parse_number(value, proportion_);
  } else if (name == "partitions") {
    good = parse_number(value, formatted_partitions_);
  } else if (name == "loads") {
    good = parse_number(value, load_count_);
  } else if (name == "written") {
    good = parse_number(value, written_bytes_);
  } else if (name == "read") {
    good = parse_number(value, read_bytes_);
  } else if (name == "change_reference") {
    good = parse_number(value, change_reference_);
  } else if (name == "write_protected") {
    good = parse_number(value, flag);
    write_protected_ = flag != 0;
  } else if (name == "characterized") {
    good = parse_number(value, flag);
    characterized_ = flag != 0;
  } else {
    good = false;
  }
  if (!good) return unreadable(barcode_, fmt::format("bad value of {}", name));
  return {};
}

base::Result<void> Cartridge::write_memory() const {
  std::string text = fmt::format(
      "serial {}\nscale {}\nproportion {}\npartitions {}\nloads {}\nwritten {}\nread {}\nchange_reference "
      "{}\nwrite_protected {}\n"
      "characterized {}\n",
      medium_serial_, scale_, proportion_, formatted_partitions_, load_count_, written_bytes_, read_bytes_,
      change_reference_, write_protected_ ? 1 : 0, characterized_ ? 1 : 0);
  for (const auto& [key, attribute] : attributes_) {
    text += fmt::format("attribute {} {} {} {}\n", key.first, key.second,
                        static_cast<unsigned>(attribute.format), base::to_hex(attribute.value));
  }
  return replace_file(folder_ / kMemoryFile, text, options_.sync ? Durable::yes : Durable::no);
}

std::uint64_t Cartridge::capacity_bytes(std::uint8_t partition) const {
  const double scale = scale_ * proportion_ / 0xffff;
  const auto scaled = [&](std::uint64_t bytes) {
    return static_cast<std::uint64_t>(static_cast<double>(bytes) * scale);
  };
  const std::uint64_t native = media::partition_capacity_bytes(personality(), layout(), partition);
  if (layout() == media::Layout::one_partition || partition == 1) return scaled(native);
  return std::max(scaled(native), std::min(kIndexPartitionMin, scaled(personality().capacity_bytes) / 4));
}

media::HeadPosition Cartridge::head_at(std::uint8_t partition, std::uint64_t bytes) const {
  return media::position_of(personality(), layout(), partition, bytes);
}

base::Result<void> Cartridge::format(std::uint8_t partition_count) {
  for (Partition& partition : partitions_) TRY_VOID(partition.truncate(0));
  formatted_partitions_ = partition_count;
  ++change_reference_;
  TRY_VOID(write_memory());
  TRY_VOID(open_partitions(partition_count));
  for (Partition& partition : partitions_)
    TRY_VOID(partition.truncate(0));  // a second partition of an older format
  return {};
}

base::Result<void> Cartridge::set_proportion(std::uint16_t proportion) {
  proportion_ = std::max<std::uint16_t>(proportion, 1);
  return format(1);
}

base::Result<void> Cartridge::set_write_protected(bool on) {
  write_protected_ = on;
  return write_memory();
}

base::Result<void> Cartridge::count_load() {
  ++load_count_;
  characterized_ = true;
  return write_memory();
}

base::Result<void> Cartridge::count_moved(std::uint64_t written_bytes, std::uint64_t read_bytes) {
  written_bytes_ += written_bytes;
  read_bytes_ += read_bytes;
  return write_memory();
}

base::Result<void> Cartridge::bump_change_reference() {
  ++change_reference_;
  return write_memory();
}

base::Result<void> Cartridge::store(std::uint8_t partition, const std::vector<scsi::Attribute>& attributes) {
  for (const scsi::Attribute& attribute : attributes) {
    const AttributeKey key{partition, attribute.id};
    if (attribute.value.empty()) {
      attributes_.erase(key);
    } else {
      attributes_[key] = attribute;
    }
  }
  return write_memory();
}

base::Result<void> Cartridge::lose_power(base::Rng& rng) {
  for (Partition& partition : partitions_) TRY_VOID(partition.lose_power(rng));
  return {};
}

}  // namespace reelway::vtl
