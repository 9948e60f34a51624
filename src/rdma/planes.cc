#include "rdma/planes.h"

#include <utility>

#include "rdma/token.h"

namespace reelway::rdma {

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
