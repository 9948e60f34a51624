#pragma once
// The commands of the admin API: a name, a JSON object in, a JSON object out.

#include <boost/json/object.hpp>
#include <string_view>

#include "archive/client.h"

namespace reelway::admin {

/// not_found: no such command. invalid_argument: a member is wrong. Otherwise the archive's own error.
async::Task<boost::json::object> run_command(archive::Client& archive, std::string name,
                                             boost::json::object members);

}  // namespace reelway::admin
