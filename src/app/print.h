#pragma once
// JSON answers on a terminal: as JSON when asked for, else for people: "name: value" lines, and lists as
// tables.

#include <boost/json/object.hpp>
#include <string>

namespace reelway::app {

std::string for_people(const boost::json::object& answer);
void print_answer(const boost::json::object& answer, bool as_json);

}  // namespace reelway::app
