#include "s3/response.h"

#include <fmt/format.h>

namespace reelway::s3 {

std::string quote_etag(std::string_view etag) { return fmt::format("\"{}\"", etag); }

std::string restore_header(const RestoreState& state) {
  if (state.ongoing || !state.expiry) return "ongoing-request=\"true\"";
  return fmt::format("ongoing-request=\"false\", expiry-date=\"{}\"", base::to_http_date(*state.expiry));
}

bool is_archive_class(std::string_view storage_class) {
  return storage_class == "GLACIER" || storage_class == "DEEP_ARCHIVE";
}

void add_checksum_headers(base::HttpFields& fields, const std::vector<Checksum>& checksums) {
  for (const Checksum& checksum : checksums) fields.set(checksum_header(checksum.kind), to_text(checksum));
  if (!checksums.empty()) {
    fields.set("x-amz-checksum-type",
               checksums.front().composite_part_count == 0 ? "FULL_OBJECT" : "COMPOSITE");
  }
}

void add_object_headers(base::HttpFields& fields, const ObjectView& object,
                        const ObjectHeaderOptions& options) {
  fields.set("ETag", quote_etag(object.etag));
  fields.set("Last-Modified", base::to_http_date(object.last_modified));
  fields.set("Accept-Ranges", "bytes");
  fields.set("Content-Type", "binary/octet-stream");
  for (const auto& [name, value] : object.attributes.headers) fields.set(name, value);
  for (const auto& [name, value] : options.overrides) fields.set(name, value);
  for (const auto& [name, value] : object.attributes.user) fields.set("x-amz-meta-" + name, value);
  if (object.storage_class != "STANDARD") fields.set("x-amz-storage-class", object.storage_class);
  if (object.restore) fields.set("x-amz-restore", restore_header(*object.restore));
  if (options.part_number && !object.part_sizes.empty()) {
    fields.set("x-amz-mp-parts-count", std::to_string(object.part_sizes.size()));
  }
  if (options.range && options.range->length > 0) {
    const auto& range = *options.range;
    fields.set("Content-Range", fmt::format("bytes {}-{}/{}", range.offset, range.end() - 1, object.size));
  }
  const bool partial = options.range || options.part_number;
  if (options.checksum_mode && !partial) add_checksum_headers(fields, object.checksums);
}

}  // namespace reelway::s3
