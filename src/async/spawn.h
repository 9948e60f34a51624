#pragma once
// The only way to start a task that nobody awaits. The gate's holder lives as long as the task, so closing the gate waits for it. An error
// that the task ends with is given to the log (cancelled and closed excepted); an exception ends the process.

#include <string>

#include "async/gate.h"
#include "async/task.h"
#include "base/log.h"

namespace reelway::async {

void spawn(Executor executor, Gate::Holder holder, std::string name, base::Log& log, Task<void> task);

/// Runs `task` on another executor and comes back to the awaiting one with its result.
template <class T>
Task<T> run_on(Executor executor, Task<T> task);

}  // namespace reelway::async

#include "async/spawn.ipp"
