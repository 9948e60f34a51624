#pragma once
// The canonical request of SigV4 and what is computed from it. Only for this room.

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/http_head.h"
#include "s3/sigv4.h"

namespace reelway::s3 {

/// `payload_hash` is the last line. With `redacted`, values that must not be shown (RDMA tokens) are left
/// out.
Outcome<std::string> canonical_request(const base::HttpRequestHead& head,
                                       const std::vector<std::string>& signed_headers, bool presigned,
                                       std::string_view payload_hash, bool redacted);

std::string string_to_sign(std::string_view timestamp, std::string_view scope, std::string_view canonical);

/// 64 hex digits.
std::string signature_of(const SigningKey& key, std::string_view string_to_sign);

/// Equal, in a time that depends on the lengths alone.
bool equal_in_constant_time(std::string_view a, std::string_view b);

std::string sha256_hex(base::ByteView bytes);
/// The text of x-amz-content-sha256 for a payload.
std::string payload_text(const Payload& payload);

bool is_rdma_token_header(std::string_view name);

}  // namespace reelway::s3
