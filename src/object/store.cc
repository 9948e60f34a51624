#include "object/store.h"

#include <algorithm>
#include <numeric>

namespace reelway::object {

base::Result<base::ByteRange> resolve_range(const RangeRequest& range, std::uint64_t size) {
  const auto nothing = [] {
    return base::fail(base::Code::out_of_range, "nothing of the range exists", base::Scope::object);
  };
  if (!range.first) {
    const std::uint64_t suffix = std::min(range.last.value_or(0), size);
    if (suffix == 0) return nothing();
    return base::ByteRange{.offset = size - suffix, .length = suffix};
  }
  if (*range.first >= size) return nothing();
  const std::uint64_t last = std::min(range.last.value_or(size - 1), size - 1);
  if (last < *range.first) return nothing();
  return base::ByteRange{.offset = *range.first, .length = last - *range.first + 1};
}

base::Result<base::ByteRange> requested_range(const GetRequest& request, const ObjectInfo& info) {
  const base::ByteRange whole{.offset = 0, .length = info.size};
  if (request.range) return resolve_range(*request.range, info.size);
  if (!request.part_number) return whole;
  const std::size_t part = *request.part_number;
  if (info.part_sizes.empty() && part == 1) return whole;
  if (part == 0 || part > info.part_sizes.size())
    return base::fail(base::Code::out_of_range, "no such part", base::Scope::object);
  const auto first = info.part_sizes.begin();
  const auto it = first + static_cast<std::ptrdiff_t>(part - 1);
  return base::ByteRange{.offset = std::accumulate(first, it, std::uint64_t{0}), .length = *it};
}

base::Error bucket_not_found(const std::string& bucket) {
  return base::fail(base::Code::not_found, "no bucket " + bucket, base::Scope::library);
}

base::Error object_not_found(const ObjectName& name) {
  return base::fail(base::Code::not_found, "no object " + name.bucket + "/" + name.key, base::Scope::object);
}

base::Error upload_not_found(const std::string& upload_id) {
  return base::fail(base::Code::not_found, "no upload " + upload_id, base::Scope::connection);
}

bool is_bucket_not_found(const base::Error& error) {
  return error.code == base::Code::not_found && error.scope == base::Scope::library;
}

bool is_object_not_found(const base::Error& error) {
  return error.code == base::Code::not_found && error.scope == base::Scope::object;
}

bool is_upload_not_found(const base::Error& error) {
  return error.code == base::Code::not_found && error.scope == base::Scope::connection;
}

bool same_bytes(const PartInfo& a, const PartInfo& b) {
  return a.part_number == b.part_number && a.size == b.size && a.etag == b.etag && a.checksums == b.checksums;
}

}  // namespace reelway::object
