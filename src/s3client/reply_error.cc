#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "s3client/client.h"

namespace reelway::s3client {

namespace {

using enum base::Code;

struct Meaning {
  std::string_view name;
  base::Code code;
  base::Scope scope = base::Scope::request;
  base::Retry retry = base::Retry::never;
};

constexpr std::array kByName{
    Meaning{"NoSuchBucket", not_found, base::Scope::library},
    Meaning{"NoSuchKey", not_found, base::Scope::object},
    Meaning{"NoSuchUpload", not_found, base::Scope::connection},
    Meaning{"NoSuchVersion", not_found, base::Scope::object},
    Meaning{"InvalidObjectState", not_resident, base::Scope::object},
    Meaning{"BucketAlreadyExists", already_exists, base::Scope::library},
    Meaning{"BucketAlreadyOwnedByYou", already_exists, base::Scope::library},
    Meaning{"BucketNotEmpty", not_empty, base::Scope::library},
    Meaning{"BadDigest", checksum_mismatch, base::Scope::object},
    Meaning{"XAmzContentSHA256Mismatch", checksum_mismatch, base::Scope::object},
    Meaning{"EntityTooLarge", too_large, base::Scope::object},
    Meaning{"InsufficientStorage", no_space, base::Scope::node},
    Meaning{"QuotaExceeded", no_space, base::Scope::library},
    Meaning{"RestoreAlreadyInProgress", busy, base::Scope::object, base::Retry::later},
    Meaning{"ConditionalRequestConflict", busy, base::Scope::object, base::Retry::later},
    Meaning{"OperationAborted", busy, base::Scope::object, base::Retry::later},
};

Meaning by_status(int status, bool has_key) {
  switch (status) {
    case 304:
      return {{}, not_modified, base::Scope::object};
    case 403:
      return {{}, access_denied};
    case 404:
      return {{}, not_found, has_key ? base::Scope::object : base::Scope::library};
    case 412:
      return {{}, precondition_failed, base::Scope::object};
    case 416:
      return {{}, out_of_range, base::Scope::object};
    case 429:
      return {{}, busy, base::Scope::node, base::Retry::later};
    case 501:
      return {{}, unsupported};
    case 503:
      return {{}, busy, base::Scope::node, base::Retry::later};
    case 507:
      return {{}, no_space, base::Scope::node};
    default:
      break;
  }
  if (status >= 500) return {{}, unavailable, base::Scope::node, base::Retry::later};
  return {{}, invalid_argument};
}

/// For answers that say nothing more than a number, as those to HEAD.
std::string_view advice(int status) {
  if (status == 400) return ": refused; is the region the server's?";
  if (status == 403) return ": access denied; are the keys set, and the server's?";
  if (status == 404) return ": no such bucket or key";
  return {};
}

}  // namespace

base::Error to_error(const Reply& reply, const Call& call) {
  const auto document = s3::parse_error_document(reply.body);
  const std::string name = document ? document->code : std::string();
  const auto it = std::ranges::find(kByName, std::string_view(name), &Meaning::name);
  const Meaning meaning = it != kByName.end() ? *it : by_status(reply.head.status, !call.key.empty());
  std::string detail = fmt::format("{} /{}/{}: {}", call.method, call.bucket, call.key, reply.head.status);
  detail += document ? fmt::format(" {}: {}", document->code, document->message)
                     : std::string(advice(reply.head.status));
  if (const auto id = reply.head.fields.get("x-amz-request-id")) detail += fmt::format(" (request {})", *id);
  return base::fail(meaning.code, std::move(detail), meaning.scope, meaning.retry);
}

}  // namespace reelway::s3client
