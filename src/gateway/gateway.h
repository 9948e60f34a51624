#pragma once
// The S3 gateway: one request in, one answer out. parse -> authenticate -> authorize (three pure steps before
// any side effect) -> choose the data path (HTTP body or plane) -> one handler per operation ->
// object::Store. It holds no state of a request between requests, so any gateway can go on with any multipart
// upload. Safe from several reactors at once. Errors become S3 documents in one place, and each answer
// carries the request id that the access log bears.

#include <string>

#include "async/gate.h"
#include "async/offload.h"
#include "base/buffer_pool.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "http/server.h"
#include "iam/accounts.h"
#include "object/tiered.h"
#include "rdma/planes.h"
#include "s3/request.h"
#include "s3/sigv4.h"
#include "transfer/upload.h"

namespace reelway::gateway {

struct GatewayOptions {
  std::string region = "us-east-1";
  s3::HostOptions hosts;
  transfer::EtagKind etag = transfer::EtagKind::md5;         ///< of what comes in an HTTP body
  transfer::EtagKind rdma_etag = transfer::EtagKind::crc64;  ///< of what comes over a plane
  base::Duration retry_after = std::chrono::seconds{5};      ///< told with 503 SlowDown
  base::Duration chunk_patience = std::chrono::seconds{5};   ///< wait for pool chunks before 503 SlowDown
  base::Duration keep_alive_interval =
      std::chrono::seconds{5};  ///< between the spaces of a slow CompleteMultipartUpload
  std::uint64_t small_object_bytes = 64 * base::kKiB;  ///< told to clients: below this a plane does not pay
};

/// What the gateway works with; all of it outlives the gateway.
struct GatewayParts {
  object::Store& store;
  const iam::Accounts& accounts;
  base::BufferPool& pool;
  async::BlockingPool& hash_pool;
  rdma::Planes& planes;
  const base::Clock& clock;
  base::Rng& rng;
  base::Log& log;
  base::Meter& meter;
  object::RecallQueue* recalls = nullptr;  ///< null: no archive
};

struct AccessRecord;
struct Reply;

class Gateway {
 public:
  Gateway(GatewayParts parts, GatewayOptions options);
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  /// The http::Handler of an S3 address.
  async::Task<void> handle(http::Exchange& exchange);
  /// Waits for what handlers left running apart from their request (a slow multipart completion whose client
  /// went away).
  async::Task<void> close();

 private:
  friend struct Call;
  async::Task<void> finish(http::Exchange& exchange, s3::Outcome<Reply> outcome, AccessRecord& record,
                           const s3::Request* request);

  GatewayParts parts_;
  GatewayOptions options_;
  std::string host_id_;
  base::SeededRng
      request_ids_;  ///< ids need not be secret, only different; a system call for each would cost
  s3::SigningKeyCache signing_keys_;
  async::Gate background_;
};

}  // namespace reelway::gateway
