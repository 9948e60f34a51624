#include "s3/build_operation.h"

#include <algorithm>
#include <array>

#include "base/encoding.h"
#include "s3/multipart.h"
#include "s3/request_headers.h"
#include "s3/text.h"

namespace reelway::s3 {

namespace {

std::string text(const BuildInput& input, std::string_view name) {
  return std::string(find(input.query, name).value_or(""));
}

Outcome<std::uint32_t> count(const BuildInput& input, std::string_view name, std::uint32_t otherwise,
                             std::uint32_t most) {
  const auto value = find(input.query, name);
  if (!value || value->empty()) return otherwise;
  const auto number = base::parse_decimal(*value);
  if (!number || *number > 2'147'483'647) {
    return invalid_argument("Provided " + std::string(name) + " not an integer or within integer range",
                            std::string(name), std::string(*value));
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(*number, most));
}

/// ListBuckets alone has a smallest page: AWS gives 1 to 10000.
Outcome<std::uint32_t> bucket_count(const BuildInput& input) {
  constexpr std::uint32_t kBucketsMax = 10'000;
  TRY(const std::uint32_t wanted, count(input, "max-buckets", kBucketsMax, kBucketsMax));
  if (wanted > 0) return wanted;
  return invalid_argument("Argument max-buckets must be an integer between 1 and 10000", "max-buckets", "0");
}

Outcome<bool> encode_url(const BuildInput& input) {
  const auto value = find(input.query, "encoding-type");
  if (!value || value->empty()) return false;
  if (base::equals_ignoring_case(*value, "url")) return true;
  return invalid_argument("Invalid Encoding Method specified in Request", "encoding-type",
                          std::string(*value));
}

Outcome<std::uint32_t> part_number(const BuildInput& input) {
  const std::string value = text(input, "partNumber");
  const auto number = base::parse_decimal(value);
  if (!number || *number < 1 || *number > kPartNumberMax) {
    return invalid_argument("Part number must be an integer between 1 and 10000, inclusive", "partNumber",
                            value);
  }
  return static_cast<std::uint32_t>(*number);
}

Outcome<std::string> upload_id(const BuildInput& input) {
  std::string id = text(input, "uploadId");
  if (id.empty()) return fault(ErrorCode::no_such_upload, {{"UploadId", ""}});
  return id;
}

bool wants_restore_status(const BuildInput& input) {
  const auto value = input.fields.get("x-amz-optional-object-attributes");
  return value && value->contains("RestoreStatus");
}

Outcome<std::map<std::string, std::string>> overrides(const BuildInput& input) {
  constexpr std::array<std::string_view, 6> kNames{
      "content-type",  "content-language",    "expires",
      "cache-control", "content-disposition", "content-encoding"};
  std::map<std::string, std::string> found;
  for (const std::string_view name : kNames) {
    const std::string parameter = "response-" + std::string(name);
    const auto value = find(input.query, parameter);
    if (!value) continue;
    const bool safe = std::ranges::none_of(
        *value, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
    if (!safe) return invalid_argument("The value holds characters that a header cannot", parameter, "");
    found.emplace(name, *value);
  }
  return found;
}

/// GetObject and HeadObject have the same parameters.
template <class Read>
Outcome<Operation> build_read(const BuildInput& input) {
  Read read;
  read.conditions = parse_read_conditions(input.fields);
  if (const auto range = input.fields.get("range")) read.range = parse_range(*range);
  if (find(input.query, "partNumber")) {
    TRY(read.part_number, part_number(input));
    if (input.fields.contains("range")) {
      return fault_saying(ErrorCode::invalid_request,
                          "Cannot specify both Range header and partNumber query parameter");
    }
  }
  TRY(read.overrides, overrides(input));
  read.checksum_mode = base::equals_ignoring_case(input.fields.get_or("x-amz-checksum-mode", ""), "ENABLED");
  read.version_id = text(input, "versionId");
  return Operation(std::move(read));
}

Outcome<bool> replaces_metadata(const BuildInput& input) {
  const std::string_view directive = input.fields.get_or("x-amz-metadata-directive", "COPY");
  if (directive == "REPLACE") return true;
  if (directive == "COPY") return false;
  return invalid_argument("Unknown metadata directive.", "x-amz-metadata-directive", std::string(directive));
}

Outcome<Operation> build_copy_object(const BuildInput& input, std::string_view source) {
  CopyObject copy;
  TRY(copy.source, parse_copy_source(source));
  copy.source_conditions = parse_read_conditions(input.fields, "x-amz-copy-source-");
  TRY(copy.conditions, parse_write_conditions(input.fields));
  TRY(copy.replace_metadata, replaces_metadata(input));
  if (copy.replace_metadata) {
    TRY(copy.attributes, parse_attributes(input.fields));
  }
  TRY(copy.storage_class, parse_storage_class(input.fields));
  TRY(copy.checksum_kind, parse_algorithm(input.fields, "x-amz-checksum-algorithm"));
  const bool onto_itself =
      copy.source.bucket == input.bucket && copy.source.key == input.key && copy.source.version_id.empty();
  if (onto_itself && !copy.replace_metadata && !copy.storage_class) {
    return fault_saying(ErrorCode::invalid_request,
                        "This copy request is illegal because it is trying to copy an object to itself "
                        "without changing the object's "
                        "metadata, storage class, website redirect location or encryption attributes.");
  }
  return Operation(std::move(copy));
}

Outcome<Operation> build_part_copy(const BuildInput& input, std::string_view source) {
  UploadPartCopy copy;
  TRY(copy.upload_id, upload_id(input));
  TRY(copy.part_number, part_number(input));
  TRY(copy.source, parse_copy_source(source));
  copy.source_conditions = parse_read_conditions(input.fields, "x-amz-copy-source-");
  if (const auto range = input.fields.get("x-amz-copy-source-range")) {
    TRY(copy.range, parse_copy_range(trim(*range)));
  }
  return Operation(std::move(copy));
}

/// x-amz-checksum-type, where present.
Outcome<std::optional<bool>> full_object_wanted(const BuildInput& input) {
  const auto type = input.fields.get("x-amz-checksum-type");
  if (!type || type->empty()) return std::nullopt;
  if (*type == "FULL_OBJECT") return std::optional(true);
  if (*type == "COMPOSITE") return std::optional(false);
  return fault_saying(ErrorCode::invalid_request, "Value for x-amz-checksum-type header is invalid.");
}

Outcome<void> check_checksum_type(base::ChecksumKind kind, bool full_object) {
  const bool possible = full_object ? may_be_full_object(kind) : may_be_composite(kind);
  if (possible) return {};
  return fault_saying(ErrorCode::invalid_request,
                      std::string("The ") + (full_object ? "FULL_OBJECT" : "COMPOSITE") +
                          " checksum type cannot be used with the " + std::string(base::to_string(kind)) +
                          " checksum algorithm.");
}

Outcome<Operation> build_list_objects_v2(const BuildInput& input) {
  ListObjectsV2 list;
  list.prefix = text(input, "prefix");
  list.delimiter = text(input, "delimiter");
  list.start_after = text(input, "start-after");
  if (const auto token = find(input.query, "continuation-token")) {
    TRY_VOID(decode_continuation_token(*token));
    list.continuation_token = *token;
  }
  list.fetch_owner = base::equals_ignoring_case(text(input, "fetch-owner"), "true");
  TRY(list.max_keys, count(input, "max-keys", kPageMax, kPageMax));
  TRY(list.encode_url, encode_url(input));
  list.restore_status = wants_restore_status(input);
  return Operation(std::move(list));
}

}  // namespace

Outcome<Operation> build_list_buckets(const BuildInput& input) {
  ListBuckets list;
  list.prefix = text(input, "prefix");
  TRY(list.max_buckets, bucket_count(input));
  if (const auto token = find(input.query, "continuation-token"); token && !token->empty()) {
    TRY_VOID(decode_continuation_token(*token));
    list.continuation_token = *token;
  }
  return Operation(std::move(list));
}

Outcome<Operation> build_list_objects(const BuildInput& input) {
  const std::string type = text(input, "list-type");
  if (type == "2") return build_list_objects_v2(input);
  if (!type.empty() && type != "1")
    return invalid_argument("Invalid List Type specified in Request", "list-type", type);
  ListObjects list;
  list.prefix = text(input, "prefix");
  list.delimiter = text(input, "delimiter");
  list.marker = text(input, "marker");
  TRY(list.max_keys, count(input, "max-keys", kPageMax, kPageMax));
  TRY(list.encode_url, encode_url(input));
  list.restore_status = wants_restore_status(input);
  return Operation(std::move(list));
}

Outcome<Operation> build_list_uploads(const BuildInput& input) {
  ListMultipartUploads list;
  list.prefix = text(input, "prefix");
  list.delimiter = text(input, "delimiter");
  list.key_marker = text(input, "key-marker");
  list.upload_id_marker = text(input, "upload-id-marker");
  TRY(list.max_uploads, count(input, "max-uploads", kPageMax, kPageMax));
  TRY(list.encode_url, encode_url(input));
  return Operation(std::move(list));
}

Outcome<Operation> build_list_parts(const BuildInput& input) {
  ListParts list;
  TRY(list.upload_id, upload_id(input));
  TRY(list.part_number_marker, count(input, "part-number-marker", 0, kPartNumberMax));
  TRY(list.max_parts, count(input, "max-parts", kPageMax, kPageMax));
  TRY(list.encode_url, encode_url(input));
  return Operation(std::move(list));
}

Outcome<Operation> build_delete_objects(const BuildInput& input) {
  DeleteObjects remove;
  TRY(remove.integrity, parse_integrity(input.fields));
  if (!remove.integrity.content_md5 && !remove.integrity.checksum) {
    return fault_saying(ErrorCode::invalid_request,
                        "Missing required header for this request: Content-MD5 OR x-amz-checksum-*");
  }
  return Operation(std::move(remove));
}

Outcome<Operation> build_get_object(const BuildInput& input) { return build_read<GetObject>(input); }
Outcome<Operation> build_head_object(const BuildInput& input) { return build_read<HeadObject>(input); }

Outcome<Operation> build_put_object(const BuildInput& input) {
  if (find(input.query, "partNumber")) {
    return invalid_argument("This operation does not accept a part number without an upload id", "partNumber",
                            text(input, "partNumber"));
  }
  if (const auto source = input.fields.get("x-amz-copy-source")) return build_copy_object(input, *source);
  PutObject put;
  TRY(put.attributes, parse_attributes(input.fields));
  TRY(auto storage_class, parse_storage_class(input.fields));
  if (storage_class) put.storage_class = std::move(*storage_class);
  TRY(put.conditions, parse_write_conditions(input.fields));
  TRY(put.integrity, parse_integrity(input.fields));
  return Operation(std::move(put));
}

Outcome<Operation> build_upload_part(const BuildInput& input) {
  if (!find(input.query, "partNumber")) {
    Fault refused = fault(ErrorCode::method_not_allowed, {{"Method", "PUT"}, {"ResourceType", "UPLOAD"}});
    refused.headers.add("Allow", "DELETE, GET, POST");
    return refused;
  }
  if (const auto source = input.fields.get("x-amz-copy-source")) return build_part_copy(input, *source);
  UploadPart part;
  TRY(part.upload_id, upload_id(input));
  TRY(part.part_number, part_number(input));
  TRY(part.integrity, parse_integrity(input.fields));
  return Operation(std::move(part));
}

Outcome<Operation> build_delete_object(const BuildInput& input) {
  DeleteObject remove;
  TRY(remove.conditions, parse_delete_conditions(input.fields));
  remove.version_id = text(input, "versionId");
  return Operation(std::move(remove));
}

Outcome<Operation> build_create_upload(const BuildInput& input) {
  CreateMultipartUpload create;
  TRY(create.attributes, parse_attributes(input.fields));
  TRY(auto storage_class, parse_storage_class(input.fields));
  if (storage_class) create.storage_class = std::move(*storage_class);
  TRY(create.checksum_kind, parse_algorithm(input.fields, "x-amz-checksum-algorithm"));
  TRY(const auto full_object, full_object_wanted(input));
  if (!create.checksum_kind) {
    if (full_object) {
      return fault_saying(
          ErrorCode::invalid_request,
          "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.");
    }
    return Operation(std::move(create));
  }
  create.checksum_full_object = full_object.value_or(!may_be_composite(*create.checksum_kind));
  TRY_VOID(check_checksum_type(*create.checksum_kind, create.checksum_full_object));
  return Operation(std::move(create));
}

Outcome<Operation> build_complete_upload(const BuildInput& input) {
  CompleteMultipartUpload complete;
  TRY(complete.upload_id, upload_id(input));
  TRY(complete.conditions, parse_write_conditions(input.fields));
  TRY(complete.checksum, parse_checksum(input.fields, /*composite_allowed=*/true));
  TRY(complete.checksum_full_object, full_object_wanted(input));
  if (const auto size = input.fields.get("x-amz-mp-object-size")) {
    const auto number = base::parse_decimal(trim(*size));
    if (!number)
      return fault_saying(ErrorCode::invalid_request, "Value for x-amz-mp-object-size header is invalid.");
    complete.object_size = *number;
  }
  return Operation(std::move(complete));
}

Outcome<Operation> build_abort_upload(const BuildInput& input) {
  AbortMultipartUpload abort;
  TRY(abort.upload_id, upload_id(input));
  return Operation(std::move(abort));
}

Outcome<Operation> build_restore_object(const BuildInput& input) {
  return Operation(RestoreObject{.version_id = text(input, "versionId")});
}

Outcome<Operation> build_post_bucket(const BuildInput& input) {
  if (!starts_with_ignoring_case(input.fields.get_or("content-type", ""), "multipart/form-data")) {
    return fault(ErrorCode::precondition_failed,
                 {{"Condition", "Bucket POST must be of the enclosure-type multipart/form-data"}});
  }
  return Operation(Unsupported{
      .name = "PostObject", .action = "s3:PutObject", .known = true, .detail = "multipart/form-data"});
}

}  // namespace reelway::s3
