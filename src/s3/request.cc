#include "s3/request.h"

#include <algorithm>
#include <array>

#include "base/encoding.h"
#include "s3/build_operation.h"
#include "s3/request_headers.h"
#include "s3/sigv4.h"
#include "s3/text.h"

namespace reelway::s3 {

namespace {

enum class Level : std::uint8_t { service, bucket, object };

/// Operations that exist here. The first row of the level and method whose selector is in the query is taken;
/// a row without one takes the rest. `parameters` are those it understands besides the selector.
struct Route {
  Level level;
  std::string_view method;
  std::string_view selector;
  std::string_view parameters;  ///< separated by spaces
  Outcome<Operation> (*build)(const BuildInput&);
};

constexpr std::string_view kReadParameters =
    "versionId partNumber response-content-type response-content-language response-expires "
    "response-cache-control "
    "response-content-disposition response-content-encoding";
constexpr std::string_view kListParameters =
    "list-type prefix delimiter marker max-keys encoding-type continuation-token start-after fetch-owner";

constexpr std::array kRoutes{
    Route{Level::service, "GET", "", "prefix max-buckets continuation-token bucket-region",
          build_list_buckets},
    Route{Level::bucket, "GET", "location", "", build_plain<GetBucketLocation>},
    Route{Level::bucket, "GET", "uploads",
          "prefix delimiter key-marker upload-id-marker max-uploads encoding-type", build_list_uploads},
    Route{Level::bucket, "GET", "", kListParameters, build_list_objects},
    Route{Level::bucket, "HEAD", "", "", build_plain<HeadBucket>},
    Route{Level::bucket, "PUT", "", "", build_plain<CreateBucket>},
    Route{Level::bucket, "DELETE", "", "", build_plain<DeleteBucket>},
    Route{Level::bucket, "POST", "delete", "", build_delete_objects},
    Route{Level::bucket, "POST", "", "", build_post_bucket},
    Route{Level::object, "GET", "uploadId", "max-parts part-number-marker encoding-type", build_list_parts},
    Route{Level::object, "GET", "", kReadParameters, build_get_object},
    Route{Level::object, "HEAD", "", kReadParameters, build_head_object},
    Route{Level::object, "PUT", "uploadId", "partNumber", build_upload_part},
    Route{Level::object, "PUT", "", "partNumber", build_put_object},
    Route{Level::object, "DELETE", "uploadId", "", build_abort_upload},
    Route{Level::object, "DELETE", "", "versionId", build_delete_object},
    Route{Level::object, "POST", "uploads", "", build_create_upload},
    Route{Level::object, "POST", "uploadId", "", build_complete_upload},
    Route{Level::object, "POST", "restore", "versionId", build_restore_object},
};

/// Sub-resources of S3 that this gateway does not serve, or serves only at their default.
struct Subresource {
  Level level;
  std::string_view parameter;
  std::string_view method;
  std::string_view name;
  std::string_view action;
  std::optional<Feature> feature = std::nullopt;
};

using enum Feature;
constexpr std::array kSubresources{
    Subresource{Level::bucket, "accelerate", "GET", "GetBucketAccelerateConfiguration",
                "s3:GetAccelerateConfiguration", bucket_accelerate},
    Subresource{Level::bucket, "accelerate", "PUT", "PutBucketAccelerateConfiguration",
                "s3:PutAccelerateConfiguration"},
    Subresource{Level::bucket, "acl", "GET", "GetBucketAcl", "s3:GetBucketAcl", bucket_acl},
    Subresource{Level::bucket, "acl", "PUT", "PutBucketAcl", "s3:PutBucketAcl"},
    Subresource{Level::bucket, "analytics", "GET", "GetBucketAnalyticsConfiguration",
                "s3:GetAnalyticsConfiguration"},
    Subresource{Level::bucket, "analytics", "PUT", "PutBucketAnalyticsConfiguration",
                "s3:PutAnalyticsConfiguration"},
    Subresource{Level::bucket, "analytics", "DELETE", "DeleteBucketAnalyticsConfiguration",
                "s3:PutAnalyticsConfiguration"},
    Subresource{Level::bucket, "cors", "GET", "GetBucketCors", "s3:GetBucketCORS", bucket_cors},
    Subresource{Level::bucket, "cors", "PUT", "PutBucketCors", "s3:PutBucketCORS"},
    Subresource{Level::bucket, "cors", "DELETE", "DeleteBucketCors", "s3:PutBucketCORS"},
    Subresource{Level::bucket, "encryption", "GET", "GetBucketEncryption", "s3:GetEncryptionConfiguration",
                bucket_encryption},
    Subresource{Level::bucket, "encryption", "PUT", "PutBucketEncryption", "s3:PutEncryptionConfiguration"},
    Subresource{Level::bucket, "encryption", "DELETE", "DeleteBucketEncryption",
                "s3:PutEncryptionConfiguration"},
    Subresource{Level::bucket, "intelligent-tiering", "GET", "GetBucketIntelligentTieringConfiguration",
                "s3:GetIntelligentTieringConfiguration"},
    Subresource{Level::bucket, "intelligent-tiering", "PUT", "PutBucketIntelligentTieringConfiguration",
                "s3:PutIntelligentTieringConfiguration"},
    Subresource{Level::bucket, "intelligent-tiering", "DELETE", "DeleteBucketIntelligentTieringConfiguration",
                "s3:PutIntelligentTieringConfiguration"},
    Subresource{Level::bucket, "inventory", "GET", "GetBucketInventoryConfiguration",
                "s3:GetInventoryConfiguration"},
    Subresource{Level::bucket, "inventory", "PUT", "PutBucketInventoryConfiguration",
                "s3:PutInventoryConfiguration"},
    Subresource{Level::bucket, "inventory", "DELETE", "DeleteBucketInventoryConfiguration",
                "s3:PutInventoryConfiguration"},
    Subresource{Level::bucket, "lifecycle", "GET", "GetBucketLifecycleConfiguration",
                "s3:GetLifecycleConfiguration", bucket_lifecycle},
    Subresource{Level::bucket, "lifecycle", "PUT", "PutBucketLifecycleConfiguration",
                "s3:PutLifecycleConfiguration"},
    Subresource{Level::bucket, "lifecycle", "DELETE", "DeleteBucketLifecycle",
                "s3:PutLifecycleConfiguration"},
    Subresource{Level::bucket, "logging", "GET", "GetBucketLogging", "s3:GetBucketLogging", bucket_logging},
    Subresource{Level::bucket, "logging", "PUT", "PutBucketLogging", "s3:PutBucketLogging"},
    Subresource{Level::bucket, "metadataConfiguration", "GET", "GetBucketMetadataConfiguration",
                "s3:GetBucketMetadataTableConfiguration"},
    Subresource{Level::bucket, "metadataTable", "GET", "GetBucketMetadataTableConfiguration",
                "s3:GetBucketMetadataTableConfiguration"},
    Subresource{Level::bucket, "metrics", "GET", "GetBucketMetricsConfiguration",
                "s3:GetMetricsConfiguration"},
    Subresource{Level::bucket, "metrics", "PUT", "PutBucketMetricsConfiguration",
                "s3:PutMetricsConfiguration"},
    Subresource{Level::bucket, "metrics", "DELETE", "DeleteBucketMetricsConfiguration",
                "s3:PutMetricsConfiguration"},
    Subresource{Level::bucket, "notification", "GET", "GetBucketNotificationConfiguration",
                "s3:GetBucketNotification", bucket_notification},
    Subresource{Level::bucket, "notification", "PUT", "PutBucketNotificationConfiguration",
                "s3:PutBucketNotification"},
    Subresource{Level::bucket, "object-lock", "GET", "GetObjectLockConfiguration",
                "s3:GetBucketObjectLockConfiguration", bucket_object_lock},
    Subresource{Level::bucket, "object-lock", "PUT", "PutObjectLockConfiguration",
                "s3:PutBucketObjectLockConfiguration"},
    Subresource{Level::bucket, "ownershipControls", "GET", "GetBucketOwnershipControls",
                "s3:GetBucketOwnershipControls", bucket_ownership_controls},
    Subresource{Level::bucket, "ownershipControls", "PUT", "PutBucketOwnershipControls",
                "s3:PutBucketOwnershipControls"},
    Subresource{Level::bucket, "ownershipControls", "DELETE", "DeleteBucketOwnershipControls",
                "s3:PutBucketOwnershipControls"},
    Subresource{Level::bucket, "policy", "GET", "GetBucketPolicy", "s3:GetBucketPolicy", bucket_policy},
    Subresource{Level::bucket, "policy", "PUT", "PutBucketPolicy", "s3:PutBucketPolicy"},
    Subresource{Level::bucket, "policy", "DELETE", "DeleteBucketPolicy", "s3:DeleteBucketPolicy"},
    Subresource{Level::bucket, "policyStatus", "GET", "GetBucketPolicyStatus", "s3:GetBucketPolicyStatus",
                bucket_policy_status},
    Subresource{Level::bucket, "publicAccessBlock", "GET", "GetPublicAccessBlock",
                "s3:GetBucketPublicAccessBlock", bucket_public_access_block},
    Subresource{Level::bucket, "publicAccessBlock", "PUT", "PutPublicAccessBlock",
                "s3:PutBucketPublicAccessBlock"},
    Subresource{Level::bucket, "publicAccessBlock", "DELETE", "DeletePublicAccessBlock",
                "s3:PutBucketPublicAccessBlock"},
    Subresource{Level::bucket, "replication", "GET", "GetBucketReplication", "s3:GetReplicationConfiguration",
                bucket_replication},
    Subresource{Level::bucket, "replication", "PUT", "PutBucketReplication",
                "s3:PutReplicationConfiguration"},
    Subresource{Level::bucket, "replication", "DELETE", "DeleteBucketReplication",
                "s3:PutReplicationConfiguration"},
    Subresource{Level::bucket, "requestPayment", "GET", "GetBucketRequestPayment",
                "s3:GetBucketRequestPayment", bucket_request_payment},
    Subresource{Level::bucket, "requestPayment", "PUT", "PutBucketRequestPayment",
                "s3:PutBucketRequestPayment"},
    Subresource{Level::bucket, "session", "GET", "CreateSession", "s3express:CreateSession"},
    Subresource{Level::bucket, "tagging", "GET", "GetBucketTagging", "s3:GetBucketTagging", bucket_tagging},
    Subresource{Level::bucket, "tagging", "PUT", "PutBucketTagging", "s3:PutBucketTagging"},
    Subresource{Level::bucket, "tagging", "DELETE", "DeleteBucketTagging", "s3:PutBucketTagging"},
    Subresource{Level::bucket, "versioning", "GET", "GetBucketVersioning", "s3:GetBucketVersioning",
                bucket_versioning},
    Subresource{Level::bucket, "versioning", "PUT", "PutBucketVersioning", "s3:PutBucketVersioning"},
    Subresource{Level::bucket, "versions", "GET", "ListObjectVersions", "s3:ListBucketVersions"},
    Subresource{Level::bucket, "website", "GET", "GetBucketWebsite", "s3:GetBucketWebsite", bucket_website},
    Subresource{Level::bucket, "website", "PUT", "PutBucketWebsite", "s3:PutBucketWebsite"},
    Subresource{Level::bucket, "website", "DELETE", "DeleteBucketWebsite", "s3:DeleteBucketWebsite"},
    Subresource{Level::object, "acl", "GET", "GetObjectAcl", "s3:GetObjectAcl", object_acl},
    Subresource{Level::object, "acl", "PUT", "PutObjectAcl", "s3:PutObjectAcl"},
    Subresource{Level::object, "attributes", "GET", "GetObjectAttributes", "s3:GetObjectAttributes"},
    Subresource{Level::object, "encryption", "PUT", "UpdateObjectEncryption", "s3:UpdateObjectEncryption"},
    Subresource{Level::object, "legal-hold", "GET", "GetObjectLegalHold", "s3:GetObjectLegalHold",
                object_legal_hold},
    Subresource{Level::object, "legal-hold", "PUT", "PutObjectLegalHold", "s3:PutObjectLegalHold"},
    Subresource{Level::object, "renameObject", "PUT", "RenameObject", "s3express:CreateSession"},
    Subresource{Level::object, "retention", "GET", "GetObjectRetention", "s3:GetObjectRetention",
                object_retention},
    Subresource{Level::object, "retention", "PUT", "PutObjectRetention", "s3:PutObjectRetention"},
    Subresource{Level::object, "select", "POST", "SelectObjectContent", "s3:GetObject"},
    Subresource{Level::object, "tagging", "GET", "GetObjectTagging", "s3:GetObjectTagging", object_tagging},
    Subresource{Level::object, "tagging", "PUT", "PutObjectTagging", "s3:PutObjectTagging"},
    Subresource{Level::object, "tagging", "DELETE", "DeleteObjectTagging", "s3:DeleteObjectTagging"},
    Subresource{Level::object, "torrent", "GET", "GetObjectTorrent", "s3:GetObjectTorrent"},
};

struct Place {
  Level level = Level::service;
  std::string bucket;
  std::string key;
};

std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host;
  return host.substr(0, host.find(':'));
}

/// The bucket that the Host header names, empty for path style.
std::string bucket_of_host(const base::HttpRequestHead& head, const HostOptions& options) {
  const std::string host = lower(without_port(head.fields.get_or("host", "")));
  for (const std::string& domain : options.virtual_host_domains) {
    const std::string suffix = "." + lower(domain);
    if (host.size() > suffix.size() && host.ends_with(suffix))
      return host.substr(0, host.size() - suffix.size());
  }
  return {};
}

Outcome<Place> find_place(const base::HttpRequestHead& head, const Target& target,
                          const HostOptions& options) {
  Place place;
  place.bucket = bucket_of_host(head, options);
  std::string_view rest = std::string_view(target.path).substr(1);
  if (place.bucket.empty()) {
    const auto slash = rest.find('/');
    auto bucket = base::percent_decode(rest.substr(0, slash), /*plus_is_space=*/false);
    if (!bucket) return fault(ErrorCode::invalid_uri);
    place.bucket = std::move(*bucket);
    rest = slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1);
    if (place.bucket.empty() && !rest.empty())
      return fault(ErrorCode::invalid_bucket_name, {{"BucketName", ""}});
  }
  auto key = base::percent_decode(rest, /*plus_is_space=*/false);
  if (!key) return fault(ErrorCode::invalid_uri);
  place.key = std::move(*key);
  place.level = place.bucket.empty() ? Level::service : place.key.empty() ? Level::bucket : Level::object;
  return place;
}

/// Parameters that say nothing about the operation: those of signatures, and x- ones, which S3 leaves to its
/// clients (x-id).
bool is_neutral(std::string_view name) {
  constexpr std::array<std::string_view, 3> kSignatureV2{"AWSAccessKeyId", "Signature", "Expires"};
  return starts_with_ignoring_case(name, "x-") || std::ranges::find(kSignatureV2, name) != kSignatureV2.end();
}

bool lists(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const auto space = words.find(' ');
    if (words.substr(0, space) == word) return true;
    words = space == std::string_view::npos ? std::string_view{} : words.substr(space + 1);
  }
  return false;
}

Fault method_not_allowed(Level level, std::string_view method, std::string_view parameter,
                         std::string allow) {
  constexpr std::array<std::string_view, 3> kTypes{"SERVICE", "BUCKET", "OBJECT"};
  std::string type(parameter.empty() ? kTypes[static_cast<std::size_t>(level)] : parameter);
  for (char& c : type) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  Fault refused = fault(ErrorCode::method_not_allowed,
                        {{"Method", std::string(method)}, {"ResourceType", std::move(type)}});
  refused.headers.add("Allow", std::move(allow));
  return refused;
}

template <class Rows, class Matches>
std::string methods_of(const Rows& rows, Matches matches) {
  std::string allow;
  for (const auto& row : rows) {
    if (!matches(row) || lists(allow, row.method)) continue;
    if (!allow.empty()) allow += ' ';
    allow += row.method;
  }
  std::string joined;
  for (const char c : allow) joined += c == ' ' ? std::string(", ") : std::string(1, c);
  return joined;
}

/// The operation of a sub-resource that S3 has and this gateway has not, if the query names one.
Outcome<std::optional<Operation>> find_subresource(Level level, std::string_view method, const Query& query) {
  for (const Subresource& row : kSubresources) {
    if (row.level != level || !find(query, row.parameter)) continue;
    const auto is_same = [&](const Subresource& other) {
      return other.level == level && other.parameter == row.parameter;
    };
    const auto it = std::ranges::find_if(
        kSubresources, [&](const Subresource& other) { return is_same(other) && other.method == method; });
    if (it == kSubresources.end())
      return method_not_allowed(level, method, row.parameter, methods_of(kSubresources, is_same));
    if (!it->feature) {
      return std::optional<Operation>(Unsupported{
          .name = it->name, .action = it->action, .known = true, .detail = std::string(it->parameter)});
    }
    return std::optional<Operation>(DefaultConfiguration{.feature = *it->feature,
                                                         .name = it->name,
                                                         .action = it->action,
                                                         .of_object = level == Level::object});
  }
  return std::nullopt;
}

const Route* find_route(Level level, std::string_view method, const Query& query) {
  const auto it = std::ranges::find_if(kRoutes, [&](const Route& route) {
    return route.level == level && route.method == method &&
           (route.selector.empty() || find(query, route.selector));
  });
  return it == kRoutes.end() ? nullptr : &*it;
}

Outcome<void> check_odd_requests(const Place& place, std::string_view method, const Query& query,
                                 const base::HttpFields& fields) {
  if (place.level == Level::object) {
    for (const std::string_view name : {"uploads", "versions"}) {
      if (method == "GET" && find(query, name)) {
        return fault_saying(ErrorCode::invalid_request,
                            "Key is not expected for the GET method ?" + std::string(name) + " subresource");
      }
    }
  }
  if (const auto source = fields.get("x-amz-copy-source"); source && method != "PUT") {
    return invalid_argument("You can only specify a copy source header for copy requests.",
                            "x-amz-copy-source", std::string(*source));
  }
  return {};
}

Outcome<Operation> route(const Place& place, std::string_view method, const Query& query,
                         const base::HttpFields& fields) {
  if (method == "OPTIONS")
    return Operation(
        Unsupported{.name = "PreflightRequest", .action = {}, .known = true, .detail = "OPTIONS"});
  TRY_VOID(check_odd_requests(place, method, query, fields));
  TRY(auto subresource, find_subresource(place.level, method, query));
  if (subresource) return std::move(*subresource);
  const Route* found = find_route(place.level, method, query);
  if (found == nullptr) {
    return method_not_allowed(place.level, method, {}, methods_of(kRoutes, [&](const Route& row) {
                                return row.level == place.level && row.selector.empty();
                              }));
  }
  for (const QueryParameter& parameter : query) {
    if (parameter.name == found->selector || is_neutral(parameter.name) ||
        lists(found->parameters, parameter.name))
      continue;
    return Operation(Unsupported{.name = "Unknown", .action = {}, .known = false, .detail = parameter.name});
  }
  TRY_VOID(refuse_unsupported_headers(fields));
  return found->build({.query = query, .fields = fields, .bucket = place.bucket, .key = place.key});
}

RdmaOffer find_offer(const base::HttpFields& fields) {
  RdmaOffer offer;
  for (const std::string_view name : kRdmaTokenHeaders) {
    const auto token = fields.get(name);
    if (!token) continue;
    offer = {.header = std::string(name), .token = std::string(trim(*token)), .mode = {}, .agent = {}};
    break;
  }
  offer.mode = trim(fields.get_or("x-amz-rdma-mode", ""));
  offer.agent = trim(fields.get_or("x-amz-rdma-agent", ""));
  return offer;
}

/// Presigning clients move x-amz-* headers into the query. They count as headers, but for those of the
/// signature, of RDMA, and the checksums, which S3 ignores there (a client that presigns has no body to
/// compute them from).
bool is_moved_header(std::string_view lower_name) {
  if (!lower_name.starts_with("x-amz-")) return false;
  constexpr std::array<std::string_view, 11> kNot{"x-amz-algorithm",
                                                  "x-amz-credential",
                                                  "x-amz-date",
                                                  "x-amz-expires",
                                                  "x-amz-signedheaders",
                                                  "x-amz-signature",
                                                  "x-amz-security-token",
                                                  "x-amz-content-sha256",
                                                  "x-amz-sdk-checksum-algorithm",
                                                  "x-amz-user-agent",
                                                  "x-amz-decoded-content-length"};
  return std::ranges::find(kNot, lower_name) == kNot.end() && !lower_name.starts_with("x-amz-checksum-") &&
         !lower_name.starts_with("x-amz-rdma-") && lower_name != "x-amz-trailer";
}

Outcome<std::optional<base::HttpFields>> with_moved_headers(const base::HttpRequestHead& head,
                                                            const Query& query) {
  std::optional<base::HttpFields> merged;
  for (const QueryParameter& parameter : query) {
    std::string name = lower(parameter.name);
    if (!is_moved_header(name) || head.fields.contains(name)) continue;
    if (std::ranges::any_of(parameter.value,
                            [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; })) {
      return invalid_argument("The value holds characters that a header cannot", parameter.name, "");
    }
    if (!merged) merged = head.fields;
    merged->add(std::move(name), parameter.value);
  }
  return merged;
}

/// An aws-chunked body is an object's or a part's, nothing else.
Outcome<void> check_streaming(const base::HttpRequestHead& head, const Operation& operation) {
  if (!head.fields.get_or("x-amz-content-sha256", "").starts_with("STREAMING-")) return {};
  if (operation_row(operation).body == BodyKind::object) return {};
  return fault_saying(ErrorCode::invalid_request,
                      "This operation does not take the given x-amz-content-sha256 value.");
}

std::optional<std::string> text_of(const base::HttpFields& fields, std::string_view name) {
  const auto value = fields.get(name);
  return value ? std::optional(std::string(trim(*value))) : std::nullopt;
}

}  // namespace

Outcome<Request> parse_request(const base::HttpRequestHead& head, const HostOptions& options) {
  TRY(auto target, parse_target(head.target));
  Request request;
  if (target.path == "/.well-known/reelway" && head.method == "GET") {
    request.operation = WellKnown{};
    request.query = std::move(target.query);
    return request;
  }
  TRY(auto place, find_place(head, target, options));
  TRY(const auto merged, with_moved_headers(head, target.query));
  TRY(request.operation, route(place, head.method, target.query, merged ? *merged : head.fields));
  TRY_VOID(check_streaming(head, request.operation));
  if (place.level != Level::service) TRY_VOID(check_bucket_name(place.bucket));
  if (place.level == Level::object) TRY_VOID(check_key(place.key));
  request.bucket = std::move(place.bucket);
  request.key = std::move(place.key);
  request.query = std::move(target.query);
  request.rdma = find_offer(head.fields);
  request.expected_bucket_owner = text_of(head.fields, "x-amz-expected-bucket-owner");
  request.source_expected_bucket_owner = text_of(head.fields, "x-amz-source-expected-bucket-owner");
  return request;
}

Outcome<std::uint64_t> object_length(const base::HttpRequestHead& head) {
  std::optional<std::uint64_t> length = head.content_length;
  if (head.fields.get_or("x-amz-content-sha256", "").starts_with("STREAMING-")) {
    const auto decoded = head.fields.get("x-amz-decoded-content-length");
    if (!decoded) return fault(ErrorCode::missing_content_length);
    const auto number = base::parse_decimal(trim(*decoded));
    if (!number) {
      return invalid_argument("The decoded length is not a number", "x-amz-decoded-content-length",
                              std::string(*decoded));
    }
    length = *number;
  }
  if (!length) return fault(ErrorCode::missing_content_length);
  if (*length > kObjectBytesMax) {
    return fault(ErrorCode::entity_too_large, {{"ProposedSize", std::to_string(*length)},
                                               {"MaxSizeAllowed", std::to_string(kObjectBytesMax)}});
  }
  return *length;
}

}  // namespace reelway::s3
