#pragma once
// `reelway serve`: builds the server from its parts, runs it until SIGTERM or SIGINT, and takes it down in
// the opposite order.

#include "app/serve_options.h"
#include "base/result.h"

namespace reelway::app {

/// Returns after an orderly end. An error: what kept it from starting, or from ending in order.
base::Result<void> serve(const ServeOptions& options);

}  // namespace reelway::app
