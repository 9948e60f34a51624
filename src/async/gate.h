#pragma once
// Lets work in until closed and tells when the last of it has left: the primitive of every orderly shutdown.
// Safe for several threads. Destroying a gate that is still held is a bug and aborts.

#include <cstddef>
#include <memory>

#include "async/task.h"

namespace reelway::async {

struct GateState;

class Gate {
 public:
  Gate();
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  class [[nodiscard]] Holder {
   public:
    Holder() = default;
    Holder(Holder&& other) noexcept;
    Holder& operator=(Holder&& other) noexcept;
    ~Holder();

   private:
    friend class Gate;
    explicit Holder(std::shared_ptr<GateState> state) : state_(std::move(state)) {}
    std::shared_ptr<GateState> state_;
  };

  /// closed once close() was called.
  base::Result<Holder> hold();
  /// Lets nobody in any more; returns when the last holder has left. Cancelling does not shorten it.
  Task<void> close();
  bool is_closed() const;
  std::size_t holder_count() const;

 private:
  std::shared_ptr<GateState> state_;
};

}  // namespace reelway::async
