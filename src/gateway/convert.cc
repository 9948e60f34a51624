#include "gateway/convert.h"

#include <algorithm>

namespace reelway::gateway {

object::Conditions to_object(const s3::Conditions& conditions) {
  return {.if_match = conditions.if_match,
          .if_none_match = conditions.if_none_match,
          .if_modified_since = conditions.if_modified_since,
          .if_unmodified_since = conditions.if_unmodified_since};
}

object::Attributes to_object(const s3::Attributes& attributes, std::string storage_class, std::string owner) {
  return {.headers = attributes.headers,
          .user = attributes.user,
          .storage_class = std::move(storage_class),
          .owner = std::move(owner)};
}

object::Checksum to_object(const s3::Checksum& checksum) {
  return {
      .kind = checksum.kind, .value = checksum.value, .composite_part_count = checksum.composite_part_count};
}

s3::Checksum to_s3(const object::Checksum& checksum) {
  return {
      .kind = checksum.kind, .value = checksum.value, .composite_part_count = checksum.composite_part_count};
}

std::vector<s3::Checksum> to_s3(const std::vector<object::Checksum>& checksums) {
  std::vector<s3::Checksum> out;
  out.reserve(checksums.size());
  for (const auto& checksum : checksums) out.push_back(to_s3(checksum));
  return out;
}

std::optional<object::RangeRequest> to_object(const std::optional<s3::Range>& range) {
  if (!range) return std::nullopt;
  return object::RangeRequest{.first = range->first, .last = range->last};
}

std::vector<s3::Checksum> shown_checksums(const std::vector<object::Checksum>& checksums) {
  const auto is_s3s = [](const object::Checksum& checksum) {
    return checksum.kind != base::ChecksumKind::md5;
  };
  auto shown = std::ranges::find_if(checksums, [&](const object::Checksum& checksum) {
    return is_s3s(checksum) && checksum.kind != base::ChecksumKind::crc64nvme;
  });
  if (shown == checksums.end()) shown = std::ranges::find_if(checksums, is_s3s);
  if (shown == checksums.end()) return {};
  return {to_s3(*shown)};
}

std::string shown_class(const object::ObjectInfo& info) {
  const bool is_on_tape = info.residency == object::Residency::evicted || info.restore.has_value();
  if (is_on_tape && !s3::is_archive_class(info.attributes.storage_class)) return "GLACIER";
  return info.attributes.storage_class;
}

namespace {

std::optional<s3::RestoreState> to_s3(const std::optional<object::RestoreStatus>& restore) {
  if (!restore) return std::nullopt;
  return s3::RestoreState{.ongoing = restore->ongoing, .expiry = restore->expiry};
}

}  // namespace

s3::ObjectView to_view(const object::ObjectInfo& info) {
  return {.size = info.size,
          .etag = info.etag,
          .last_modified = info.last_modified,
          .attributes = {.headers = info.attributes.headers, .user = info.attributes.user},
          .storage_class = shown_class(info),
          .checksums = shown_checksums(info.checksums),
          .part_sizes = info.part_sizes,
          .restore = to_s3(info.restore)};
}

s3::ObjectEntry to_entry(const object::ObjectInfo& info, bool with_restore) {
  return {.key = info.name.key,
          .size = info.size,
          .etag = info.etag,
          .last_modified = info.last_modified,
          .storage_class = shown_class(info),
          .checksums = shown_checksums(info.checksums),
          .owner = {},
          .restore = with_restore ? to_s3(info.restore) : std::nullopt};
}

}  // namespace reelway::gateway
