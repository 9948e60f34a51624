#pragma once
// A client for any S3 endpoint (path style) over one http::Client: SigV4 signing, retries with backoff on
// 429, 5xx and broken connections, error documents turned into base::Error. call() is the raw form: any
// signed request, extra headers included, any answer; the other calls are built on it. Bytes go up from a
// Content (read at any offset, so that parts and retries need no memory of their own) and come down into a
// Sink. Errors: not_found (bucket: scope library; key: scope object), access_denied, precondition_failed,
// not_resident, already_exists, not_empty, out_of_range, unsupported, busy, unavailable, checksum_mismatch
// (bytes that came differ from their declared checksum).

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "http/client.h"
#include "s3/request.h"
#include "s3/sigv4.h"
#include "s3/xml.h"

namespace reelway::s3client {

struct Options {
  http::ClientOptions http;
  s3::Credentials credentials;  ///< empty access key: anonymous
  unsigned attempts = 4;        ///< in all
  base::Duration backoff_first = std::chrono::milliseconds{100};
  base::Duration backoff_max = std::chrono::seconds{5};
  std::uint64_t multipart_threshold = 64 * base::kMiB;
  std::uint64_t part_bytes = 16 * base::kMiB;  ///< grows when 10 000 parts would not do
  std::size_t parts_at_once = 4;
  std::size_t read_bytes = 256 * base::kKiB;  ///< buffer of a running request
};

/// Bytes to send. read_at is called by several coroutines at once.
class Content {
 public:
  virtual ~Content() = default;
  virtual std::uint64_t size() const = 0;
  /// Fills a prefix (not empty while offset < size()).
  virtual async::Task<std::size_t> read_at(std::uint64_t offset, base::MutableBytes into) = 0;
};
class MemoryContent final : public Content {
 public:
  explicit MemoryContent(base::ByteView bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  async::Task<std::size_t> read_at(std::uint64_t offset, base::MutableBytes into) override;

 private:
  base::ByteView bytes_;
};

/// Where a body goes. `offset` counts from the start of the body; after a retry it starts over at 0.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual async::Task<void> write(std::uint64_t offset, base::ByteView bytes) = 0;
};
class MemorySink final : public Sink {
 public:
  async::Task<void> write(std::uint64_t offset, base::ByteView bytes) override;
  const base::Bytes& bytes() const { return bytes_; }

 private:
  base::Bytes bytes_;
};

struct Call {
  std::string method = "GET";
  std::string bucket;  ///< empty: the service
  std::string key;
  s3::Query query;
  base::HttpFields headers;       ///< all of them that are x-amz-* are signed
  std::string body;               ///< small bodies (XML); its SHA-256 is signed
  Content* content = nullptr;     ///< instead of `body`
  base::ByteRange content_range;  ///< the part of `content` to send
  bool trailer_checksum =
      false;  ///< send `content` as STREAMING-UNSIGNED-PAYLOAD-TRAILER with CRC64NVME; else UNSIGNED-PAYLOAD
  Sink* sink = nullptr;   ///< takes the body of a 2xx answer
  unsigned attempts = 0;  ///< 0: as the options say. Use 1 for a request that carries an RDMA token.
};
struct Reply {
  base::HttpResponseHead head;
  std::string body;  ///< when there was no sink, or for an error; at most 16 MiB
  std::uint64_t sink_bytes = 0;
  bool ok() const { return head.status / 100 == 2; }
};
/// What an answer that is not ok() means.
base::Error to_error(const Reply& reply, const Call& call);

struct PutOptions {
  base::HttpFields headers;  ///< content-type, x-amz-meta-*, x-amz-storage-class, if-none-match, ...
  bool trailer_checksum = true;
};
struct PutResult {
  std::string etag;  ///< without quotes
  base::HttpResponseHead head;
};
struct GetOptions {
  std::optional<s3::Range> range;
  base::HttpFields headers;
  unsigned attempts = 0;
};
struct GetResult {
  std::uint64_t bytes = 0;  ///< written to the sink
  base::HttpResponseHead head;
};
struct HeadResult {
  std::uint64_t size = 0;
  std::string etag;
  std::string storage_class = "STANDARD";
  std::optional<std::string> restore;  ///< x-amz-restore
  base::HttpResponseHead head;
};
struct ListOptions {
  std::string prefix;
  std::string delimiter;
  std::string continuation_token;
  std::string start_after;
  std::uint32_t max_keys = s3::kPageMax;
};
struct ListResult {
  std::vector<s3::ObjectEntry> objects;
  std::vector<std::string> common_prefixes;
  bool truncated = false;
  std::string next_continuation_token;
};
struct RestoreOptions {
  std::uint32_t days = 1;
  std::string tier = "Standard";
};
/// Answer of restore(): a 202 and a 200.
enum class RestoreOutcome : std::uint8_t { started, already_restored };

class Client {
 public:
  static base::Result<std::unique_ptr<Client>> create(async::Executor executor, Options options,
                                                      const base::Clock& clock, base::Rng& rng);
  virtual ~Client() = default;

  /// The last attempt's answer, whatever its status; an Error only when none came.
  virtual async::Task<Reply> call(Call call) = 0;

  /// Above the threshold by multipart upload, which is aborted on failure.
  virtual async::Task<PutResult> put(std::string bucket, std::string key, Content& content,
                                     PutOptions options) = 0;
  virtual async::Task<GetResult> get(std::string bucket, std::string key, Sink& sink, GetOptions options) = 0;
  virtual async::Task<HeadResult> head(std::string bucket, std::string key) = 0;
  virtual async::Task<void> remove(std::string bucket, std::string key) = 0;
  virtual async::Task<ListResult> list(std::string bucket, ListOptions options) = 0;
  virtual async::Task<std::vector<s3::BucketEntry>> list_buckets() = 0;
  /// Success when the bucket is the caller's already.
  virtual async::Task<void> create_bucket(std::string bucket) = 0;
  virtual async::Task<void> delete_bucket(std::string bucket) = 0;
  virtual async::Task<RestoreOutcome> restore(std::string bucket, std::string key,
                                              RestoreOptions options) = 0;
  /// The document of GET /.well-known/reelway; unsupported when the server is no Reelway.
  virtual async::Task<std::string> well_known() = 0;
};

}  // namespace reelway::s3client
