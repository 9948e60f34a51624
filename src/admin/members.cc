#include "admin/members.h"

#include <boost/json/value.hpp>

#include "base/encoding.h"

namespace reelway::admin {

namespace json = boost::json;

namespace {

/// A string, or {"base64": "..."}.
std::optional<std::string> bytes_of(const json::value& value) {
  if (const auto* text = value.if_string()) return std::string(text->data(), text->size());
  const auto* object = value.if_object();
  const auto* encoded = object && object->size() == 1 ? object->if_contains("base64") : nullptr;
  const auto* text = encoded ? encoded->if_string() : nullptr;
  if (text == nullptr) return std::nullopt;
  const auto bytes = base::from_base64({text->data(), text->size()});
  if (!bytes) return std::nullopt;
  return std::string(base::as_text(*bytes));
}

}  // namespace

std::string printable(std::string_view bytes) {
  if (base::is_valid_utf8(bytes)) return std::string(bytes);
  std::string out;
  for (const char c : bytes) {
    if (static_cast<unsigned char>(c) < 0x80) {
      out += c;
    } else {
      out += "\xEF\xBF\xBD";
    }
  }
  return out;
}

const json::value* Members::find(std::string_view name) {
  asked_.emplace(name);
  return object_.if_contains(name);
}

void Members::wrong(std::string_view name, std::string_view what) {
  if (!error_)
    error_ = base::fail(base::Code::invalid_argument, std::string(name) + ": " + std::string(what));
}

std::string Members::text(std::string_view name, bool required, std::string otherwise) {
  const auto* value = find(name);
  if (value == nullptr) {
    if (required) wrong(name, "is missing");
    return otherwise;
  }
  auto bytes = bytes_of(*value);
  if (!bytes) wrong(name, "must be text");
  return bytes.value_or(std::move(otherwise));
}

std::vector<std::string> Members::texts(std::string_view name) {
  std::vector<std::string> out;
  const auto* value = find(name);
  if (value == nullptr) return out;
  const auto* array = value->if_array();
  if (array == nullptr) {
    wrong(name, "must be a list of texts");
    return out;
  }
  for (const auto& item : *array) {
    if (auto bytes = bytes_of(item)) {
      out.push_back(std::move(*bytes));
    } else {
      wrong(name, "must be a list of texts");
    }
  }
  return out;
}

bool Members::flag(std::string_view name) {
  const auto* value = find(name);
  if (value == nullptr) return false;
  if (const auto* flag = value->if_bool()) return *flag;
  wrong(name, "must be true or false");
  return false;
}

std::uint64_t Members::whole_number(std::string_view name, std::uint64_t otherwise, std::uint64_t max) {
  const auto* value = find(name);
  if (value == nullptr) return otherwise;
  std::optional<std::uint64_t> number;
  if (const auto* positive = value->if_uint64()) number = *positive;
  if (const auto* signed_one = value->if_int64(); signed_one && *signed_one >= 0)
    number = static_cast<std::uint64_t>(*signed_one);
  if (!number || *number > max) wrong(name, "must be a whole number up to " + std::to_string(max));
  return number.value_or(otherwise);
}

base::Result<void> Members::finish() {
  if (error_) return std::move(*error_);
  for (const auto& member : object_) {
    if (!asked_.contains(std::string_view(member.key()))) {
      return base::fail(base::Code::invalid_argument,
                        std::string(std::string_view(member.key())) + ": is not known here");
    }
  }
  return {};
}

}  // namespace reelway::admin
