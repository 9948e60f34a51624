#pragma once
// The archive's values as JSON. The members are documented in docs/admin-api.md and may only be added to.

#include <boost/json/object.hpp>

#include "admin/admin.h"

namespace reelway::admin {

boost::json::object to_json(const archive::Policy& policy);
boost::json::object to_json(const archive::StatusView& status);
boost::json::object to_json(const archive::ObjectView& view);
boost::json::object to_json(const archive::EvictOutcome& outcome);
boost::json::object to_json(const archive::RecallEstimate& estimate);
boost::json::object to_json(const archive::VolumeListing& listing);
boost::json::object to_json(const archive::ImportView& view);
boost::json::object to_json(const archive::LibraryView& view);

/// A policy from a command's members; invalid_argument names the member that is wrong or unknown.
base::Result<archive::Policy> parse_policy(const boost::json::object& members);

}  // namespace reelway::admin
