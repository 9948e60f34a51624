#include "app/fetcher.h"

#include <algorithm>

#include "client/client.h"

namespace reelway::app {

namespace {

/// Larger objects come in ranges of this size.
constexpr std::uint64_t kSlotBytes = 16 * base::kMiB;

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

/// Registered memory for one fetch at a time.
struct Slot {
  std::unique_ptr<std::byte[]> bytes = std::make_unique_for_overwrite<std::byte[]>(kSlotBytes);
  std::unique_ptr<client::Memory> memory;
  bool taken = false;
};

class PlaneFetcher final : public Fetcher {
 public:
  PlaneFetcher(std::unique_ptr<client::Client> client, s3client::Client& control, std::string bucket)
      : client_(std::move(client)), in_band_(control, bucket), bucket_(std::move(bucket)) {}

  base::Result<void> register_slots(std::size_t count) {
    slots_.resize(count);
    for (auto& slot : slots_) {
      TRY(slot.memory, client_->register_memory({slot.bytes.get(), kSlotBytes}));
    }
    return {};
  }

  async::Task<void> fetch(std::string key, std::uint64_t size, s3client::Sink& sink) override {
    // Nobody registers nothing: empty objects travel in band.
    if (size == 0) co_return co_await in_band_.fetch(std::move(key), size, sink);
    const auto free = std::ranges::find(slots_, false, &Slot::taken);
    if (free == slots_.end()) co_return base::fail(base::Code::busy, "more fetches than registered memory");
    free->taken = true;
    auto fetched = co_await fetch_into(*free, key, size, sink);
    free->taken = false;
    co_return fetched;
  }
  std::string plane() const override { return client_->plane(); }

 private:
  async::Task<void> fetch_into(Slot& slot, const std::string& key, std::uint64_t size, s3client::Sink& sink) {
    std::string etag;
    for (std::uint64_t offset = 0; offset < size;) {
      const std::uint64_t length = std::min(kSlotBytes, size - offset);
      std::optional<s3::Range> range;
      if (length < size) range = s3::Range{.first = offset, .last = offset + length - 1};
      CO_TRY(const auto moved,
             co_await client_->get(bucket_, key, *slot.memory, {.offset = 0, .length = length}, range));
      if (moved.bytes != length || (!etag.empty() && etag != moved.etag)) co_return changed();
      etag = moved.etag;
      CO_TRY_VOID(co_await sink.write(offset, base::ByteView(slot.bytes.get(), length)));
      offset += length;
    }
    co_return base::Result<void>{};
  }

  std::unique_ptr<client::Client> client_;
  HttpFetcher in_band_;
  const std::string bucket_;
  std::vector<Slot> slots_;  // after the client, which their memory needs
};

}  // namespace

async::Task<std::unique_ptr<Fetcher>> make_fetcher(s3client::Client& client, base::Rng& rng,
                                                   FetcherOptions options) {
  if (options.rdma == "off") co_return std::make_unique<HttpFetcher>(client, std::move(options.bucket));
  client::Options client_options;
  client_options.rdma = options.rdma == "require" ? client::RdmaMode::required : client::RdmaMode::automatic;
  client_options.server_host = options.server_host;
  CO_TRY(auto plane_client, co_await client::Client::create(client, std::move(client_options), rng));
  auto fetcher = std::make_unique<PlaneFetcher>(std::move(plane_client), client, std::move(options.bucket));
  CO_TRY_VOID(fetcher->register_slots(std::max<std::size_t>(options.parallel, 1)));
  co_return fetcher;
}

}  // namespace reelway::app
