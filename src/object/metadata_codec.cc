#include "object/metadata_codec.h"

#include <nlohmann/json.hpp>

namespace reelway::object {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMetadataBytesMax = 4 * base::kMiB;
constexpr int kDepthMax = 4;

// The parser recurses at every container, so depth is checked before it builds anything.
class DepthCheck final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ <= kDepthMax; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override { return ++depth_ <= kDepthMax; }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override { return false; }

 private:
  int depth_ = 0;
};

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

base::Result<std::string> text_of(const Json& value) {
  if (!value.is_binary()) return malformed("a byte string is missing");
  const auto& bytes = value.get_binary();
  return std::string(bytes.begin(), bytes.end());
}

base::Result<void> read_text(const Json& map, const char* key, std::string& out) {
  const auto found = map.find(key);
  if (found == map.end()) return {};
  TRY(out, text_of(*found));
  return {};
}

base::Result<void> read_map(const Json& map, const char* key, std::map<std::string, std::string>& out) {
  const auto found = map.find(key);
  if (found == map.end()) return {};
  if (!found->is_object()) return malformed(std::string(key) + " is no map");
  for (const auto& [name, value] : found->items()) {
    TRY(out[name], text_of(value));
  }
  return {};
}

base::Result<Checksum> checksum_of(const Json& entry) {
  if (!entry.is_array() || entry.size() != 3 || !entry[0].is_string() || !entry[2].is_number_unsigned())
    return malformed("a checksum is not [kind, value, parts]");
  const auto kind = base::parse_checksum_kind(entry[0].get_ref<const std::string&>());
  if (!kind) return malformed("unknown checksum kind");
  TRY(const std::string value, text_of(entry[1]));
  if (value.size() != base::digest_size(*kind)) return malformed("checksum of a wrong length");
  const base::ByteView bytes = base::as_bytes(value);
  const auto parts = entry[2].get<std::uint64_t>();
  if (parts > UINT32_MAX) return malformed("too many parts");
  return Checksum{.kind = *kind,
                  .value = {bytes.begin(), bytes.end()},
                  .composite_part_count = static_cast<std::uint32_t>(parts)};
}

base::Result<void> read_checksums(const Json& map, ObjectInfo& info) {
  const auto found = map.find("sums");
  if (found == map.end()) return {};
  if (!found->is_array()) return malformed("sums is no array");
  for (const Json& entry : *found) {
    TRY(Checksum checksum, checksum_of(entry));
    info.checksums.push_back(std::move(checksum));
  }
  return {};
}

base::Result<void> read_parts(const Json& map, ObjectInfo& info) {
  const auto found = map.find("parts");
  if (found == map.end()) return {};
  if (!found->is_array()) return malformed("parts is no array");
  for (const Json& entry : *found) {
    if (!entry.is_number_unsigned()) return malformed("a part's size is no number");
    info.part_sizes.push_back(entry.get<std::uint64_t>());
  }
  return {};
}

base::Result<ObjectInfo> info_of(const Json& map) {
  ObjectInfo info;
  const auto size = map.find("size");
  const auto modified = map.find("mtime");
  if (size == map.end() || !size->is_number_unsigned()) return malformed("no size");
  if (modified == map.end() || !modified->is_number_integer()) return malformed("no mtime");
  info.size = size->get<std::uint64_t>();
  info.last_modified = base::TimePoint{base::Duration{modified->get<std::int64_t>()}};
  TRY_VOID(read_text(map, "bucket", info.name.bucket));
  TRY_VOID(read_text(map, "key", info.name.key));
  TRY_VOID(read_text(map, "etag", info.etag));
  TRY_VOID(read_text(map, "gen", info.generation));
  TRY_VOID(read_text(map, "class", info.attributes.storage_class));
  TRY_VOID(read_text(map, "owner", info.attributes.owner));
  TRY_VOID(read_map(map, "head", info.attributes.headers));
  TRY_VOID(read_map(map, "user", info.attributes.user));
  TRY_VOID(read_checksums(map, info));
  TRY_VOID(read_parts(map, info));
  return info;
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
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const auto* last = first + bytes.size();
  DepthCheck check;
  if (!Json::sax_parse(first, last, &check, Json::input_format_t::cbor)) return malformed("not CBOR");
  const Json map = Json::from_cbor(first, last, true, false);
  if (!map.is_object()) return malformed("not a map");
  return info_of(map);
}

}  // namespace reelway::object
