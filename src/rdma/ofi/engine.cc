#include "rdma/ofi/engine.h"

#include <fmt/format.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace reelway::rdma::ofi {
namespace {

using base::Code;
using base::Result;
using base::Scope;
using base::SteadyPoint;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t kPostedMax = 32;  ///< per peer; below every queue that the domain asks for
constexpr base::Duration kSpin = microseconds{50};
constexpr base::Duration kSleepMax = milliseconds{1};  ///< connections make progress only by polling
constexpr base::Duration kIdleCheck = std::chrono::seconds{5};
constexpr std::string_view kRoom = "rdma/ofi";

SteadyPoint steady_now() { return std::chrono::steady_clock::now(); }

base::Error peer_gone(std::string detail) {
  return base::fail(Code::unavailable, std::move(detail), Scope::peer, base::Retry::later);
}

}  // namespace

bool Peer::acquire() {
  const std::scoped_lock lock(mutex_);
  if (dead_) return false;
  ++lease_count_;
  return true;
}

void Peer::release(SteadyPoint now) {
  const std::scoped_lock lock(mutex_);
  --lease_count_;
  last_used_ = now;
}

bool Peer::is_dead() const {
  const std::scoped_lock lock(mutex_);
  return dead_;
}

bool Peer::is_idle() const {
  const std::scoped_lock lock(mutex_);
  return lease_count_ == 0;
}

SteadyPoint Peer::last_used() const {
  const std::scoped_lock lock(mutex_);
  return last_used_;
}

bool Peer::retire_if_idle_since(SteadyPoint limit) {
  const std::scoped_lock lock(mutex_);
  if (lease_count_ != 0 || last_used_ > limit) return false;
  dead_ = true;
  return true;
}

void Peer::mark_dead() {
  const std::scoped_lock lock(mutex_);
  dead_ = true;
}

Engine::Engine(const Domain& domain, base::Duration idle_limit, base::Log& log)
    : domain_(domain),
      idle_limit_(idle_limit),
      log_(log),
      wake_descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

Engine::~Engine() {
  stop();
  ::close(wake_descriptor_);
}

async::Task<void> Engine::perform(PeerPtr peer, OperationPtr operation) {
  if (operation->pending) operation->pending->enter();
  send({Command::Kind::submit, peer, operation});
  auto on_cancel = [this, peer, operation] { send({Command::Kind::cancel, peer, operation}); };
  const auto ended = co_await operation->waiter->wait_to_the_end(std::move(on_cancel));
  if (!ended) co_return ended.error();
  co_return operation->result;
}

void Engine::kill_peer(PeerPtr peer) { send({Command::Kind::kill, std::move(peer), nullptr}); }

void Engine::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  ::eventfd_write(wake_descriptor_, 1);
  if (thread_.joinable()) thread_.join();
}

void Engine::send(Command command) {
  {
    const std::scoped_lock lock(mutex_);
    if (!stopping_) {
      commands_.push_back(std::move(command));
      ::eventfd_write(wake_descriptor_, 1);
      return;
    }
  }
  if (command.kind == Command::Kind::submit)
    finish(command.operation, base::fail(Code::closed, "the plane is closed"));
}

void Engine::run() {
  SteadyPoint last_progress = steady_now();
  while (take_commands()) {
    bool progressed = false;
    const std::vector<PeerPtr> peers = peers_;
    for (const auto& peer : peers) progressed = advance(peer) || progressed;
    const SteadyPoint now = steady_now();
    for (const auto& peer : peers) expire(peer, now);
    const bool busy = std::ranges::any_of(peers_, [](const PeerPtr& peer) { return peer->has_work(); });
    if (progressed) last_progress = now;
    if (progressed || (busy && now - last_progress < kSpin)) continue;
    close_idle(now);
    sleep(now);
  }
  const std::vector<PeerPtr> peers = peers_;
  for (const auto& peer : peers) kill(peer, base::fail(Code::closed, "the plane is closed"));
}

/// False when the thread shall end; what was queued before that has been taken over.
bool Engine::take_commands() {
  std::vector<Command> commands;
  bool stopping = false;
  {
    const std::scoped_lock lock(mutex_);
    commands.swap(commands_);
    stopping = stopping_;
  }
  for (auto& command : commands) handle(std::move(command));
  return !stopping;
}

void Engine::handle(Command command) {
  Peer& peer = *command.peer;
  const auto cancelled = [] { return base::fail(Code::cancelled, "the transfer was cancelled"); };
  switch (command.kind) {
    case Command::Kind::submit:
      if (peer.is_dead())
        return finish(command.operation, base::fail(Code::closed, "the peer's endpoint was closed"));
      if (std::ranges::find(peers_, command.peer) == peers_.end()) peers_.push_back(command.peer);
      peer_count_ = peers_.size();
      peer.queued_.push_back(std::move(command.operation));
      return;
    case Command::Kind::cancel:
      if (std::erase(peer.queued_, command.operation) != 0) return finish(command.operation, cancelled());
      if (std::ranges::find(peer.posted_, command.operation) != peer.posted_.end())
        kill(command.peer, cancelled());
      return;
    case Command::Kind::kill:
      return kill(command.peer, cancelled());
  }
}

/// One step for one peer, so that no peer holds up the others for longer than a chunk's copy.
bool Engine::advance(const PeerPtr& peer) {
  if (!peer->has_work()) return false;
  if (!peer->started_) {
    if (const auto started = start(*peer); !started) {
      kill(peer, started.error());
      return true;
    }
    peer->started_ = true;
  }
  const bool posted = post_next(peer);
  const bool completed = read_completions(peer);
  return posted || completed;
}

Result<void> Engine::start(Peer& peer) const {
  TRY(peer.endpoint_, domain_.open_endpoint());
  if (fi_av_insert(peer.endpoint_.addresses.get(), peer.name_.data(), 1, &peer.address_, 0, nullptr) != 1) {
    return peer_gone("the peer's address is not one of this provider");
  }
  return {};
}

bool Engine::post_next(const PeerPtr& peer) {
  if (peer->queued_.empty() || peer->posted_.size() >= kPostedMax) return false;
  const OperationPtr operation = peer->queued_.front();
  if (operation->deadline <= steady_now()) return false;  // expire() ends it
  const long code = post(*peer, *operation);
  if (code == -FI_EAGAIN) return false;
  if (code != 0) {
    kill(peer, from_fabric(code, "posting a transfer"));
    return true;
  }
  peer->queued_.pop_front();
  peer->posted_.push_back(operation);
  return true;
}

long Engine::post(Peer& peer, Operation& operation) const {
  const iovec local{operation.local.data(), operation.local.size()};
  const fi_rma_iov remote{operation.remote_address, operation.local.size(), operation.key};
  fi_msg_rma message{};
  message.msg_iov = &local;
  message.desc = &operation.descriptor;
  message.iov_count = 1;
  message.addr = peer.address_;
  message.rma_iov = &remote;
  message.rma_iov_count = 1;
  message.context = &operation;
  fid_ep* endpoint = peer.endpoint_.handle.get();
  if (operation.kind == Operation::Kind::pull) return fi_readmsg(endpoint, &message, FI_COMPLETION);
  return fi_writemsg(endpoint, &message, domain_.write_flags());
}

bool Engine::read_completions(const PeerPtr& peer) {
  if (peer->is_dead()) return false;
  std::array<fi_cq_entry, 16> entries;
  fid_cq* queue = peer->endpoint_.completions.get();
  const ssize_t count = fi_cq_read(queue, entries.data(), entries.size());
  if (count == -FI_EAGAIN) return false;
  if (count < 0) {
    fi_cq_err_entry error{};
    const bool known = count == -FI_EAVAIL && fi_cq_readerr(queue, &error, 0) > 0;
    kill(peer, from_fabric(known ? error.err : count, "a transfer"));
    return true;
  }
  for (const auto& entry : std::span(entries).first(static_cast<std::size_t>(count))) {
    const auto found = std::ranges::find_if(
        peer->posted_, [&](const OperationPtr& o) { return o.get() == entry.op_context; });
    if (found == peer->posted_.end()) continue;
    const OperationPtr operation = *found;
    peer->posted_.erase(found);
    finish(operation, {});
  }
  return true;
}

void Engine::expire(const PeerPtr& peer, SteadyPoint now) {
  const auto expired = [&](const OperationPtr& operation) { return operation->deadline <= now; };
  const auto late =
      base::fail(Code::deadline_exceeded, "the transfer's time is over", Scope::peer, base::Retry::later);
  if (std::ranges::any_of(peer->posted_, expired)) return kill(peer, late);
  for (auto next = std::ranges::find_if(peer->queued_, expired); next != peer->queued_.end();
       next = std::ranges::find_if(peer->queued_, expired)) {
    const OperationPtr operation = *next;
    // A connection that may still be coming up must not carry anything later.
    if (operation->kind == Operation::Kind::probe) return kill(peer, late);
    peer->queued_.erase(next);
    finish(operation, late);
  }
}

void Engine::close_idle(SteadyPoint now) {
  const std::vector<PeerPtr> peers = peers_;
  for (const auto& peer : peers) {
    if (peer->has_work() || !peer->retire_if_idle_since(now - idle_limit_)) continue;
    kill(peer, base::fail(Code::closed, "idle"));
  }
}

void Engine::sleep(SteadyPoint now) {
  std::vector<pollfd> descriptors{{.fd = wake_descriptor_, .events = POLLIN, .revents = 0}};
  SteadyPoint until = now + kIdleCheck;
  for (const auto& peer : peers_) {
    if (!peer->has_work()) continue;
    until = std::min(until, now + kSleepMax);
    for (const auto& operation : peer->posted_) until = std::min(until, operation->deadline);
    for (const auto& operation : peer->queued_) until = std::min(until, operation->deadline);
    if (domain_.may_wait(peer->endpoint_)) {
      descriptors.push_back({.fd = peer->endpoint_.wait_descriptor, .events = POLLIN, .revents = 0});
    } else {
      return;
    }
  }
  const auto left = std::max(base::Duration::zero(), until - steady_now());
  const timespec limit{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
  ::ppoll(descriptors.data(), descriptors.size(), peers_.empty() ? nullptr : &limit, nullptr);
  eventfd_t ignored = 0;
  ::eventfd_read(wake_descriptor_, &ignored);
}

void Engine::kill(const PeerPtr& peer, const base::Error& error) {
  peer->mark_dead();
  if (error.code != Code::closed) {
    log_.write(base::LogLevel::info, kRoom,
               fmt::format("{}: a peer's endpoint is closed: {}", domain_.provider(), to_string(error)));
  }
  // Closing drains: afterwards the provider touches neither our chunks nor the peer's memory on behalf of
  // this endpoint.
  peer->endpoint_ = {};
  auto queued = std::exchange(peer->queued_, {});
  for (const auto& operation : std::exchange(peer->posted_, {})) finish(operation, error);
  for (const auto& operation : queued) finish(operation, error);
  std::erase(peers_, peer);
  peer_count_ = peers_.size();
}

void Engine::finish(const OperationPtr& operation, Result<void> result) {
  operation->result = std::move(result);
  // First out, then awake: whoever wakes may find that nothing is pending and let the transfer go.
  if (operation->pending) operation->pending->leave();
  operation->waiter->wake();
}

}  // namespace reelway::rdma::ofi
