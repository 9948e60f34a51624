#include "object/metadata_codec.h"

#include <nlohmann/json.hpp>

#include "object/cbor_reader.h"

namespace reelway::object {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMetadataBytesMax = 4 * base::kMiB;

Json to_binary(base::ByteView bytes) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return Json::binary({first, first + bytes.size()});
}
Json to_binary(const std::string& text) { return to_binary(base::as_bytes(text)); }

Json to_binary_map(const std::map<std::string, std::string>& map) {
  Json out = Json::object();
  for (const auto& [name, value] : map) out[name] = to_binary(value);
  return out;
}

base::Error malformed(std::string what) {
  return base::fail(base::Code::data_loss, "metadata: " + std::move(what), base::Scope::object);
}

base::Result<void> read_text(CborReader& reader, std::string& out) {
  TRY(const base::ByteView bytes, reader.byte_string());
  out = base::as_text(bytes);
  return {};
}

base::Result<void> read_map(CborReader& reader, std::map<std::string, std::string>& out) {
  TRY(const std::uint64_t count, reader.map_size());
  for (std::uint64_t pair = 0; pair < count; ++pair) {
    TRY(const std::string_view name, reader.text());
    TRY_VOID(read_text(reader, out[std::string(name)]));
  }
  return {};
}

base::Result<Checksum> read_checksum(CborReader& reader) {
  TRY(const std::uint64_t count, reader.array_size());
  if (count != 3) return malformed("a checksum is not [kind, value, parts]");
  TRY(const std::string_view name, reader.text());
  TRY(const base::ByteView value, reader.byte_string());
  TRY(const std::uint64_t parts, reader.unsigned_number());
  const auto kind = base::parse_checksum_kind(name);
  if (!kind) return malformed("unknown checksum kind");
  if (value.size() != base::digest_size(*kind)) return malformed("checksum of a wrong length");
  if (parts > UINT32_MAX) return malformed("too many parts");
  return Checksum{.kind = *kind,
                  .value = {value.begin(), value.end()},
                  .composite_part_count = static_cast<std::uint32_t>(parts)};
}

base::Result<void> read_checksums(CborReader& reader, ObjectInfo& info) {
  TRY(const std::uint64_t count, reader.array_size());
  for (std::uint64_t index = 0; index < count; ++index) {
    TRY(Checksum checksum, read_checksum(reader));
    info.checksums.push_back(std::move(checksum));
  }
  return {};
}

base::Result<void> read_parts(CborReader& reader, ObjectInfo& info) {
  TRY(const std::uint64_t count, reader.array_size());
  for (std::uint64_t index = 0; index < count; ++index) {
    TRY(const std::uint64_t size, reader.unsigned_number());
    info.part_sizes.push_back(size);
  }
  return {};
}

struct Reading {
  ObjectInfo info;
  bool has_size = false;
  bool has_time = false;
};

base::Result<void> read_member(CborReader& reader, std::string_view key, Reading& out) {
  ObjectInfo& info = out.info;
  if (key == "size") {
    out.has_size = true;
    TRY(info.size, reader.unsigned_number());
    return {};
  }
  if (key == "mtime") {
    out.has_time = true;
    TRY(const std::int64_t time, reader.number());
    info.last_modified = base::TimePoint{base::Duration{time}};
    return {};
  }
  if (key == "bucket") return read_text(reader, info.name.bucket);
  if (key == "key") return read_text(reader, info.name.key);
  if (key == "etag") return read_text(reader, info.etag);
  if (key == "gen") return read_text(reader, info.generation);
  if (key == "class") return read_text(reader, info.attributes.storage_class);
  if (key == "owner") return read_text(reader, info.attributes.owner);
  if (key == "head") return read_map(reader, info.attributes.headers);
  if (key == "user") return read_map(reader, info.attributes.user);
  if (key == "sums") return read_checksums(reader, info);
  if (key == "parts") return read_parts(reader, info);
  return reader.skip();
}

}  // namespace

base::Bytes encode_metadata(const ObjectInfo& info) {
  Json map = {{"bucket", to_binary(info.name.bucket)},
              {"key", to_binary(info.name.key)},
              {"size", info.size},
              {"mtime", info.last_modified.time_since_epoch().count()},
              {"etag", to_binary(info.etag)}};
  if (!info.generation.empty()) map["gen"] = to_binary(info.generation);
  if (info.attributes.storage_class != "STANDARD") map["class"] = to_binary(info.attributes.storage_class);
  if (!info.attributes.owner.empty()) map["owner"] = to_binary(info.attributes.owner);
  if (!info.attributes.headers.empty()) map["head"] = to_binary_map(info.attributes.headers);
  if (!info.attributes.user.empty()) map["user"] = to_binary_map(info.attributes.user);
  for (const Checksum& sum : info.checksums)
    map["sums"].push_back({base::to_string(sum.kind), to_binary(sum.value), sum.composite_part_count});
  if (!info.part_sizes.empty()) map["parts"] = info.part_sizes;
  base::Bytes out;
  const std::vector<std::uint8_t> encoded = Json::to_cbor(map);
  const base::ByteView view = std::as_bytes(std::span(encoded));
  out.assign(view.begin(), view.end());
  return out;
}

base::Result<ObjectInfo> decode_metadata(base::ByteView bytes) {
  if (bytes.size() > kMetadataBytesMax) return malformed("too long");
  CborReader reader(bytes);
  TRY(const std::uint64_t count, reader.map_size());
  Reading reading;
  for (std::uint64_t member = 0; member < count; ++member) {
    TRY(const std::string_view key, reader.text());
    TRY_VOID(read_member(reader, key, reading));
  }
  if (!reader.at_end()) return malformed("more than one map");
  if (!reading.has_size) return malformed("no size");
  if (!reading.has_time) return malformed("no mtime");
  return std::move(reading.info);
}

}  // namespace reelway::object
