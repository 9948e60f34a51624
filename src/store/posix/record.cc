#include "store/posix/record.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/checksum.h"
#include "object/metadata_codec.h"
#include "store/posix/attribute.h"
#include "store/posix/patience.h"

namespace reelway::store::posix {

namespace {

using base::in_context;
using Json = nlohmann::json;

constexpr const char* kTrusted = "trusted.reelway";
constexpr const char* kUser = "user.reelway";
constexpr std::string_view kStubPrefix = "reelway:evicted:";

std::string binding_of(const object::ObjectName& name) { return name.bucket + "/" + name.key; }

std::optional<base::Bytes> key_to_write(const Space& space) {
  return space.writes_trusted() ? std::nullopt : std::optional(space.site_key());
}

std::string etag_of_posix_file(const base::FileStatus& status) {
  const std::string text = fmt::format("{}:{}", status.size, status.modified.time_since_epoch().count());
  return base::to_hex(base::digest_of(base::ChecksumKind::md5, base::as_bytes(text))) + "-0";
}

object::ObjectInfo info_of_posix_file(const base::FileStatus& status, const object::ObjectName& name) {
  object::ObjectInfo info;
  info.name = name;
  info.size = status.size;
  info.etag = etag_of_posix_file(status);
  info.last_modified = status.modified;
  return info;
}

/// The attribute that counts, with the key that must have signed it.
struct RawRecord {
  base::Bytes bytes;
  std::optional<base::Bytes> key;
};

base::Result<std::optional<RawRecord>> read_raw(Space& space, int file) {
  auto trusted = space.files().attribute(file, kTrusted);
  if (trusted) return RawRecord{std::move(*trusted), std::nullopt};
  if (trusted.error() != ENODATA && trusted.error() != EPERM && trusted.error() != EOPNOTSUPP)
    return base::from_errno(trusted.error(), "read the object's attribute");
  auto user = space.files().attribute(file, kUser);
  if (user) return RawRecord{std::move(*user), space.site_key()};
  if (user.error() == ENODATA || user.error() == EOPNOTSUPP) return std::nullopt;
  return base::from_errno(user.error(), "read the object's attribute");
}

base::Result<object::ObjectInfo> decode_record(Space& space, const RawRecord& raw,
                                               const object::ObjectName& name, bool& has_sidecar) {
  base::ByteView rest = raw.bytes;
  TRY(const Record record, unpack_record(rest, raw.key, binding_of(name)));
  if (record.kind == RecordKind::metadata) return object::decode_metadata(record.payload);
  if (record.kind != RecordKind::pointer)
    return base::fail(base::Code::data_loss, "attribute of a wrong kind", base::Scope::object);
  TRY(Sidecar sidecar, read_sidecar(space, name.bucket, std::string(base::as_text(record.payload))));
  has_sidecar = true;
  return std::move(sidecar.info);
}

Json to_binary(base::ByteView bytes) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return Json::binary({first, first + bytes.size()});
}

base::Bytes encode_inode(const InodeRecord& record) {
  Json attributes = Json::object();
  for (const auto& [name, value] : record.attributes) attributes[name] = to_binary(value);
  const Json map = {{"stub", record.stub_inode},
                    {"uid", record.user},
                    {"gid", record.group},
                    {"mode", record.mode},
                    {"atime", record.accessed.time_since_epoch().count()},
                    {"mtime", record.modified.time_since_epoch().count()},
                    {"attrs", std::move(attributes)}};
  const std::vector<std::uint8_t> encoded = Json::to_cbor(map);
  const base::ByteView view = std::as_bytes(std::span(encoded));
  return {view.begin(), view.end()};
}

/// The record's CRC was checked, so this is what encode_inode wrote, or another version's.
base::Result<InodeRecord> decode_inode(base::ByteView bytes) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const Json map = Json::from_cbor(first, first + bytes.size(), true, false);
  const auto malformed = [] {
    return base::fail(base::Code::data_loss, "malformed inode record", base::Scope::object);
  };
  if (!map.is_object()) return malformed();
  for (const char* key : {"stub", "uid", "gid", "mode", "atime", "mtime"}) {
    if (!map.contains(key) || !map[key].is_number_integer()) return malformed();
  }
  if (!map.contains("attrs") || !map["attrs"].is_object()) return malformed();
  InodeRecord record;
  record.stub_inode = map["stub"].get<std::uint64_t>();
  record.user = map["uid"].get<std::uint32_t>();
  record.group = map["gid"].get<std::uint32_t>();
  record.mode = map["mode"].get<std::uint32_t>();
  record.accessed = base::TimePoint{base::Duration{map["atime"].get<std::int64_t>()}};
  record.modified = base::TimePoint{base::Duration{map["mtime"].get<std::int64_t>()}};
  for (const auto& [name, value] : map["attrs"].items()) {
    if (!value.is_binary()) return malformed();
    const auto view = std::as_bytes(std::span(value.get_binary()));
    record.attributes[name] = {view.begin(), view.end()};
  }
  return record;
}

/// What an entry itself tells: its name, or the generation whose sidecar has it.
struct RecordedName {
  std::optional<object::ObjectName> name;
  std::string generation;
};

/// Nothing when there is no such entry, or none of ours. A link that is a file by now tells no generation.
base::Result<std::optional<RecordedName>> peek_at_name(Space& space, int folder, const std::string& entry) {
  const auto file = with_patience([&]() -> base::Result<base::Io<base::File>> {
    auto opened = space.files().open(folder, entry, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    if (!opened && opened.error() == EAGAIN) return base::from_errno(EAGAIN, "open an odd key");
    return opened;
  });
  if (!file) return file.error();
  if (*file) {
    TRY(const std::optional<RawRecord> raw, read_raw(space, (*file)->get()));
    if (!raw) return std::nullopt;
    base::ByteView rest = raw->bytes;
    const auto record = unpack_record(rest, std::nullopt, "");
    if (!record) return std::nullopt;
    if (record->kind != RecordKind::metadata)
      return RecordedName{.name = {}, .generation = std::string(base::as_text(record->payload))};
    const auto info = object::decode_metadata(record->payload);
    if (!info) return std::nullopt;
    return RecordedName{.name = info->name, .generation = {}};
  }
  const int error = file->error();
  if (error == ENOENT || error == ENXIO || error == ENODEV) return std::nullopt;
  if (error != ELOOP) return base::from_errno(error, "open an odd key");
  const auto text = space.files().read_link(folder, entry);
  if (!text && (text.error() == EINVAL || text.error() == ENOENT)) return RecordedName{};
  if (!text) return base::from_errno(text.error(), "read a stub");
  const auto stub = parse_stub_text(*text);
  if (!stub) return std::nullopt;
  return RecordedName{.name = {}, .generation = stub->generation};
}

base::Result<std::optional<object::ObjectName>> name_in_sidecar(Space& space, const std::string& generation,
                                                                const std::string& bucket) {
  std::vector<std::string> buckets{bucket};
  if (bucket.empty()) {
    TRY(const std::vector<base::FolderEntry> all,
        in_context(space.files().entries(space.meta()), "read .reelway/meta"));
    buckets.clear();
    for (const base::FolderEntry& one : all) buckets.push_back(one.name);
  }
  for (const std::string& one : buckets) {
    const auto sidecar = read_sidecar(space, one, generation);
    if (sidecar) return sidecar->info.name;
    if (is_unreadable(sidecar.error())) return sidecar.error();
  }
  return std::nullopt;
}

}  // namespace

bool is_unreadable(const base::Error& error) {
  const bool is_damaged = error.code == base::Code::data_loss && error.scope == base::Scope::object;
  return error.code != base::Code::not_found && !is_damaged;
}

base::Result<StoredInfo> read_stored_info(Space& space, int file, const base::FileStatus& status,
                                          const object::ObjectName& name) {
  TRY(const std::optional<RawRecord> raw, read_raw(space, file));
  StoredInfo stored{.info = info_of_posix_file(status, name)};
  if (!raw) return stored;
  auto info = decode_record(space, *raw, name, stored.has_sidecar);
  if (!info && is_unreadable(info.error())) return info.error();
  stored.lacks_sidecar = !info && info.error().code == base::Code::not_found;
  if (!info || info->name != name || info->size != status.size || info->last_modified != status.modified) {
    stored.has_sidecar = false;
    return stored;
  }
  stored.info = std::move(*info);
  return stored;
}

base::Result<bool> write_stored_info(Space& space, int file, const object::ObjectInfo& info,
                                     bool sidecar_exists) {
  const std::string binding = binding_of(info.name);
  Record record{.kind = RecordKind::metadata, .payload = object::encode_metadata(info)};
  base::Bytes packed = pack_record(record, key_to_write(space), binding);
  const bool needs_sidecar = packed.size() > kAttributeBytesMax;
  if (needs_sidecar) {
    if (!sidecar_exists) TRY_VOID(write_sidecar(space, {.info = info, .inode = std::nullopt}));
    const base::ByteView generation = base::as_bytes(info.generation);
    record = {.kind = RecordKind::pointer, .payload = {generation.begin(), generation.end()}};
    packed = pack_record(record, key_to_write(space), binding);
  }
  const auto set =
      in_context(space.files().set_attribute(file, space.writes_trusted() ? kTrusted : kUser, packed),
                 "write the object's attribute");
  if (!set) {
    if (needs_sidecar && !sidecar_exists) remove_sidecar(space, info.name.bucket, info.generation);
    return set.error();
  }
  return needs_sidecar;
}

base::Result<Sidecar> read_sidecar(Space& space, const std::string& bucket, const std::string& generation) {
  if (!is_generation(generation))
    return base::fail(base::Code::data_loss, "not the name of a generation", base::Scope::object);
  TRY(const base::Bytes bytes, space.read_small_file(space.meta(), bucket + "/" + generation));
  base::ByteView rest = bytes;
  // The name is inside; it is what the signature binds, so the map is read before the signature is checked.
  base::ByteView peek = bytes;
  TRY(const Record unchecked, unpack_record(peek, std::nullopt, ""));
  Sidecar sidecar;
  TRY(sidecar.info, object::decode_metadata(unchecked.payload));
  const std::string binding = binding_of(sidecar.info.name);
  TRY(const Record metadata, unpack_record(rest, key_to_write(space), binding));
  if (metadata.kind != RecordKind::metadata || sidecar.info.generation != generation ||
      sidecar.info.name.bucket != bucket)
    return base::fail(base::Code::data_loss, "sidecar of another object", base::Scope::object);
  if (rest.empty()) return sidecar;
  TRY(const Record inode, unpack_record(rest, key_to_write(space), binding));
  TRY(sidecar.inode, decode_inode(inode.payload));
  return sidecar;
}

base::Result<void> write_sidecar(Space& space, const Sidecar& sidecar) {
  const std::string binding = binding_of(sidecar.info.name);
  base::Bytes bytes =
      pack_record({.kind = RecordKind::metadata, .payload = object::encode_metadata(sidecar.info)},
                  key_to_write(space), binding);
  if (sidecar.inode) {
    const base::Bytes second = pack_record(
        {.kind = RecordKind::inode, .payload = encode_inode(*sidecar.inode)}, key_to_write(space), binding);
    bytes.insert(bytes.end(), second.begin(), second.end());
  }
  TRY(const base::File folder,
      space.open_made_folder(space.meta(), ".reelway/meta/", sidecar.info.name.bucket));
  return space.write_small_file(folder.get(), sidecar.info.generation, bytes);
}

void remove_sidecar(Space& space, const std::string& bucket, const std::string& generation) {
  if (!is_generation(generation)) return;
  const auto folder = space.files().open(space.meta(), bucket, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (folder) std::ignore = space.files().unlink(folder->get(), generation);
}

base::Result<std::optional<object::ObjectName>> read_recorded_name(Space& space, int folder,
                                                                   const std::string& entry,
                                                                   const std::string& bucket) {
  for (int look = 0; look < kLooksMax; ++look) {
    TRY(const std::optional<RecordedName> seen, peek_at_name(space, folder, entry));
    if (!seen) return std::nullopt;
    if (seen->name) return seen->name;
    TRY(const std::optional<object::ObjectName> name, name_in_sidecar(space, seen->generation, bucket));
    if (name) return name;
  }
  return std::nullopt;
}

base::Result<InodeRecord> read_inode_record(Space& space, int file, const base::FileStatus& status) {
  InodeRecord record{.stub_inode = 0,
                     .user = status.user,
                     .group = status.group,
                     .mode = status.mode & 07777,
                     .accessed = status.accessed,
                     .modified = status.modified,
                     .attributes = {}};
  TRY(const std::vector<std::string> names,
      in_context(space.files().attribute_names(file), "list attributes"));
  for (const std::string& name : names) {
    if (name == kTrusted || name == kUser) continue;
    TRY(record.attributes[name], in_context(space.files().attribute(file, name), "read attribute " + name));
  }
  return record;
}

base::Result<void> restore_inode(Space& space, int file, const InodeRecord& record) {
  const auto try_to = [&](const char* what, const base::Io<void>& outcome) {
    if (!outcome)
      space.log().write(base::LogLevel::warning, "store/posix",
                        base::from_errno(outcome.error(), what).detail);
  };
  try_to("give a recalled file its owner", space.files().set_owner(file, record.user, record.group));
  try_to("give a recalled file its mode", space.files().set_mode(file, record.mode));
  for (const auto& [name, value] : record.attributes)
    try_to("give a recalled file its attributes", space.files().set_attribute(file, name, value));
  return in_context(space.files().set_times(file, record.accessed, record.modified),
                    "give a recalled file its times");
}

std::string make_stub_text(const StubText& stub) {
  return fmt::format("{}{}:{}", kStubPrefix, stub.generation, stub.size);
}

std::optional<StubText> parse_stub_text(std::string_view text) {
  if (!text.starts_with(kStubPrefix)) return std::nullopt;
  text.remove_prefix(kStubPrefix.size());
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || !is_generation(text.substr(0, colon))) return std::nullopt;
  const auto size = base::parse_decimal(text.substr(colon + 1));
  if (!size) return std::nullopt;
  return StubText{.generation = std::string(text.substr(0, colon)), .size = *size};
}

bool is_generation(std::string_view text) {
  return text.size() == 26 && std::ranges::all_of(text, [](char c) {
           return std::string_view("0123456789ABCDEFGHJKMNPQRSTVWXYZ").contains(c);
         });
}

}  // namespace reelway::store::posix
