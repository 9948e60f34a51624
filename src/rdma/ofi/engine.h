#pragma once
// A thread that owns endpoints, one for each client address, and is the only one to call libfabric for them.
// Operations come in by a queue; the thread posts them, reads completion queues, and ends what is past its
// deadline. While something is in flight it spins for a moment, then sleeps on the queues' descriptors; with
// nothing in flight it costs nothing.
//
// An operation ends exactly once, and only when libfabric can no longer touch its memory: by its completion,
// or, when the completion is unknown (deadline, error, cancellation), after the peer's endpoint was closed
// and drained. A dead peer never comes back; the next transfer gets a new endpoint.

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "async/task.h"
#include "async/waiter.h"
#include "base/clock.h"
#include "base/log.h"
#include "rdma/ofi/fabric.h"
#include "rdma/ofi/pending.h"

namespace reelway::rdma::ofi {

struct Operation {
  enum class Kind : std::uint8_t { probe, push, pull };
  Kind kind = Kind::probe;
  std::uint64_t remote_address = 0;
  std::uint64_t key = 0;
  base::MutableBytes local;
  void* descriptor = nullptr;
  base::SteadyPoint deadline;
  std::shared_ptr<Pending> pending;
  std::shared_ptr<async::Waiter> waiter = std::make_shared<async::Waiter>();
  base::Result<void> result;
};
using OperationPtr = std::shared_ptr<Operation>;

/// One client address. Leases and death are for any thread, the rest for the engine's.
class Peer {
 public:
  explicit Peer(base::Bytes name) : name_(std::move(name)) {}
  /// False when it is dead.
  bool acquire();
  void release(base::SteadyPoint now);
  bool is_dead() const;
  /// No lease holds it.
  bool is_idle() const;
  base::SteadyPoint last_used() const;

 private:
  friend class Engine;
  bool retire_if_idle_since(base::SteadyPoint limit);
  void mark_dead();
  bool has_work() const { return !queued_.empty() || !posted_.empty(); }

  const base::Bytes name_;
  mutable std::mutex mutex_;
  std::size_t lease_count_ = 0;
  bool dead_ = false;
  base::SteadyPoint last_used_{};

  bool started_ = false;
  Endpoint endpoint_;
  fi_addr_t address_ = 0;
  std::deque<OperationPtr> queued_;
  std::vector<OperationPtr> posted_;
};
using PeerPtr = std::shared_ptr<Peer>;

class Engine {
 public:
  Engine(const Domain& domain, base::Duration idle_limit, base::Log& log);
  ~Engine();  ///< stop()
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Runs one operation to its end. Cancelling it kills the peer when it is already on the wire.
  async::Task<void> perform(PeerPtr peer, OperationPtr operation);
  /// Ends everything of the peer.
  void kill_peer(PeerPtr peer);
  /// Ends everything with `closed` and joins the thread.
  void stop();
  std::size_t peer_count() const { return peer_count_; }

 private:
  struct Command {
    enum class Kind : std::uint8_t { submit, cancel, kill } kind;
    PeerPtr peer;
    OperationPtr operation;
  };

  void send(Command command);
  void run();
  bool take_commands();
  void handle(Command command);
  bool advance(const PeerPtr& peer);
  bool post_next(const PeerPtr& peer);
  bool read_completions(const PeerPtr& peer);
  void expire(const PeerPtr& peer, base::SteadyPoint now);
  void close_idle(base::SteadyPoint now);
  void sleep(base::SteadyPoint now);
  base::Result<void> start(Peer& peer) const;
  long post(Peer& peer, Operation& operation) const;
  void kill(const PeerPtr& peer, const base::Error& error);
  static void finish(const OperationPtr& operation, base::Result<void> result);

  const Domain& domain_;
  const base::Duration idle_limit_;
  base::Log& log_;
  int wake_descriptor_;
  std::mutex mutex_;
  std::vector<Command> commands_;
  bool stopping_ = false;
  std::vector<PeerPtr> peers_;  ///< the thread's own
  std::atomic<std::size_t> peer_count_{0};
  std::thread thread_;
};

}  // namespace reelway::rdma::ofi
