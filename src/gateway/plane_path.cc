#include "gateway/plane_path.h"

#include <fmt/format.h>

#include <array>

namespace reelway::gateway {

s3::Fault plane_fault(const rdma::Answer& answer) {
  constexpr std::array kCodes{s3::ErrorCode::not_implemented, s3::ErrorCode::invalid_rdma_token,
                              s3::ErrorCode::rdma_transfer_failed, s3::ErrorCode::access_denied,
                              s3::ErrorCode::invalid_request};
  s3::Fault fault = s3::fault(s3::ErrorCode::internal_error);
  for (const auto code : kCodes) {
    if (s3::error_row(code).name == answer.error_code)
      fault = s3::fault_saying(code, std::string(answer.error_message));
  }
  fault.headers = answer.fields;
  return fault;
}

void count_plane(const Call& call, std::string_view method, std::string_view outcome, std::uint64_t bytes) {
  auto& meter = call.parts().meter;
  meter.count(fmt::format("reelway_rdma_offers_total{{method=\"{}\",outcome=\"{}\"}}", method, outcome));
  if (bytes > 0)
    meter.count(fmt::format("reelway_rdma_bytes_total{{method=\"{}\"}}", method), static_cast<double>(bytes));
}

}  // namespace reelway::gateway
