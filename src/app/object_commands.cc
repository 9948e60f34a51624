#include "app/commands.h"

namespace reelway::app {

void add_get_and_put(CLI::App& /*app*/, Action& /*action*/) {}

}  // namespace reelway::app
