// ListBuckets, ListObjects and ListObjectsV2.

#include <algorithm>

#include "gateway/call.h"
#include "gateway/convert.h"
#include "s3/xml.h"

namespace reelway::gateway {

namespace {

/// What v1 and v2 share.
struct Listing {
  const std::string& prefix;
  const std::string& delimiter;
  std::uint32_t max_keys;
  bool encode_url;
  bool restore_status;
};

struct Page {
  s3::ListResult result;
  std::string next;
};

async::net::awaitable<s3::Outcome<Page>> list_page(Call& call, const Listing& listing,
                                                   std::string start_after, bool with_owner) {
  Page page;
  page.result = {.bucket = call.request.bucket,
                 .prefix = listing.prefix,
                 .delimiter = listing.delimiter,
                 .max_keys = listing.max_keys,
                 .encode_url = listing.encode_url,
                 .truncated = false,
                 .objects = {},
                 .common_prefixes = {}};
  if (listing.max_keys == 0) {
    CO_TRY(const auto bucket, or_fault(call, co_await call.store().head_bucket(call.request.bucket)));
    co_return page;
  }
  object::ListRequest request{.bucket = call.request.bucket,
                              .prefix = listing.prefix,
                              .delimiter = listing.delimiter,
                              .start_after = std::move(start_after),
                              .count_max = std::min<std::size_t>(listing.max_keys, s3::kPageMax)};
  CO_TRY(auto found, or_fault(call, co_await call.store().list(std::move(request))));
  page.result.objects.reserve(found.objects.size());
  for (auto& info : found.objects) {
    page.result.objects.push_back(to_entry(info, listing.restore_status));
    if (with_owner) page.result.objects.back().owner = call.owner();
  }
  page.result.common_prefixes = std::move(found.common_prefixes);
  page.result.truncated = found.truncated;
  page.next = std::move(found.next_start_after);
  co_return page;
}

Reply listing_reply(const Call& call, std::string document) {
  Reply reply = call.xml(200, std::move(document));
  reply.head.fields.set("x-amz-bucket-region", call.options().region);
  return reply;
}

}  // namespace

ReplyTask handle(Call& call, const s3::ListBuckets& operation) {
  std::string after;
  if (!operation.continuation_token.empty()) {
    CO_TRY(after, s3::decode_continuation_token(operation.continuation_token));
  }
  CO_TRY(const auto buckets, or_fault(call, co_await call.store().list_buckets()));
  std::vector<s3::BucketEntry> shown;
  std::string next;
  for (const auto& bucket : buckets) {
    if (!bucket.name.starts_with(operation.prefix) || (!after.empty() && bucket.name <= after)) continue;
    if (shown.size() == operation.max_buckets) {
      next = s3::encode_continuation_token(shown.back().name);
      break;
    }
    shown.push_back({.name = bucket.name, .created = bucket.created});
  }
  co_return call.xml(200, s3::write_list_buckets(call.owner(), shown, operation.prefix, next));
}

ReplyTask handle(Call& call, const s3::ListObjects& operation) {
  const Listing listing{operation.prefix, operation.delimiter, operation.max_keys, operation.encode_url,
                        operation.restore_status};
  CO_TRY(const auto page, co_await list_page(call, listing, operation.marker, true));
  co_return listing_reply(call, s3::write_list_objects(page.result, operation.marker, page.next));
}

ReplyTask handle(Call& call, const s3::ListObjectsV2& operation) {
  std::string start_after = operation.start_after;
  if (!operation.continuation_token.empty()) {
    CO_TRY(start_after, s3::decode_continuation_token(operation.continuation_token));
  }
  const Listing listing{operation.prefix, operation.delimiter, operation.max_keys, operation.encode_url,
                        operation.restore_status};
  CO_TRY(const auto page, co_await list_page(call, listing, std::move(start_after), operation.fetch_owner));
  const s3::ListV2Extra extra{.start_after = operation.start_after,
                              .continuation_token = operation.continuation_token,
                              .next_continuation_token = page.result.truncated
                                                             ? s3::encode_continuation_token(page.next)
                                                             : std::string{}};
  co_return listing_reply(call, s3::write_list_objects_v2(page.result, extra));
}

}  // namespace reelway::gateway
