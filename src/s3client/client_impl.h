#pragma once
// The client behind client.h. Only for this room.

#include "async/timer.h"
#include "s3client/client.h"

namespace reelway::s3client {

class ClientImpl final : public Client {
 public:
  ClientImpl(async::Executor executor, Options options, std::unique_ptr<http::Client> transport,
             const base::Clock& clock, base::Rng& rng);

  async::Task<Reply> call(Call call) override;
  async::Task<PutResult> put(std::string bucket, std::string key, Content& content,
                             PutOptions options) override;
  async::Task<GetResult> get(std::string bucket, std::string key, Sink& sink, GetOptions options) override;
  async::Task<HeadResult> head(std::string bucket, std::string key) override;
  async::Task<void> remove(std::string bucket, std::string key) override;
  async::Task<ListResult> list(std::string bucket, ListOptions options) override;
  async::Task<std::vector<s3::BucketEntry>> list_buckets() override;
  async::Task<void> create_bucket(std::string bucket) override;
  async::Task<void> delete_bucket(std::string bucket) override;
  async::Task<RestoreOutcome> restore(std::string bucket, std::string key, RestoreOptions options) override;
  async::Task<std::string> well_known() override;

  async::Task<PutResult> put_whole(std::string bucket, std::string key, Content& content, PutOptions options);
  /// As call(), but an answer that is no success is an error.
  async::Task<Reply> succeed(Call call);
  const Options& options() const { return options_; }
  const async::Executor& executor() const { return executor_; }

 private:
  async::Task<Reply> attempt(const Call& call);
  async::Task<void> take_body(http::ClientResponse& response, const Call& call, Reply& reply);
  async::Task<std::uint64_t> pour(http::ClientResponse& response, Sink& sink);
  base::HttpRequestHead head_of(const Call& call);
  void authorize(base::HttpRequestHead& head, std::string_view payload_hash);
  async::Task<void> back_off(unsigned attempts_made);

  async::Executor executor_;
  Options options_;
  std::unique_ptr<http::Client> transport_;
  const base::Clock& clock_;
  base::Rng& rng_;
  async::SystemTimer timer_;
  s3::SigningKeyCache keys_{16};
  std::string host_;  ///< the Host field
};

/// Puts `content` by parts, several at once, and aborts the upload when one of them fails.
async::Task<PutResult> put_multipart(ClientImpl& client, std::string bucket, std::string key,
                                     Content& content, PutOptions options);

}  // namespace reelway::s3client
