#include "rdma/planes.h"

#include <algorithm>
#include <utility>

#include "rdma/token.h"

namespace reelway::rdma {

bool lies_in(const base::BufferPool& pool, base::ByteView bytes) {
  return std::ranges::any_of(pool.slabs(), [&](base::ByteView slab) {
    return bytes.data() >= slab.data() && bytes.data() + bytes.size() <= slab.data() + slab.size();
  });
}

async::Task<void> Transfer::push_file(std::uint64_t, FileRange) {
  co_return base::fail(base::Code::unsupported, "this plane pushes no files");
}

void Planes::add(std::unique_ptr<Plane> plane) { planes_.push_back(std::move(plane)); }

std::variant<Choice, DeclineReason, MalformedToken> Planes::choose(std::string_view token) const {
  if (!parse_token(token)) return MalformedToken{};
  if (planes_.empty()) return DeclineReason::disabled;
  for (const auto& plane : planes_) {
    auto window = plane->parse(token);
    if (window) return Choice{.plane = plane.get(), .window = std::move(*window)};
  }
  return DeclineReason::token_form;
}

std::vector<PlaneInfo> Planes::infos() const {
  std::vector<PlaneInfo> infos;
  for (const auto& plane : planes_) infos.push_back(plane->info());
  return infos;
}

async::Task<void> Planes::close() {
  for (const auto& plane : planes_) CO_TRY_VOID(co_await plane->close());
  co_return base::Result<void>{};
}

}  // namespace reelway::rdma
