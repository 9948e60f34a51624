#include "app/archive_stack.h"

#include <algorithm>

#include "async/spawn.h"

namespace reelway::app {

namespace {

base::Result<std::pair<std::string, std::vector<std::string>>> parse_pool(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return base::fail(base::Code::invalid_argument,
                      "--pool-tapes '" + std::string(text) + "' is not of the form POOL=BARCODE+BARCODE");
  }
  std::vector<std::string> barcodes;
  std::string_view rest = text.substr(equals + 1);
  while (!rest.empty()) {
    const auto end = std::min(rest.find('+'), rest.size());
    if (end > 0) barcodes.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return std::pair(std::string(text.substr(0, equals)), std::move(barcodes));
}

}  // namespace

base::Result<std::map<std::string, std::vector<std::string>>> assign_pools(
    const std::vector<std::string>& options, const std::vector<std::string>& barcodes) {
  std::map<std::string, std::vector<std::string>> pools;
  for (const auto& option : options) {
    TRY(auto pool, parse_pool(option));
    pools.insert(std::move(pool));
  }
  if (!pools.empty()) return pools;
  for (std::size_t index = 0; index < barcodes.size(); ++index)
    pools[index % 2 == 0 ? "a" : "b"].push_back(barcodes[index]);
  return pools;
}

base::Result<std::unique_ptr<ArchiveStack>> ArchiveStack::create(const ServeOptions& options,
                                                                 const Parts& parts) {
  std::unique_ptr<ArchiveStack> stack(new ArchiveStack);
  TRY(auto vtl_options, vtl::parse_options(options.vtl));
  vtl_options.timer = &stack->timer_;
  vtl_options.sync = options.durability != "none";
  const double scale = vtl_options.capacity_scale > 0 ? 1 / vtl_options.capacity_scale : 1;
  TRY(stack->virtual_library_, vtl::Library::open(std::move(vtl_options)));
  auto& library = *stack->virtual_library_;
  stack->changer_ = std::make_unique<tape::Changer>(library.changer(), parts.log);
  std::vector<tape::Drive*> drives;
  for (std::uint32_t index = 0; index < library.drive_count(); ++index) {
    stack->drives_.push_back(std::make_unique<tape::Drive>(library.drive(index), stack->timer_, parts.log));
    drives.push_back(stack->drives_.back().get());
  }
  stack->library_ = std::make_unique<tape::Library>(*stack->changer_, std::move(drives));
  archive::Options archive_options;
  archive_options.state_folder = options.state;
  archive_options.scale = scale;
  TRY(archive_options.pools, assign_pools(options.pools, library.barcodes()));
  archive::Environment environment{.executor = stack->reactor_.first(),
                                   .store = parts.store,
                                   .library = *stack->library_,
                                   .timer = stack->timer_,
                                   .buffers = parts.buffers,
                                   .rng = parts.rng,
                                   .catalog_pool = &stack->catalog_pool_,
                                   .hash_pool = &parts.hash_pool,
                                   .events = nullptr,
                                   .log = parts.log,
                                   .meter = parts.meter};
  TRY(stack->manager_, archive::Manager::create(std::move(environment), std::move(archive_options)));
  return stack;
}

ArchiveStack::~ArchiveStack() {
  // An orderly end has stopped it before and looked at the outcome.
  static_cast<void>(stop());
  reactor_.stop();
}

base::Result<void> ArchiveStack::start() {
  running_ = true;
  return async::run_until_done(async::run_on(reactor_.first(), manager_->start()));
}

base::Result<void> ArchiveStack::stop() {
  if (!std::exchange(running_, false)) return {};
  return async::run_until_done(async::run_on(reactor_.first(), manager_->stop()));
}

}  // namespace reelway::app
