#include "client/reply.h"

#include <string_view>

#include "base/encoding.h"
#include "rdma/reply.h"

namespace reelway::client {
namespace {

using base::Code;
using base::Result;

base::Error contradiction(std::string detail) {
  return base::fail(Code::data_loss,
                    "the answer to a request with an RDMA token contradicts itself: " + std::move(detail));
}

Result<std::uint64_t> moved_bytes(const base::HttpFields& fields) {
  const auto bytes = base::parse_decimal(fields.get_or(rdma::kBytesHeader, ""));
  if (!bytes) return contradiction("no byte count");
  return *bytes;
}

/// "bytes 5-9/20" has 5.
Result<std::uint64_t> content_range_length(std::string_view text) {
  const auto dash = text.find('-');
  const auto slash = text.find('/');
  if (!text.starts_with("bytes ") || dash == text.npos || slash == text.npos || slash < dash) {
    return contradiction("206 without a Content-Range");
  }
  const auto first = base::parse_decimal(text.substr(6, dash - 6));
  const auto last = base::parse_decimal(text.substr(dash + 1, slash - dash - 1));
  if (!first || !last || *last < *first) return contradiction("a broken Content-Range");
  return *last - *first + 1;
}

}  // namespace

Result<Judgement> judge_get(const base::HttpResponseHead& head, std::uint64_t body_bytes,
                            std::uint64_t window_bytes) {
  const auto reply = head.fields.get(rdma::kReplyHeader);
  if (head.status != 200 && head.status != 206) {
    return Judgement{.verdict = head.status == 501 || reply == "501" ? Verdict::declined : Verdict::failed};
  }
  if (!reply || *reply == "501") return Judgement{.verdict = Verdict::in_band};
  if (*reply != std::to_string(head.status)) return contradiction("status and reply differ");
  if (body_bytes != 0) return contradiction("a body beside the window");
  TRY(const std::uint64_t bytes, moved_bytes(head.fields));
  if (bytes > window_bytes) return contradiction("more bytes than the window has");
  if (head.status == 206) {
    TRY(const std::uint64_t ranged, content_range_length(head.fields.get_or("content-range", "")));
    if (ranged != bytes) return contradiction("byte count and Content-Range differ");
  }
  return Judgement{.verdict = Verdict::moved, .bytes = bytes};
}

Result<Judgement> judge_put(const base::HttpResponseHead& head, std::uint64_t window_bytes) {
  const auto reply = head.fields.get(rdma::kReplyHeader);
  if (head.status == 501 || reply == "501") return Judgement{.verdict = Verdict::declined};
  if (head.status / 100 != 2) return Judgement{.verdict = Verdict::failed};
  if (!reply) return Judgement{.verdict = Verdict::ignored};
  if (*reply != "200" && *reply != "204") return contradiction("a reply that is no success");
  TRY(const std::uint64_t bytes, moved_bytes(head.fields));
  if (bytes != window_bytes) return contradiction("not all of the window was taken");
  if (head.fields.get_or("etag", "").empty()) return contradiction("no ETag");
  return Judgement{.verdict = Verdict::moved, .bytes = bytes};
}

Result<std::optional<std::uint64_t>> told_crc64nvme(const base::HttpFields& fields) {
  constexpr std::string_view kName = "CRC64NVME ";
  std::string_view text = fields.get_or(rdma::kChecksumCrc64Header, "");
  if (text.empty()) {
    text = fields.get_or(rdma::kChecksumHeader, "");
    if (!text.starts_with(kName)) return std::optional<std::uint64_t>();
    text.remove_prefix(kName.size());
  }
  const auto bytes = base::from_base64(text);
  if (!bytes || bytes->size() != 8) return contradiction("a broken checksum");
  TRY(const std::uint64_t crc, base::parse_hex_u64(base::to_hex(*bytes)));
  return std::optional(crc);
}

}  // namespace reelway::client
