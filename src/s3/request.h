#pragma once
// From a request's head to an Operation, before anything else is known of it: pure, no authentication, no
// body. Every fault it returns is the one S3 gives. The target is decoded once; '//', '.' and '..' in keys
// stay as they are. Source: Amazon S3 API Reference, "REST API", "Virtual hosting of buckets"; RFC 9110
// sections 5.6.7, 13, 14; facts of the RDMA headers in rdma/.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/http_head.h"
#include "s3/operation.h"

namespace reelway::s3 {

struct QueryParameter {
  std::string name;   ///< decoded
  std::string value;  ///< decoded; empty for "name" and "name="
};
using Query = std::vector<QueryParameter>;

struct Target {
  std::string path;            ///< as on the wire, percent-encoded, from the first '/' to before '?'
  std::string_view raw_query;  ///< points into the head's target
  Query query;
};
/// InvalidURI for a broken escape, a target that is not in origin form, or more than 100 parameters. '+' in a
/// query value is a space.
Outcome<Target> parse_target(std::string_view target);
/// The first of that name.
std::optional<std::string_view> find(const Query& query, std::string_view name);

/// Out-of-band offer of a request. `token` is neither parsed nor logged here; s3/sigv4.h refuses it when it
/// is not signed.
struct RdmaOffer {
  std::string header;  ///< lower-case name it came in: x-amz-rdma-token or an older one; empty: no offer
  std::string token;
  std::string mode;   ///< x-amz-rdma-mode
  std::string agent;  ///< x-amz-rdma-agent
  explicit operator bool() const { return !header.empty(); }
};

struct Request {
  Operation operation;
  std::string bucket;  ///< empty for ListBuckets and WellKnown
  std::string key;
  Query query;
  RdmaOffer rdma;
  std::optional<std::string> expected_bucket_owner;
  std::optional<std::string> source_expected_bucket_owner;
};

struct HostOptions {
  /// "s3.example.com": then Host "bucket.s3.example.com" names the bucket; everything else is path style.
  std::vector<std::string> virtual_host_domains;
};

Outcome<Request> parse_request(const base::HttpRequestHead& head, const HostOptions& options = {});

/// Bytes of the object that a PutObject or UploadPart carries: x-amz-decoded-content-length when the body is
/// aws-chunked, else Content-Length. MissingContentLength, EntityTooLarge (more than kObjectBytesMax).
Outcome<std::uint64_t> object_length(const base::HttpRequestHead& head);

Outcome<void> check_bucket_name(std::string_view name);
/// Not empty, at most 1024 bytes, UTF-8, no NUL.
Outcome<void> check_key(std::string_view key);

/// "bytes=0-99"; absent (nullopt) when it is not of a form that S3 honours (several ranges, another unit):
/// then the whole object is meant.
std::optional<Range> parse_range(std::string_view text);
/// x-amz-copy-source-range: exactly bytes=first-last.
Outcome<Range> parse_copy_range(std::string_view text);
/// "/bucket/key?versionId=..." or without the slash, percent-encoded.
Outcome<CopySource> parse_copy_source(std::string_view text);
/// A list of ETags, quoted or not, weak ones by their value.
std::vector<std::string> parse_etag_list(std::string_view text);
/// IMF-fixdate, RFC 850 or asctime; nullopt for anything else.
std::optional<base::TimePoint> parse_http_date(std::string_view text);
/// "2026-11-30T16:43:45.123Z" (fraction optional).
std::optional<base::TimePoint> parse_iso8601(std::string_view text);

/// Opaque to clients, safe in a URL: the base64 of where the next page starts.
std::string encode_continuation_token(std::string_view start_after);
Outcome<std::string> decode_continuation_token(std::string_view token);

}  // namespace reelway::s3
