#pragma once
// One line per request, and its meters. A line names no key, secret, token or signature; the query is left
// out because presigned URLs carry all of them.

#include <string>
#include <string_view>

#include "gateway/gateway.h"

namespace reelway::gateway {

struct AccessRecord {
  std::string request_id;
  base::SteadyPoint started{};
  std::string_view operation = "Unknown";
  std::string bucket;
  std::string key;
  std::string requester;
  std::string_view error_code;

  void take(const s3::Request& request, const iam::Principal& principal);
};

/// `1.2.3.4 PutObject /bucket/key 200 - 0 bytes 12345 us request-id requester` and so on: fields in a fixed
/// order, "-" for nothing, names percent-encoded.
std::string access_line(const AccessRecord& record, const http::Exchange& exchange, base::Duration took);
void write_access(const GatewayParts& parts, const http::Exchange& exchange, const AccessRecord& record);

}  // namespace reelway::gateway
