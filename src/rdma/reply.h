#pragma once
// How an HTTP answer tells a client what became of the window it offered: pure functions from outcome to
// status and header fields. The rules satisfy every known client at once: status and x-amz-rdma-reply agree
// (200/200, 206/206), the byte count is exact, an accepted answer has no body, a declined GET carries the
// object in its body, a declined PUT is HTTP 501 and stores nothing. Sources: the S3 RDMA protocol text v1.0
// (NVIDIA, 2025-10), and what the public clients check; docs/rdma.md lists them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/http_head.h"

namespace reelway::rdma {

inline constexpr std::string_view kTokenHeader = "x-amz-rdma-token";
inline constexpr std::string_view kReplyHeader = "x-amz-rdma-reply";
inline constexpr std::string_view kBytesHeader = "x-amz-rdma-bytes-transferred";
inline constexpr std::string_view kChecksumHeader =
    "x-amz-rdma-checksum";  ///< "CRC64NVME <base64>", of exactly the bytes placed
inline constexpr std::string_view kChecksumCrc64Header = "x-amz-rdma-checksum-crc64nvme";
inline constexpr std::string_view kDeclineHeader = "x-amz-rdma-decline";  ///< why, in one word
inline constexpr std::string_view kModeHeader =
    "x-amz-rdma-mode";  ///< request: "require" forbids a GET to fall back in band

enum class DeclineReason : std::uint8_t {
  disabled,    ///< no plane is open
  token_form,  ///< a well-formed token of a form or provider that is not served here
  fabric,      ///< the peer cannot be reached
  policy,      ///< the peer may not be served (shm of another user)
  busy,        ///< no chunks, no room for a peer, or the window is in use
  size,        ///< the object is larger than the window
};
std::string_view to_string(DeclineReason reason);  ///< "disabled", "token-form", ...

/// What to send. `fields` are to be set over the operation's own (ETag, Last-Modified, x-amz-meta-* and so on
/// stay).
struct Answer {
  int status = 200;
  base::HttpFields fields;
  std::string_view error_code;  ///< S3 error code of the XML document to send; empty: not an error
  std::string_view error_message;
  bool body_in_band = false;  ///< send the object in the HTTP body; otherwise a success has Content-Length 0
};

/// Bytes are in the client's memory. `partial`: a Range or partNumber was asked for (206; the caller adds
/// Content-Range). Zero bytes is a success.
Answer get_moved(bool partial, std::uint64_t bytes, std::optional<std::uint64_t> crc64nvme);
/// In band with reply 501; with `required` (kModeHeader said so) an error 501 instead.
Answer get_declined(bool partial, DeclineReason reason, bool required);
/// The object or part is stored; the caller adds ETag.
Answer put_stored(std::uint64_t bytes, std::optional<std::uint64_t> crc64nvme);
/// Nothing is stored; no ETag.
Answer put_declined(DeclineReason reason);
/// 400 InvalidRDMAToken, no reply field.
Answer malformed_token();
/// 500 RDMATransferFailed, to be sent only after the fence.
Answer transfer_failed();
/// 403: a token that the signature does not cover could have been exchanged on the way.
Answer unsigned_token();
/// 400: a request offers a window or a body, not both.
Answer token_with_body();

/// True when the request says "x-amz-rdma-mode: require".
bool rdma_required(const base::HttpFields& request);

}  // namespace reelway::rdma
