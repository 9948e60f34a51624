#include "app/registered.h"

#include <algorithm>

namespace reelway::app {

async::Task<std::unique_ptr<SlotPool>> SlotPool::create(s3client::Client& control, base::Rng& rng,
                                                        PlaneOptions options) {
  client::Options client_options;
  client_options.rdma = options.rdma == "require" ? client::RdmaMode::required : client::RdmaMode::automatic;
  client_options.server_host = options.server_host;
  auto pool = std::make_unique<SlotPool>();
  CO_TRY(pool->client_, co_await client::Client::create(control, std::move(client_options), rng));
  pool->slots_.resize(std::max<std::size_t>(options.parallel, 1));
  for (auto& slot : pool->slots_) {
    CO_TRY(slot.memory, pool->client_->register_memory({slot.bytes.get(), kSlotBytes}));
  }
  co_return pool;
}

base::Result<SlotPool::Lease> SlotPool::take() {
  const auto free = std::ranges::find(slots_, false, &Slot::taken);
  if (free == slots_.end()) return base::fail(base::Code::busy, "more transfers than registered memory");
  return Lease(&*free);
}

}  // namespace reelway::app
