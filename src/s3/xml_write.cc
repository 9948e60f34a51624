#include <algorithm>

#include "base/encoding.h"
#include "s3/xml.h"
#include "s3/xml_writer.h"

namespace reelway::s3 {

namespace {

std::string quoted(std::string_view etag) { return "\"" + std::string(etag) + "\""; }

/// A key, prefix, marker or delimiter, percent-encoded where the client asked for it.
void name_element(XmlWriter& xml, std::string_view element, std::string_view name, bool encode_url) {
  if (encode_url) {
    xml.text(element, base::percent_encode(name, /*keep_slash=*/true));
  } else {
    xml.text(element, name);
  }
}

void owner_element(XmlWriter& xml, std::string_view element, const Owner& owner) {
  xml.open(element);
  xml.text("ID", owner.id);
  xml.text("DisplayName", owner.display_name);
  xml.close(element);
}

void checksum_elements(XmlWriter& xml, const std::vector<Checksum>& checksums) {
  for (const Checksum& checksum : checksums) xml.text(checksum_element(checksum.kind), to_text(checksum));
}

std::string_view checksum_type(bool full_object) { return full_object ? "FULL_OBJECT" : "COMPOSITE"; }

void checksum_type_element(XmlWriter& xml, const std::vector<Checksum>& checksums) {
  if (!checksums.empty())
    xml.text("ChecksumType", checksum_type(checksums.front().composite_part_count == 0));
}

void object_element(XmlWriter& xml, const ObjectEntry& object, bool encode_url) {
  xml.open("Contents");
  name_element(xml, "Key", object.key, encode_url);
  xml.text("LastModified", base::to_iso8601(object.last_modified));
  xml.text("ETag", quoted(object.etag));
  for (const Checksum& checksum : object.checksums)
    xml.text("ChecksumAlgorithm", checksum_algorithm(checksum.kind));
  checksum_type_element(xml, object.checksums);
  xml.number("Size", object.size);
  if (object.owner) owner_element(xml, "Owner", *object.owner);
  xml.text("StorageClass", object.storage_class);
  if (object.restore) {
    xml.open("RestoreStatus");
    xml.boolean("IsRestoreInProgress", object.restore->ongoing);
    if (object.restore->expiry) xml.text("RestoreExpiryDate", base::to_iso8601(*object.restore->expiry));
    xml.close("RestoreStatus");
  }
  xml.close("Contents");
}

void prefix_elements(XmlWriter& xml, const std::vector<std::string>& prefixes, bool encode_url) {
  for (const std::string& prefix : prefixes) {
    xml.open("CommonPrefixes");
    name_element(xml, "Prefix", prefix, encode_url);
    xml.close("CommonPrefixes");
  }
}

void list_entries(XmlWriter& xml, const ListResult& result) {
  for (const ObjectEntry& object : result.objects) object_element(xml, object, result.encode_url);
  prefix_elements(xml, result.common_prefixes, result.encode_url);
}

std::string write_copy_result(std::string_view root, std::string_view etag, base::TimePoint last_modified,
                              const std::vector<Checksum>& checksums) {
  XmlWriter xml;
  xml.open_root(root);
  xml.text("LastModified", base::to_iso8601(last_modified));
  xml.text("ETag", quoted(etag));
  checksum_elements(xml, checksums);
  xml.close(root);
  return std::move(xml).take();
}

void checksum_choice(XmlWriter& xml, std::optional<base::ChecksumKind> kind, bool full_object) {
  if (!kind) return;
  xml.text("ChecksumAlgorithm", checksum_algorithm(*kind));
  xml.text("ChecksumType", checksum_type(full_object));
}

}  // namespace

std::string xml_escape(std::string_view text) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  const bool utf8 = base::is_valid_utf8(text);
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto value = static_cast<unsigned char>(c);
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (value == 0 || (value >= 0x80 && !utf8)) {
      out += '?';
    } else if (value < 0x20 || value == 0x7F) {
      out += "&#x";
      if (value >= 16) out += kDigits[value >> 4];
      out += kDigits[value & 15];
      out += ';';
    } else {
      out += c;
    }
  }
  return out;
}

std::string write_list_buckets(const Owner& owner, const std::vector<BucketEntry>& buckets,
                               std::string_view prefix, std::string_view next_continuation_token) {
  XmlWriter xml;
  xml.open_root("ListAllMyBucketsResult");
  owner_element(xml, "Owner", owner);
  xml.open("Buckets");
  for (const BucketEntry& bucket : buckets) {
    xml.open("Bucket");
    xml.text("Name", bucket.name);
    xml.text("CreationDate", base::to_iso8601(bucket.created));
    xml.close("Bucket");
  }
  xml.close("Buckets");
  if (!prefix.empty()) xml.text("Prefix", prefix);
  if (!next_continuation_token.empty()) xml.text("ContinuationToken", next_continuation_token);
  xml.close("ListAllMyBucketsResult");
  return std::move(xml).take();
}

std::string write_location(std::string_view region) {
  XmlWriter xml;
  xml.open_root("LocationConstraint");
  if (region != "us-east-1") xml.raw(xml_escape(region));
  xml.close("LocationConstraint");
  return std::move(xml).take();
}

std::string write_list_objects(const ListResult& result, std::string_view marker,
                               std::string_view next_marker) {
  XmlWriter xml;
  xml.open_root("ListBucketResult");
  xml.text("Name", result.bucket);
  name_element(xml, "Prefix", result.prefix, result.encode_url);
  name_element(xml, "Marker", marker, result.encode_url);
  if (result.truncated && !result.delimiter.empty())
    name_element(xml, "NextMarker", next_marker, result.encode_url);
  xml.number("MaxKeys", result.max_keys);
  if (!result.delimiter.empty()) name_element(xml, "Delimiter", result.delimiter, result.encode_url);
  if (result.encode_url) xml.text("EncodingType", "url");
  xml.boolean("IsTruncated", result.truncated);
  list_entries(xml, result);
  xml.close("ListBucketResult");
  return std::move(xml).take();
}

std::string write_list_objects_v2(const ListResult& result, const ListV2Extra& extra) {
  XmlWriter xml;
  xml.open_root("ListBucketResult");
  xml.text("Name", result.bucket);
  name_element(xml, "Prefix", result.prefix, result.encode_url);
  if (!extra.start_after.empty()) name_element(xml, "StartAfter", extra.start_after, result.encode_url);
  if (!extra.continuation_token.empty()) xml.text("ContinuationToken", extra.continuation_token);
  if (result.truncated) xml.text("NextContinuationToken", extra.next_continuation_token);
  xml.number("KeyCount", result.objects.size() + result.common_prefixes.size());
  xml.number("MaxKeys", result.max_keys);
  if (!result.delimiter.empty()) name_element(xml, "Delimiter", result.delimiter, result.encode_url);
  if (result.encode_url) xml.text("EncodingType", "url");
  xml.boolean("IsTruncated", result.truncated);
  list_entries(xml, result);
  xml.close("ListBucketResult");
  return std::move(xml).take();
}

std::string write_copy_object(std::string_view etag, base::TimePoint last_modified,
                              const std::vector<Checksum>& checksums) {
  return write_copy_result("CopyObjectResult", etag, last_modified, checksums);
}

std::string write_copy_part(std::string_view etag, base::TimePoint last_modified,
                            const std::vector<Checksum>& checksums) {
  return write_copy_result("CopyPartResult", etag, last_modified, checksums);
}

std::string write_delete_result(const std::vector<DeletedEntry>& deleted,
                                const std::vector<DeleteErrorEntry>& errors, bool quiet) {
  XmlWriter xml;
  xml.open_root("DeleteResult");
  if (!quiet) {
    for (const DeletedEntry& entry : deleted) {
      xml.open("Deleted");
      xml.text("Key", entry.key);
      if (!entry.version_id.empty()) xml.text("VersionId", entry.version_id);
      xml.close("Deleted");
    }
  }
  for (const DeleteErrorEntry& entry : errors) {
    xml.open("Error");
    xml.text("Key", entry.key);
    if (!entry.version_id.empty()) xml.text("VersionId", entry.version_id);
    xml.text("Code", entry.fault.name());
    xml.text("Message", entry.fault.message.empty() ? error_row(entry.fault.code).message
                                                    : std::string_view(entry.fault.message));
    xml.close("Error");
  }
  xml.close("DeleteResult");
  return std::move(xml).take();
}

std::string write_initiate_multipart(std::string_view bucket, std::string_view key,
                                     std::string_view upload_id) {
  XmlWriter xml;
  xml.open_root("InitiateMultipartUploadResult");
  xml.text("Bucket", bucket);
  xml.text("Key", key);
  xml.text("UploadId", upload_id);
  xml.close("InitiateMultipartUploadResult");
  return std::move(xml).take();
}

std::string write_complete_multipart(std::string_view location, std::string_view bucket, std::string_view key,
                                     std::string_view etag, const std::vector<Checksum>& checksums) {
  XmlWriter xml;
  xml.open_root("CompleteMultipartUploadResult");
  xml.text("Location", location);
  xml.text("Bucket", bucket);
  xml.text("Key", key);
  xml.text("ETag", quoted(etag));
  checksum_elements(xml, checksums);
  checksum_type_element(xml, checksums);
  xml.close("CompleteMultipartUploadResult");
  return std::move(xml).take();
}

std::string write_list_parts(const ListPartsResult& result) {
  XmlWriter xml;
  xml.open_root("ListPartsResult");
  xml.text("Bucket", result.bucket);
  name_element(xml, "Key", result.key, result.encode_url);
  xml.text("UploadId", result.upload_id);
  owner_element(xml, "Initiator", result.owner);
  owner_element(xml, "Owner", result.owner);
  xml.text("StorageClass", result.storage_class);
  checksum_choice(xml, result.checksum_kind, result.checksum_full_object);
  xml.number("PartNumberMarker", result.part_number_marker);
  xml.number("NextPartNumberMarker",
             result.parts.empty() ? result.part_number_marker : result.parts.back().part_number);
  xml.number("MaxParts", result.max_parts);
  xml.boolean("IsTruncated", result.truncated);
  if (result.encode_url) xml.text("EncodingType", "url");
  for (const PartEntry& part : result.parts) {
    xml.open("Part");
    xml.number("PartNumber", part.part_number);
    xml.text("LastModified", base::to_iso8601(part.last_modified));
    xml.text("ETag", quoted(part.etag));
    xml.number("Size", part.size);
    checksum_elements(xml, part.checksums);
    xml.close("Part");
  }
  xml.close("ListPartsResult");
  return std::move(xml).take();
}

std::string write_list_uploads(const ListUploadsResult& result) {
  XmlWriter xml;
  xml.open_root("ListMultipartUploadsResult");
  xml.text("Bucket", result.bucket);
  name_element(xml, "KeyMarker", result.key_marker, result.encode_url);
  xml.text("UploadIdMarker", result.upload_id_marker);
  if (result.truncated) {
    name_element(xml, "NextKeyMarker", result.next_key_marker, result.encode_url);
    xml.text("NextUploadIdMarker", result.next_upload_id_marker);
  }
  name_element(xml, "Prefix", result.prefix, result.encode_url);
  if (!result.delimiter.empty()) name_element(xml, "Delimiter", result.delimiter, result.encode_url);
  if (result.encode_url) xml.text("EncodingType", "url");
  xml.number("MaxUploads", result.max_uploads);
  xml.boolean("IsTruncated", result.truncated);
  for (const UploadEntry& upload : result.uploads) {
    xml.open("Upload");
    name_element(xml, "Key", upload.key, result.encode_url);
    xml.text("UploadId", upload.upload_id);
    owner_element(xml, "Initiator", upload.owner);
    owner_element(xml, "Owner", upload.owner);
    xml.text("StorageClass", upload.storage_class);
    checksum_choice(xml, upload.checksum_kind, upload.checksum_full_object);
    xml.text("Initiated", base::to_iso8601(upload.initiated));
    xml.close("Upload");
  }
  prefix_elements(xml, result.common_prefixes, result.encode_url);
  xml.close("ListMultipartUploadsResult");
  return std::move(xml).take();
}

}  // namespace reelway::s3
