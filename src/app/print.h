#pragma once
// JSON answers on a terminal: as JSON when asked for, else for people: "name: value" lines, and lists as
// tables.

#include <boost/json/object.hpp>
#include <string>
#include <string_view>

namespace reelway::app {

/// One text in one line: names with control characters would play with the terminal. "-" when empty.
std::string one_line(std::string_view text);
std::string for_people(const boost::json::object& answer);
void print_answer(const boost::json::object& answer, bool as_json);

}  // namespace reelway::app
