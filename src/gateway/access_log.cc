#include "gateway/access_log.h"

#include <fmt/format.h>

#include "base/encoding.h"

namespace reelway::gateway {

void AccessRecord::take(const s3::Request& request, const iam::Principal& principal) {
  operation = s3::operation_row(request.operation).name;
  bucket = request.bucket;
  key = request.key;
  requester = principal.display_name;
}

std::string access_line(const AccessRecord& record, const http::Exchange& exchange, base::Duration took) {
  const auto or_dash = [](std::string_view text) { return text.empty() ? std::string_view{"-"} : text; };
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
  std::string path = record.bucket.empty() ? "-" : "/" + record.bucket;
  if (!record.key.empty()) path += "/" + base::percent_encode(record.key, true);
  return fmt::format("{} {} {} {} {} {} bytes={} us={} id={}", exchange.peer().address,
                     or_dash(record.requester), record.operation, path, exchange.status_sent(),
                     or_dash(record.error_code), exchange.bytes_sent(), us, record.request_id);
}

void write_access(const GatewayParts& parts, const http::Exchange& exchange, const AccessRecord& record) {
  const base::Duration took = parts.clock.steady_now() - record.started;
  parts.log.write(base::LogLevel::info, "access", access_line(record, exchange, took));
  parts.meter.count(fmt::format("reelway_requests_total{{operation=\"{}\",status=\"{}\"}}", record.operation,
                                exchange.status_sent()));
  parts.meter.observe(fmt::format("reelway_request_seconds{{operation=\"{}\"}}", record.operation),
                      std::chrono::duration<double>(took).count());
  parts.meter.count("reelway_response_bytes_total", static_cast<double>(exchange.bytes_sent()));
}

}  // namespace reelway::gateway
