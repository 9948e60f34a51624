#pragma once
// Request heads and what becomes of them, for the tests of this room.

#include <gtest/gtest.h>

#include "s3/request.h"

namespace reelway::s3 {

using Fields = std::vector<std::pair<std::string, std::string>>;

inline base::HttpRequestHead head_of(std::string_view method, std::string_view target,
                                     const Fields& fields = {}) {
  base::HttpRequestHead head;
  head.method = method;
  head.target = target;
  head.fields.add("Host", "localhost:9000");
  for (const auto& [name, value] : fields) head.fields.add(name, value);
  return head;
}

inline Outcome<Request> parse(std::string_view method, std::string_view target, const Fields& fields = {}) {
  return parse_request(head_of(method, target, fields));
}

/// The operation, which must be a `Wanted`.
template <class Wanted>
Wanted parsed(std::string_view method, std::string_view target, const Fields& fields = {}) {
  auto request = parse(method, target, fields);
  if (!request) {
    ADD_FAILURE() << method << " " << target << ": " << request.error().name() << " "
                  << request.error().message;
    return {};
  }
  if (!std::holds_alternative<Wanted>(request->operation)) {
    ADD_FAILURE() << method << " " << target << " is " << operation_row(request->operation).name;
    return {};
  }
  return std::get<Wanted>(std::move(request->operation));
}

/// The fault's name, or the operation's where there is none.
inline std::string_view fault_name(std::string_view method, std::string_view target,
                                   const Fields& fields = {}) {
  const auto request = parse(method, target, fields);
  return request ? operation_row(request->operation).name : request.error().name();
}

}  // namespace reelway::s3
