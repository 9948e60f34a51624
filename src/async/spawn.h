#pragma once
// The only way to start a task that nobody awaits. The gate's holder lives as long as the task, so closing
// the gate waits for it. An error that the task ends with is given to the log (cancelled and closed
// excepted); an exception ends the process.
//
// Executors are serial: one thread of an io_context, or a strand.

#include <string>

#include "async/gate.h"
#include "async/task.h"
#include "base/log.h"

namespace reelway::async {

void spawn(Executor executor, Gate::Holder holder, std::string name, base::Log& log, Task<void> task);

/// Runs `task` on another executor and comes back to the awaiting one with its result. Cancelling reaches the
/// task; returns only after its end.
template <class T>
Task<T> run_on(Executor executor, Task<T> task);

/// Runs `task` on an io_context of its own in this thread, for tests and commands. Work that it spawned must
/// have ended with it.
template <class T>
base::Result<T> run_until_done(Task<T> task);

namespace detail {
void run_alone(net::awaitable<void> body);
}

}  // namespace reelway::async

#include "async/spawn.ipp"
