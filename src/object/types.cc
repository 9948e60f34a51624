#include "object/types.h"

#include <algorithm>

namespace reelway::object {

namespace {

bool matches(const std::vector<std::string>& etags, const std::string& etag) {
  return std::ranges::any_of(etags, [&](const std::string& one) { return one == "*" || one == etag; });
}

bool is_modified_since(const ObjectInfo& info, base::TimePoint time) {
  return std::chrono::floor<std::chrono::seconds>(info.last_modified) >
         std::chrono::floor<std::chrono::seconds>(time);
}

base::Error condition_failed(const char* condition) {
  return base::fail(base::Code::precondition_failed, condition, base::Scope::object);
}

}  // namespace

base::Result<void> check_read_conditions(const Conditions& conditions, const ObjectInfo& info) {
  if (!conditions.if_match.empty()) {
    if (!matches(conditions.if_match, info.etag)) return condition_failed("If-Match");
  } else if (conditions.if_unmodified_since && is_modified_since(info, *conditions.if_unmodified_since)) {
    return condition_failed("If-Unmodified-Since");
  }
  if (!conditions.if_none_match.empty()) {
    if (matches(conditions.if_none_match, info.etag))
      return base::fail(base::Code::not_modified, "If-None-Match", base::Scope::object);
  } else if (conditions.if_modified_since && !is_modified_since(info, *conditions.if_modified_since)) {
    return base::fail(base::Code::not_modified, "If-Modified-Since", base::Scope::object);
  }
  return {};
}

base::Result<void> check_write_conditions(const Conditions& conditions, const ObjectInfo* current) {
  if (!conditions.if_match.empty()) {
    if (current == nullptr)
      return base::fail(base::Code::not_found, "If-Match, but there is no such object", base::Scope::object);
    if (!matches(conditions.if_match, current->etag)) return condition_failed("If-Match");
  }
  if (current == nullptr) return {};
  if (matches(conditions.if_none_match, current->etag)) return condition_failed("If-None-Match");
  if (conditions.if_unmodified_since && is_modified_since(*current, *conditions.if_unmodified_since))
    return condition_failed("If-Unmodified-Since");
  return {};
}

}  // namespace reelway::object
