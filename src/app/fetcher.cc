#include "app/fetcher.h"

#include <algorithm>

namespace reelway::app {

namespace {

base::Error changed() {
  return base::fail(base::Code::precondition_failed, "it changed while it was fetched");
}

class HttpFetcher final : public Fetcher {
 public:
  HttpFetcher(s3client::Client& client, std::string bucket) : client_(client), bucket_(std::move(bucket)) {}
  async::Task<void> fetch(std::string key, std::uint64_t size, s3client::Sink& sink) override {
    CO_TRY(const auto got, co_await client_.get(bucket_, std::move(key), sink, {}));
    if (got.bytes != size) co_return changed();
    co_return base::Result<void>{};
  }
  std::string plane() const override { return "http"; }

 private:
  s3client::Client& client_;
  const std::string bucket_;
};

class PlaneFetcher final : public Fetcher {
 public:
  PlaneFetcher(std::unique_ptr<SlotPool> slots, s3client::Client& control, const std::string& bucket)
      : slots_(std::move(slots)), in_band_(control, bucket), bucket_(bucket) {}

  async::Task<void> fetch(std::string key, std::uint64_t size, s3client::Sink& sink) override {
    // Nobody registers nothing: empty objects travel in band.
    if (size == 0) co_return co_await in_band_.fetch(std::move(key), size, sink);
    CO_TRY(const auto slot, slots_->take());
    std::string etag;
    for (std::uint64_t offset = 0; offset < size;) {
      const std::uint64_t length = std::min(kSlotBytes, size - offset);
      std::optional<s3::Range> range;
      if (length < size) range = s3::Range{.first = offset, .last = offset + length - 1};
      const client::Slice slice{.offset = 0, .length = length};
      CO_TRY(const auto moved, co_await slots_->client().get(bucket_, key, *slot->memory, slice, range));
      if (moved.bytes != length || (!etag.empty() && etag != moved.etag)) co_return changed();
      etag = moved.etag;
      CO_TRY_VOID(co_await sink.write(offset, base::ByteView(slot->bytes.get(), length)));
      offset += length;
    }
    co_return base::Result<void>{};
  }
  std::string plane() const override { return slots_->client().plane(); }

 private:
  std::unique_ptr<SlotPool> slots_;
  HttpFetcher in_band_;
  const std::string bucket_;
};

}  // namespace

async::Task<std::unique_ptr<Fetcher>> make_fetcher(s3client::Client& client, base::Rng& rng,
                                                   PlaneOptions options) {
  if (options.rdma == "off") co_return std::make_unique<HttpFetcher>(client, std::move(options.bucket));
  const std::string bucket = options.bucket;
  CO_TRY(auto slots, co_await SlotPool::create(client, rng, std::move(options)));
  co_return std::make_unique<PlaneFetcher>(std::move(slots), client, bucket);
}

}  // namespace reelway::app
