#include "async/pool_wait.h"

#include "async/timer.h"
#include "async/waiter.h"

namespace reelway::async {

Task<std::vector<base::Chunk>> take_chunks(base::BufferPool& pool, base::PoolShare share, std::size_t count,
                                           base::Duration patience) {
  if (auto taken = pool.try_take(share, count); taken.has_value() || taken.error().code != base::Code::busy)
    co_return taken;

  struct Wait {
    std::shared_ptr<Waiter> waiter = std::make_shared<Waiter>();
    std::vector<base::Chunk> chunks;
  };
  const auto wait = std::make_shared<Wait>();
  const auto ticket = pool.request(share, count, [wait](std::vector<base::Chunk> chunks) {
    wait->chunks = std::move(chunks);
    wait->waiter->wake();
  });
  if (!ticket.has_value()) co_return ticket.error();
  const base::Result<void> woken = co_await with_deadline(wait->waiter->wait(), patience);
  if (!woken.has_value() && pool.withdraw(share, *ticket)) {
    if (woken.error().code == base::Code::cancelled) co_return woken.error();
    co_return base::fail(base::Code::busy, "all buffers are in use", base::Scope::node, base::Retry::later);
  }
  // When patience ended while the grant was on its way, it is here or about to be.
  if (!woken.has_value()) {
    const auto late = co_await wait->waiter->wait_to_the_end();
    if (!late.has_value()) co_return late.error();
  }
  co_return std::move(wait->chunks);
}

}  // namespace reelway::async
