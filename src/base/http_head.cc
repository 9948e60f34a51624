#include "base/http_head.h"

#include <algorithm>

namespace reelway::base {

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

void HttpFields::erase(std::string_view name) {
  std::erase_if(fields_, [&](const HttpField& field) { return equals_ignoring_case(field.name, name); });
}

void HttpFields::set(std::string_view name, std::string value) {
  erase(name);
  add(std::string(name), std::move(value));
}

std::optional<std::string_view> HttpFields::get(std::string_view name) const {
  const auto it = std::ranges::find_if(
      fields_, [&](const HttpField& field) { return equals_ignoring_case(field.name, name); });
  if (it == fields_.end()) return std::nullopt;
  return it->value;
}

std::string_view HttpFields::get_or(std::string_view name, std::string_view otherwise) const {
  return get(name).value_or(otherwise);
}

}  // namespace reelway::base
