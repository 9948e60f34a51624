#include "archive/core.h"

#include <fmt/format.h>

#include <algorithm>

#include "archive/policy.h"
#include "async/spawn.h"
#include "object/metadata_codec.h"

namespace reelway::archive {

using base::Code;
using base::Result;

namespace {

constexpr base::Duration kLook =
    std::chrono::seconds{1};  ///< the scheduler looks at least so often while something waits,
constexpr base::Duration kIdleLook = std::chrono::seconds{15};  ///< ... and so often when nothing does
constexpr base::Duration kRefreshInventory = std::chrono::seconds{30};
constexpr std::size_t kNotesMax = 200'000;  ///< beyond it a scan finds what was forgotten
constexpr std::size_t kErrorsKept = 20;
constexpr base::Duration kJournalDelay =
    std::chrono::minutes{1};  ///< a batch may carry a change of policies to tape meanwhile

}  // namespace

Manager::Core::Core(Environment environment, Options options, std::unique_ptr<Catalog> catalog)
    : env_(environment),
      options_(std::move(options)),
      catalog_(std::move(catalog)),
      tiered_(*env_.store.tiered()),
      costs_(options_.tape_block_bytes, options_.scale) {
  for (const auto& [pool, barcodes] : options_.pools) {
    for (const std::string& barcode : barcodes) pool_of_[barcode] = pool;
  }
  for (std::size_t i = 0; i < env_.library.drive_count(); ++i) {
    stations_.push_back(std::make_unique<Station>());
    stations_.back()->number = i;
  }
}

// ---- life ----

async::Task<void> Manager::Core::start() {
  CO_TRY_VOID(co_await load_policies());
  CO_TRY(const auto volumes, co_await db([](Catalog& catalog) { return catalog.volumes(); }));
  for (const VolumeRow& volume : volumes) volumes_[volume.barcode] = volume;
  CO_TRY(const auto conflicts, co_await tiered_.recover());
  for (const object::Conflict& conflict : conflicts)
    report_conflict(conflict.name, conflict.generation, conflict.reason);
  CO_TRY_VOID(co_await settle_interrupted());
  CO_TRY_VOID(co_await load_requests());
  const auto looked = co_await env_.library.refresh();
  if (!looked.has_value()) remember_error("the library does not answer: " + base::to_string(looked.error()));
  for (std::size_t i = 0; looked.has_value() && i < stations_.size(); ++i) {
    stations_[i]->barcode = env_.library.view().bays[i].barcode;
    stations_[i]->state = stations_[i]->barcode.empty() ? "empty" : "idle";
    stations_[i]->idle_since = clock().steady_now();
  }
  next_refresh_ = clock().steady_now() + kRefreshInventory;
  next_rescan_ = clock().steady_now();
  next_journal_ = clock().steady_now() + kJournalDelay;
  next_read_back_ = clock().steady_now();  // what a crash or a stop kept from being read back
  CO_TRY(auto holder, gate_.hold());
  started_ = true;
  async::spawn(env_.executor, std::move(holder), "archive scheduler", env_.log, run());
  co_return Result<void>{};
}

async::Task<void> Manager::Core::stop() {
  stopping_ = true;
  wake();
  CO_TRY_VOID(co_await gate_.close());
  for (auto& [name, recall] : recalls_) {
    recall->feed->end(base::fail(Code::closed, "the server stops", base::Scope::node, base::Retry::later));
    for (const auto& waiter : recall->waiters) waiter->wake();
  }
  for (const auto& waiter : batch_waiters_) waiter->wake();
  Result<void> outcome;
  for (const auto& station : stations_) {
    auto ended = co_await dismount(*station);
    if (!ended.has_value()) outcome = ended;
  }
  auto noted = co_await absorb_notes();  // a delete that is forgotten looks like a loss to the next scan
  if (!noted.has_value() && outcome.has_value()) outcome = noted;
  co_return outcome;
}

void Manager::Core::wake() {
  const std::lock_guard lock(wake_mutex_);
  wake_->wake();
}

bool Manager::Core::start_job(const char* name, async::Task<void> task) {
  auto holder = gate_.hold();
  if (!holder.has_value()) return false;
  async::spawn(env_.executor, std::move(*holder), name, env_.log, std::move(task));
  return true;
}

// ---- scheduling ----

async::Task<void> Manager::Core::run() {
  while (!stopping_) {
    std::shared_ptr<async::Waiter> woken;
    {
      const std::lock_guard lock(wake_mutex_);
      wake_ = std::make_shared<async::Waiter>();
      woken = wake_;
    }
    const auto looked = co_await look_around();
    if (!looked.has_value()) remember_error(base::to_string(looked.error()));
    base::Duration pause = objects_wait_ || !recalls_.empty() || !forces_.empty() ? kLook : kIdleLook;
    if (const auto again = start_recalls())
      pause =
          std::min(pause, std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(*again)));
    if (!stopping_)
      co_await wait_until(
          env_.timer, woken,
          clock().steady_now() + std::max<base::Duration>(pause, std::chrono::milliseconds{1}));
  }
  co_return Result<void>{};
}

async::Task<void> Manager::Core::look_around() {
  const base::SteadyPoint now = clock().steady_now();
  CO_TRY_VOID(co_await absorb_notes());
  if (now >= next_rescan_ && !scanning_ &&
      (options_.rescan > base::Duration::zero() || next_rescan_ != base::SteadyPoint::max())) {
    scanning_ = true;  // before the job: it may have ended when start_job returns
    if (!start_job("archive scan", rescan_job())) scanning_ = false;
    next_rescan_ =
        options_.rescan > base::Duration::zero() ? now + options_.rescan : base::SteadyPoint::max();
  }
  if (now >= next_refresh_ && !refreshing_) {
    next_refresh_ = now + kRefreshInventory;
    refreshing_ = true;
    if (!start_job("library inventory", refresh_job())) refreshing_ = false;
  }
  if (!expiring_) {
    const base::TimePoint today = clock().now();
    const bool due =
        std::any_of(pins_.begin(), pins_.end(), [&](const auto& pin) { return pin.second.expiry <= today; });
    expiring_ = due;
    if (due && !start_job("expired recalls", expire_pins_job())) expiring_ = false;
  }
  if (now >= next_journal_ && !journalling_ && !importing_) {
    journalling_ = true;
    if (!start_job("journal of policies", journal_job())) journalling_ = false;
  }
  (void)start_recalls();
  CO_TRY_VOID(co_await start_batches());
  // Readers and writers come first; what they leave of the drives is for this.
  const bool quiet = recalls_.empty() && forces_.empty() && batches_.empty();
  if (now >= next_read_back_ && quiet && !reading_back_ && !importing_) {
    reading_back_ = true;
    if (!start_job("read-back", read_back_job())) reading_back_ = false;
  }
  co_return Result<void>{};
}

void Manager::Core::note(object::ObjectInfo info, bool removed) {
  {
    const std::lock_guard lock(notes_mutex_);
    if (notes_.size() >= kNotesMax) {
      notes_overflowed_ = true;
      return;
    }
    notes_.push_back({std::move(info), removed});
  }
  wake();
}

async::Task<void> Manager::Core::absorb_notes() {
  std::vector<Note> notes;
  {
    const std::lock_guard lock(notes_mutex_);
    notes.swap(notes_);
    if (notes_overflowed_) next_rescan_ = clock().steady_now();
    notes_overflowed_ = false;
  }
  // In order, in runs of the same kind: a key may be stored, removed and stored again.
  for (std::size_t i = 0; i < notes.size();) {
    const bool removed = notes[i].removed;
    std::vector<ObjectRow> rows;
    for (; i < notes.size() && notes[i].removed == removed; ++i) {
      object::TierEntry entry{.info = std::move(notes[i].info), .identity = {}};
      entry.identity = {.generation = entry.info.generation,
                        .inode = 0,
                        .size = entry.info.size,
                        .mtime = entry.info.last_modified,
                        .ctime = {}};
      rows.push_back(row_of(entry));
      pins_.erase(entry.info.name);
      const auto open = recalls_.find(entry.info.name);
      const bool replaced = open != recalls_.end() &&
                            (removed || open->second->object.identity.generation != entry.info.generation);
      if (replaced) {
        const auto recall = open->second;  // outlives its place
        replace_recall(*recall);
      }
      post_restore(entry.info.name);
    }
    CO_TRY_VOID(co_await db(
        [&rows, removed](Catalog& catalog) { return removed ? catalog.remove(rows) : catalog.note(rows); }));
  }
  co_return Result<void>{};
}

// ---- policies ----

std::vector<std::string> Manager::Core::pool_names() const {
  std::vector<std::string> names;
  for (const auto& [pool, barcodes] : options_.pools) names.push_back(pool);
  return names;
}

async::Task<void> Manager::Core::set_policy(Policy policy) {
  CO_TRY_VOID(check_policy(policy, pool_names()));
  const base::TimePoint now = clock().now();
  CO_TRY_VOID(co_await db([&policy, now](Catalog& catalog) { return catalog.put_policy(policy, now); }));
  co_return co_await policies_were_changed();
}

async::Task<void> Manager::Core::remove_policy(std::string bucket, std::string prefix) {
  const base::TimePoint now = clock().now();
  CO_TRY_VOID(co_await db([&](Catalog& catalog) { return catalog.remove_policy(bucket, prefix, now); }));
  co_return co_await policies_were_changed();
}

async::Task<void> Manager::Core::policies_were_changed() {
  CO_TRY_VOID(co_await load_policies());
  next_rescan_ = clock().steady_now();
  next_journal_ = clock().steady_now() + kJournalDelay;
  wake();
  co_return Result<void>{};
}

async::Task<std::vector<Policy>> Manager::Core::list_policies() {
  std::vector<Policy> policies;
  for (const PolicyRow& row : policies_) policies.push_back(row.policy);
  co_return policies;
}

// ---- telling people ----

void Manager::Core::remember_error(const std::string& message) {
  env_.log.write(base::LogLevel::warning, "archive", message);
  last_errors_.push_front(fmt::format("{} {}", base::to_iso8601(clock().now()), message));
  if (last_errors_.size() > kErrorsKept) last_errors_.pop_back();
}

void Manager::Core::emit(std::string type, const object::ObjectName& name, const std::string& generation,
                         std::string detail) {
  if (env_.events == nullptr) return;
  env_.events->emit({.type = std::move(type),
                     .name = name,
                     .generation = generation,
                     .size = 0,
                     .detail = std::move(detail)});
}

}  // namespace reelway::archive
