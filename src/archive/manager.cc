#include "archive/manager.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>

#include "archive/core.h"
#include "async/spawn.h"

namespace reelway::archive {

using base::Code;
using base::Result;

Manager::Manager(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Manager::~Manager() = default;

Result<std::unique_ptr<Manager>> Manager::create(Environment environment, Options options) {
  if (environment.store.tiered() == nullptr)
    return base::fail(Code::invalid_argument, "the store cannot evict and recall objects");
  if (options.scale <= 0)
    return base::fail(Code::invalid_argument, "the scale of cartridges is a positive number");
  std::map<std::string, std::string> seen;
  for (const auto& [pool, barcodes] : options.pools) {
    const bool plain = !pool.empty() && std::all_of(pool.begin(), pool.end(), [](unsigned char c) {
      return std::isalnum(c) || c == '-' || c == '_';
    });
    if (!plain)
      return base::fail(Code::invalid_argument,
                        fmt::format("pool '{}': letters, digits, '-' and '_' make a name", pool));
    for (const std::string& barcode : barcodes) {
      const auto [at, fresh] = seen.emplace(barcode, pool);
      if (!fresh)
        return base::fail(Code::invalid_argument, fmt::format("cartridge {} is in pool {} and in pool {}",
                                                              barcode, at->second, pool));
    }
  }
  TRY(auto catalog, Catalog::open(options.state_folder));
  return std::unique_ptr<Manager>(
      new Manager(std::make_unique<Core>(environment, std::move(options), std::move(catalog))));
}

// Everything hops to the archive's executor.

async::Task<void> Manager::start() { return async::run_on(core_->environment().executor, core_->start()); }
async::Task<void> Manager::stop() { return async::run_on(core_->environment().executor, core_->stop()); }

async::Task<object::RecallStatus> Manager::submit(object::RecallRequest request) {
  return async::run_on(core_->environment().executor, core_->submit(std::move(request)));
}
async::Task<object::RecallStatus> Manager::status(object::ObjectName name, std::string generation) {
  return async::run_on(core_->environment().executor, core_->status(std::move(name), std::move(generation)));
}
async::Task<void> Manager::cancel(std::string id) {
  return async::run_on(core_->environment().executor, core_->cancel(std::move(id)));
}
async::Task<object::RecallStatus> Manager::wait(object::ObjectName name, std::string generation,
                                                base::Duration patience) {
  return async::run_on(core_->environment().executor,
                       core_->wait(std::move(name), std::move(generation), patience));
}

async::Task<object::FollowedRecall> Manager::follow(object::RecallRequest request, std::uint64_t offset,
                                                    base::Duration patience) {
  return async::run_on(core_->environment().executor, core_->follow(std::move(request), offset, patience));
}
void Manager::send_readers_away() {
  boost::asio::post(core_->environment().executor, [core = core_.get()] { core->send_readers_away(); });
}

void Manager::notify_stored(const object::ObjectInfo& info) { core_->note(info, false); }
void Manager::notify_removed(const object::ObjectName& name, const std::string& generation) {
  object::ObjectInfo info;
  info.name = name;
  info.generation = generation;
  core_->note(std::move(info), true);
}

async::Task<void> Manager::set_policy(Policy policy) {
  return async::run_on(core_->environment().executor, core_->set_policy(std::move(policy)));
}
async::Task<void> Manager::remove_policy(std::string bucket, std::string prefix) {
  return async::run_on(core_->environment().executor,
                       core_->remove_policy(std::move(bucket), std::move(prefix)));
}
async::Task<std::vector<Policy>> Manager::policies() {
  return async::run_on(core_->environment().executor, core_->list_policies());
}
async::Task<StatusView> Manager::status_view() {
  return async::run_on(core_->environment().executor, core_->status_view());
}
async::Task<ObjectView> Manager::why(object::ObjectName name) {
  return async::run_on(core_->environment().executor, core_->why(std::move(name)));
}
async::Task<StatusView> Manager::archive_now(std::string bucket, std::string prefix) {
  return async::run_on(core_->environment().executor,
                       core_->archive_now(std::move(bucket), std::move(prefix)));
}
async::Task<EvictOutcome> Manager::evict(std::string bucket, std::string prefix) {
  return async::run_on(core_->environment().executor, core_->evict(std::move(bucket), std::move(prefix)));
}
async::Task<std::uint64_t> Manager::recall(std::string bucket, std::string prefix,
                                           std::vector<std::string> keys, std::uint32_t days) {
  return async::run_on(core_->environment().executor,
                       core_->recall(std::move(bucket), std::move(prefix), std::move(keys), days));
}
async::Task<RecallEstimate> Manager::estimate(std::string bucket, std::vector<std::string> keys) {
  return async::run_on(core_->environment().executor, core_->estimate(std::move(bucket), std::move(keys)));
}
std::optional<object::RestoreStatus> Manager::restore_status(const object::ObjectName& name,
                                                             const std::string& generation) const {
  return core_->board().find(name, generation);
}
async::Task<bool> Manager::owns(object::ObjectName name, std::string generation) {
  return async::run_on(core_->environment().executor, core_->owns(std::move(name), std::move(generation)));
}
async::Task<LibraryView> Manager::library_view() {
  return async::run_on(core_->environment().executor, core_->library_view());
}
async::Task<VolumeListing> Manager::list_volume(std::string volume, std::string prefix, std::string after) {
  return async::run_on(core_->environment().executor,
                       core_->list_volume(std::move(volume), std::move(prefix), std::move(after)));
}
async::Task<ImportView> Manager::import_volumes(bool make_stubs) {
  return async::run_on(core_->environment().executor, core_->import_volumes(make_stubs));
}
async::Task<StatusView> Manager::verify(std::string bucket, std::string prefix) {
  return async::run_on(core_->environment().executor, core_->verify(std::move(bucket), std::move(prefix)));
}

}  // namespace reelway::archive
