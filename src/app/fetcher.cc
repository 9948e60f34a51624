#include "app/fetcher.h"

namespace reelway::app {

namespace {

class HttpFetcher final : public Fetcher {
 public:
  HttpFetcher(s3client::Client& client, std::string bucket) : client_(client), bucket_(std::move(bucket)) {}
  async::Task<void> fetch(std::string key, std::uint64_t size, s3client::Sink& sink) override {
    CO_TRY(const auto got, co_await client_.get(bucket_, std::move(key), sink, {}));
    if (got.bytes != size)
      co_return base::fail(base::Code::precondition_failed, "it changed while it was fetched");
    co_return base::Result<void>{};
  }
  std::string plane() const override { return "http"; }
  async::Task<void> close() override { co_return base::Result<void>{}; }

 private:
  s3client::Client& client_;
  const std::string bucket_;
};

}  // namespace

async::Task<std::unique_ptr<Fetcher>> make_fetcher(s3client::Client& client, std::string bucket,
                                                   std::string rdma) {
  if (rdma == "require") co_return base::fail(base::Code::unsupported, "this build has no plane");
  co_return std::make_unique<HttpFetcher>(client, std::move(bucket));
}

}  // namespace reelway::app
