#pragma once
// What an S3 answer to a request with an x-amz-rdma-token means: pure. Strict, because a wrong belief here is
// lost data: an answer moved the bytes only when status and reply agree, the byte count is there and fits,
// and the body is empty. The rules are those of docs/rdma.md, from the client's side.

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/http_head.h"
#include "base/result.h"

namespace reelway::client {

enum class Verdict : std::uint8_t {
  moved,     ///< the bytes went through the window
  in_band,   ///< GET: the body is the object; the window was not used
  declined,  ///< send the request again without the token
  ignored,   ///< PUT: the server does not know the header, and has stored an empty object
  failed,    ///< an error that has nothing to do with the token, or the transfer failed
};

struct Judgement {
  Verdict verdict = Verdict::failed;
  std::uint64_t bytes = 0;  ///< of moved
};

/// data_loss: the answer contradicts itself, so that nobody can tell where the bytes are.
base::Result<Judgement> judge_get(const base::HttpResponseHead& head, std::uint64_t body_bytes,
                                  std::uint64_t window_bytes);
base::Result<Judgement> judge_put(const base::HttpResponseHead& head, std::uint64_t window_bytes);

/// The checksum that the server took of the bytes it placed, when it told: either of the two header forms.
base::Result<std::optional<std::uint64_t>> told_crc64nvme(const base::HttpFields& fields);

}  // namespace reelway::client
