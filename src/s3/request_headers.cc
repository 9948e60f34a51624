#include "s3/request_headers.h"

#include <algorithm>
#include <array>

#include "base/encoding.h"
#include "s3/request.h"
#include "s3/text.h"

namespace reelway::s3 {

namespace {

constexpr std::string_view kMetaPrefix = "x-amz-meta-";
constexpr std::string_view kChecksumPrefix = "x-amz-checksum-";

bool is_system_header(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames{"content-type",        "cache-control",
                                                   "content-disposition", "content-encoding",
                                                   "content-language",    "expires"};
  return std::ranges::find(kNames, name) != kNames.end();
}

/// "aws-chunked, gzip" is "gzip": aws-chunked is of the transfer, not of the object.
std::string without_aws_chunked(std::string_view text) {
  std::string kept;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string_view item = trim(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    if (item.empty() || base::equals_ignoring_case(item, "aws-chunked")) continue;
    if (!kept.empty()) kept += ",";
    kept += item;
  }
  return kept;
}

/// A checksum of a kind that S3 has, by its name in headers; MD5 is none of them.
std::optional<base::ChecksumKind> kind_named(std::string_view name) {
  const auto kind = base::parse_checksum_kind(name);
  if (!kind || *kind == base::ChecksumKind::md5) return std::nullopt;
  return kind;
}

bool names_a_value(std::string_view lower_name) {
  if (!lower_name.starts_with(kChecksumPrefix)) return false;
  const std::string_view rest = lower_name.substr(kChecksumPrefix.size());
  return rest != "algorithm" && rest != "type" && rest != "mode";
}

Fault invalid_value(std::string_view header) {
  return fault_saying(ErrorCode::invalid_request, "Value for " + std::string(header) + " header is invalid.");
}

Outcome<Checksum> checksum_value(base::ChecksumKind kind, std::string_view text, bool composite_allowed) {
  Checksum checksum{.kind = kind, .value = {}};
  const auto dash = text.find('-');
  if (composite_allowed && dash != std::string_view::npos) {
    const auto count = base::parse_decimal(text.substr(dash + 1));
    if (!count || *count == 0 || *count > kPartNumberMax) return invalid_value(checksum_header(kind));
    checksum.composite_part_count = static_cast<std::uint32_t>(*count);
    text = text.substr(0, dash);
  }
  auto value = base::from_base64(text);
  if (!value || value->size() != base::digest_size(kind)) return invalid_value(checksum_header(kind));
  checksum.value = std::move(*value);
  return checksum;
}

Outcome<std::optional<base::Bytes>> parse_content_md5(const base::HttpFields& fields) {
  const auto text = fields.get("content-md5");
  if (!text) return std::nullopt;
  auto value = base::from_base64(trim(*text));
  if (!value || value->size() != base::digest_size(base::ChecksumKind::md5)) {
    return fault(ErrorCode::invalid_digest, {{"Content-MD5", std::string(*text)}});
  }
  return std::optional(std::move(*value));
}

Outcome<std::optional<base::ChecksumKind>> parse_trailer(const base::HttpFields& fields) {
  const auto text = fields.get("x-amz-trailer");
  if (!text) return std::nullopt;
  const std::string name = lower(trim(*text));
  const auto kind = name.starts_with(kChecksumPrefix)
                        ? kind_named(std::string_view(name).substr(kChecksumPrefix.size()))
                        : std::nullopt;
  if (!kind)
    return fault_saying(ErrorCode::invalid_request,
                        "The value specified in the x-amz-trailer header is not supported");
  if (!fields.get_or("x-amz-content-sha256", "").ends_with("-TRAILER")) return invalid_value("x-amz-trailer");
  return kind;
}

std::vector<std::string> etag_list(const base::HttpFields& fields, std::string_view name) {
  const auto text = fields.get(name);
  return text ? parse_etag_list(*text) : std::vector<std::string>{};
}

std::optional<base::TimePoint> date(const base::HttpFields& fields, std::string_view name) {
  const auto text = fields.get(name);
  return text ? parse_http_date(trim(*text)) : std::nullopt;
}

Fault condition_not_implemented(std::string_view header, std::string message) {
  return fault(ErrorCode::not_implemented,
               {{"Header", std::string(header)}, {"additionalMessage", std::move(message)}});
}

bool is_harmless_acl(std::string_view value) {
  return value == "private" || value == "bucket-owner-full-control";
}

}  // namespace

Outcome<Attributes> parse_attributes(const base::HttpFields& fields) {
  Attributes attributes;
  std::size_t user_bytes = 0;
  for (const base::HttpField& field : fields) {
    const std::string name = lower(field.name);
    if (is_system_header(name)) {
      std::string value =
          name == "content-encoding" ? without_aws_chunked(field.value) : std::string(trim(field.value));
      if (!value.empty()) attributes.headers[name] = std::move(value);
      continue;
    }
    // One RDMA client sends its token under a name that reads like metadata; it must not be stored.
    if (!name.starts_with(kMetaPrefix) || name == "x-amz-meta-rdma-token") continue;
    const std::string key = name.substr(kMetaPrefix.size());
    if (key.empty())
      return fault_saying(ErrorCode::invalid_request, "A metadata header needs a name after x-amz-meta-");
    const auto [it, fresh] = attributes.user.try_emplace(key, trim(field.value));
    user_bytes += field.value.size() + (fresh ? key.size() : 1);
    if (!fresh) it->second += "," + std::string(trim(field.value));
  }
  if (user_bytes > kUserMetadataBytesMax) {
    return fault(ErrorCode::metadata_too_large, {{"Size", std::to_string(user_bytes)},
                                                 {"MaxSizeAllowed", std::to_string(kUserMetadataBytesMax)}});
  }
  return attributes;
}

Outcome<std::optional<std::string>> parse_storage_class(const base::HttpFields& fields) {
  constexpr std::array<std::string_view, 8> kClasses{"STANDARD",     "REDUCED_REDUNDANCY",  "STANDARD_IA",
                                                     "ONEZONE_IA",   "INTELLIGENT_TIERING", "GLACIER",
                                                     "DEEP_ARCHIVE", "GLACIER_IR"};
  const auto text = fields.get("x-amz-storage-class");
  if (!text || text->empty()) return std::nullopt;
  if (std::ranges::find(kClasses, *text) == kClasses.end()) return fault(ErrorCode::invalid_storage_class);
  return std::optional(std::string(*text));
}

Outcome<std::optional<Checksum>> parse_checksum(const base::HttpFields& fields, bool composite_allowed) {
  std::optional<Checksum> found;
  for (const base::HttpField& field : fields) {
    const std::string name = lower(field.name);
    if (!names_a_value(name)) continue;
    const auto kind = kind_named(std::string_view(name).substr(kChecksumPrefix.size()));
    if (!kind) return fault(ErrorCode::not_implemented, {{"Header", name}});
    if (found) {
      return fault_saying(
          ErrorCode::invalid_request,
          "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.");
    }
    TRY(found, checksum_value(*kind, trim(field.value), composite_allowed));
  }
  return found;
}

Outcome<std::optional<base::ChecksumKind>> parse_algorithm(const base::HttpFields& fields,
                                                           std::string_view header) {
  const auto text = fields.get(header);
  if (!text || text->empty()) return std::nullopt;
  const auto kind = kind_named(trim(*text));
  if (!kind) {
    return fault_saying(
        ErrorCode::invalid_request,
        "Checksum algorithm provided is unsupported. Please try again with any of the valid types: "
        "[CRC32, CRC32C, CRC64NVME, SHA1, SHA256]");
  }
  return kind;
}

Outcome<Integrity> parse_integrity(const base::HttpFields& fields) {
  Integrity integrity;
  TRY(integrity.content_md5, parse_content_md5(fields));
  TRY(integrity.checksum, parse_checksum(fields, /*composite_allowed=*/false));
  TRY(integrity.trailer, parse_trailer(fields));
  TRY(integrity.algorithm, parse_algorithm(fields, "x-amz-sdk-checksum-algorithm"));
  if (integrity.trailer && integrity.checksum) {
    return fault_saying(ErrorCode::invalid_request, "Expecting a single x-amz-checksum- header");
  }
  const auto sent = integrity.checksum ? std::optional(integrity.checksum->kind) : integrity.trailer;
  if (sent && integrity.algorithm && *sent != *integrity.algorithm)
    return invalid_value("x-amz-sdk-checksum-algorithm");
  return integrity;
}

Conditions parse_read_conditions(const base::HttpFields& fields, std::string_view prefix) {
  const std::string start(prefix);
  return {.if_match = etag_list(fields, start + "if-match"),
          .if_none_match = etag_list(fields, start + "if-none-match"),
          .if_modified_since = date(fields, start + "if-modified-since"),
          .if_unmodified_since = date(fields, start + "if-unmodified-since")};
}

Outcome<Conditions> parse_write_conditions(const base::HttpFields& fields) {
  Conditions conditions;
  conditions.if_match = etag_list(fields, "if-match");
  conditions.if_none_match = etag_list(fields, "if-none-match");
  if (!conditions.if_match.empty() && !conditions.if_none_match.empty()) {
    return condition_not_implemented("If-Match,If-None-Match",
                                     "Multiple conditional request headers present in the request");
  }
  if (!conditions.if_none_match.empty() && conditions.if_none_match != std::vector<std::string>{"*"}) {
    return condition_not_implemented(
        "If-None-Match", "We don't accept the provided value of If-None-Match header for this API");
  }
  for (const std::string_view name : {"if-modified-since", "if-unmodified-since"}) {
    if (fields.contains(name))
      return condition_not_implemented(name, "This header has no meaning for a write");
  }
  return conditions;
}

Outcome<Conditions> parse_delete_conditions(const base::HttpFields& fields) {
  for (const std::string_view name : {"x-amz-if-match-last-modified-time", "x-amz-if-match-size"}) {
    if (fields.contains(name))
      return condition_not_implemented(name, "This condition is not available for this bucket");
  }
  Conditions conditions;
  conditions.if_match = etag_list(fields, "if-match");
  return conditions;
}

Outcome<void> refuse_unsupported_headers(const base::HttpFields& fields) {
  constexpr std::array<std::string_view, 9> kRefused{"x-amz-server-side-encryption",
                                                     "x-amz-copy-source-server-side-encryption",
                                                     "x-amz-object-lock-",
                                                     "x-amz-tagging",
                                                     "x-amz-website-redirect-location",
                                                     "x-amz-write-offset-bytes",
                                                     "x-amz-rename-source",
                                                     "x-amz-bucket-object-lock-enabled",
                                                     "x-amz-object-ownership"};
  for (const base::HttpField& field : fields) {
    if (field.value.empty() || !starts_with_ignoring_case(field.name, "x-amz-")) continue;
    const std::string name = lower(field.name);
    if (name == "x-amz-acl" && !is_harmless_acl(field.value))
      return fault(ErrorCode::access_control_list_not_supported);
    if (name.starts_with("x-amz-grant-")) return fault(ErrorCode::access_control_list_not_supported);
    if (name == "x-amz-tagging-directive") continue;
    if (name == "x-amz-bucket-object-lock-enabled" && base::equals_ignoring_case(field.value, "false"))
      continue;
    if (name == "x-amz-object-ownership" && field.value == "BucketOwnerEnforced") continue;
    const bool refused =
        std::ranges::any_of(kRefused, [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (refused) return fault(ErrorCode::not_implemented, {{"Header", name}});
  }
  return {};
}

}  // namespace reelway::s3
