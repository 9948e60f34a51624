#pragma once

#include "archive/join.h"

namespace reelway::archive {

template <class F>
auto Manager::Core::db(F work) -> net::awaitable<decltype(work(std::declval<Catalog&>()))> {
  auto call = [this, work = std::move(work)]() mutable { return work(*catalog_); };
  co_return co_await on_pool(env_.catalog_pool, std::move(call));
}

}  // namespace reelway::archive
