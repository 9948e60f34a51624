#include "tape/ltfs/coherency.h"

#include <algorithm>

namespace reelway::tape::ltfs {

using base::Code;
using base::fail;
using base::Result;

namespace {

constexpr std::string_view kApplication("LTFS\0", 5);
constexpr std::size_t kUuidBytes = 36;
constexpr std::size_t kApplicationBytes = 43;     // name, UUID with its NUL, version
constexpr std::size_t kApplicationBytesOld = 42;  // old writers left the NUL out of the count
constexpr std::size_t kFixedBytes = 1 + 8 + 8 + 8 + 2;

base::Error damaged() {
  return fail(Code::data_loss, "the cartridge memory's coherency information is not of LTFS",
              base::Scope::cartridge);
}

void put(base::Bytes& out, std::uint64_t value, std::size_t width) {
  for (std::size_t i = width; i-- > 0;) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

std::uint64_t get(base::ByteView bytes, std::size_t offset, std::size_t width) {
  std::uint64_t value = 0;
  for (const auto byte : bytes.subspan(offset, width))
    value = value << 8 | std::to_integer<std::uint64_t>(byte);
  return value;
}

}  // namespace

base::Bytes encode_coherency(const Coherency& coherency) {
  base::Bytes out;
  put(out, 8, 1);
  put(out, coherency.volume_change_reference, 8);
  put(out, coherency.generation, 8);
  put(out, coherency.start_block, 8);
  put(out, kApplicationBytes, 2);
  std::string text(kApplication);
  text += coherency.volume_uuid;
  text.resize(kApplication.size() + kUuidBytes + 1, '\0');
  text += '\x01';
  const auto bytes = base::as_bytes(text);
  out.insert(out.end(), bytes.begin(), bytes.end());
  return out;
}

Result<Coherency> decode_coherency(base::ByteView value) {
  if (value.size() < kFixedBytes + kApplicationBytesOld || get(value, 0, 1) != 8) return damaged();
  const auto application_bytes = get(value, 25, 2);
  if (application_bytes != kApplicationBytes && application_bytes != kApplicationBytesOld) return damaged();
  const auto text = base::as_text(value.subspan(kFixedBytes));
  if (!text.starts_with(kApplication)) return damaged();
  Coherency coherency;
  coherency.volume_change_reference = get(value, 1, 8);
  coherency.generation = get(value, 9, 8);
  coherency.start_block = get(value, 17, 8);
  coherency.volume_uuid = text.substr(kApplication.size(), kUuidBytes);
  return coherency;
}

Result<std::uint64_t> decode_change_reference(base::ByteView value) {
  if (value.empty() || value.size() > 8) return damaged();
  const auto all = [value](std::byte wanted) {
    return std::ranges::all_of(value, [wanted](std::byte byte) { return byte == wanted; });
  };
  if (all(std::byte{0}) || all(std::byte{0xFF})) return damaged();
  return get(value, 0, value.size());
}

}  // namespace reelway::tape::ltfs
