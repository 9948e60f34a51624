#include "rdma/reply.h"

#include <array>

#include "base/bytes.h"
#include "base/encoding.h"

namespace reelway::rdma {
namespace {

std::string crc_text(std::uint64_t crc) {
  std::array<std::byte, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(crc >> (56 - 8 * i));
  return base::to_base64(bytes);
}

Answer moved(int status, std::uint64_t bytes, std::optional<std::uint64_t> crc64nvme) {
  Answer answer{.status = status, .fields = {}, .error_code = {}, .error_message = {}};
  answer.fields.set(kReplyHeader, std::to_string(status));
  answer.fields.set(kBytesHeader, std::to_string(bytes));
  if (crc64nvme) {
    const std::string text = crc_text(*crc64nvme);
    answer.fields.set(kChecksumHeader, "CRC64NVME " + text);
    answer.fields.set(kChecksumCrc64Header, text);
  }
  return answer;
}

Answer declined(int status, DeclineReason reason) {
  Answer answer{.status = status, .fields = {}, .error_code = {}, .error_message = {}};
  answer.fields.set(kReplyHeader, "501");
  answer.fields.set(kDeclineHeader, std::string(to_string(reason)));
  return answer;
}

Answer declined_with_error(DeclineReason reason) {
  Answer answer = declined(501, reason);
  answer.error_code = "NotImplemented";
  answer.error_message =
      "The RDMA transfer that the request offers cannot be served here; send the request without it.";
  return answer;
}

Answer error(int status, std::string_view code, std::string_view message) {
  return {.status = status, .fields = {}, .error_code = code, .error_message = message};
}

}  // namespace

std::string_view to_string(DeclineReason reason) {
  switch (reason) {
    case DeclineReason::disabled:
      return "disabled";
    case DeclineReason::token_form:
      return "token-form";
    case DeclineReason::fabric:
      return "fabric";
    case DeclineReason::policy:
      return "policy";
    case DeclineReason::busy:
      return "busy";
    case DeclineReason::size:
      return "size";
  }
  return "unknown";
}

Answer get_moved(bool partial, std::uint64_t bytes, std::optional<std::uint64_t> crc64nvme) {
  return moved(partial ? 206 : 200, bytes, crc64nvme);
}

Answer get_declined(bool partial, DeclineReason reason, bool required) {
  if (required) return declined_with_error(reason);
  Answer answer = declined(partial ? 206 : 200, reason);
  answer.body_in_band = true;
  return answer;
}

Answer put_stored(std::uint64_t bytes, std::optional<std::uint64_t> crc64nvme) {
  return moved(200, bytes, crc64nvme);
}

Answer put_declined(DeclineReason reason) { return declined_with_error(reason); }

Answer malformed_token() { return error(400, "InvalidRDMAToken", "The RDMA token is not well formed."); }

Answer transfer_failed() { return error(500, "RDMATransferFailed", "The RDMA transfer failed."); }

Answer unsigned_token() {
  return error(403, "AccessDenied", "The signature must cover every x-amz-rdma- header of the request.");
}

Answer token_with_body() {
  return error(400, "InvalidRequest", "A request that offers an RDMA window must not have a body.");
}

bool rdma_required(const base::HttpFields& request) {
  return base::equals_ignoring_case(request.get_or(kModeHeader, ""), "require");
}

}  // namespace reelway::rdma
