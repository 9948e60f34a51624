#pragma once
// Reads the members of a command's JSON object: each by name and type, wrong and unknown ones are an error
// that names them. Keys of objects are raw bytes; what is not UTF-8 travels as {"base64": "..."} in both
// directions.

#include <boost/json/object.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace reelway::admin {

/// The bytes as JSON can hold them: as they are when UTF-8, else with U+FFFD for what is not. For people.
std::string printable(std::string_view bytes);

class Members {
 public:
  explicit Members(const boost::json::object& object) : object_(object) {}

  std::string text(std::string_view name, bool required, std::string otherwise = {});
  std::vector<std::string> texts(std::string_view name);
  bool flag(std::string_view name);
  template <class T>
  T number(std::string_view name, T otherwise) {
    return static_cast<T>(whole_number(name, otherwise, std::numeric_limits<T>::max()));
  }

  /// The first thing that was wrong, or a member that nobody asked for.
  base::Result<void> finish();

 private:
  const boost::json::value* find(std::string_view name);
  std::uint64_t whole_number(std::string_view name, std::uint64_t otherwise, std::uint64_t max);
  void wrong(std::string_view name, std::string_view what);

  const boost::json::object& object_;
  std::set<std::string, std::less<>> asked_;
  std::optional<base::Error> error_;
};

}  // namespace reelway::admin
