#include "archive/journal.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace reelway::archive {

using base::Code;
using base::Result;

namespace {

using nlohmann::json;

std::string text_of(const std::string& bytes) { return base::to_base64(base::as_bytes(bytes)); }

json line_of(const Death& death) {
  return {{"dead",
           {{"bucket", text_of(death.name.bucket)},
            {"key", text_of(death.name.key)},
            {"generation", death.generation}}}};
}

json line_of(const PolicyChange& change) {
  const Policy& policy = change.policy;
  json members = {{"bucket", text_of(policy.bucket)},
                  {"prefix", text_of(policy.prefix)},
                  {"at", change.at.time_since_epoch().count()}};
  if (change.removed) return {{"no_policy", std::move(members)}};
  members["pools"] = policy.pools;
  members["minimum_age_s"] = policy.minimum_age_s;
  members["batch_age_s"] = policy.batch_age_s;
  members["batch_count"] = policy.batch_count;
  members["batch_bytes"] = policy.batch_bytes;
  members["bundle_below_bytes"] = policy.bundle_below_bytes;
  members["verify"] = policy.verify;
  return {{"policy", std::move(members)}};
}

base::Error broken(std::string_view name) {
  return base::fail(Code::data_loss, "journal: missing or wrong: " + std::string(name));
}

Result<std::string> text_field(const json& object, const char* name) {
  const auto field = object.find(name);
  if (field == object.end() || !field->is_string()) return broken(name);
  return field->get<std::string>();
}

Result<std::string> bytes_field(const json& object, const char* name) {
  TRY(const std::string text, text_field(object, name));
  const auto bytes = base::from_base64(text);
  if (!bytes.has_value()) return broken(name);
  return std::string(base::as_text(*bytes));
}

template <class Number>
Result<Number> number_field(const json& object, const char* name) {
  const auto field = object.find(name);
  if (field == object.end() || !field->is_number_unsigned() ||
      field->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<Number>::max()))
    return broken(name);
  return field->get<Number>();
}

Result<std::vector<std::string>> texts_field(const json& object, const char* name) {
  const auto field = object.find(name);
  if (field == object.end() || !field->is_array()) return broken(name);
  std::vector<std::string> texts;
  for (const json& item : *field) {
    if (!item.is_string()) return broken(name);
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

Result<Death> decode_death(const json& members) {
  Death death;
  TRY(death.name.bucket, bytes_field(members, "bucket"));
  TRY(death.name.key, bytes_field(members, "key"));
  TRY(death.generation, text_field(members, "generation"));
  return death;
}

Result<PolicyChange> decode_policy(const json& members, bool removed) {
  PolicyChange change{.policy = {}, .removed = removed, .at = {}};
  Policy& policy = change.policy;
  TRY(policy.bucket, bytes_field(members, "bucket"));
  TRY(policy.prefix, bytes_field(members, "prefix"));
  TRY(const auto at, number_field<std::int64_t>(members, "at"));
  change.at = base::TimePoint{base::Duration{at}};
  if (removed) return change;
  TRY(policy.pools, texts_field(members, "pools"));
  TRY(policy.minimum_age_s, number_field<std::uint32_t>(members, "minimum_age_s"));
  TRY(policy.batch_age_s, number_field<std::uint32_t>(members, "batch_age_s"));
  TRY(policy.batch_count, number_field<std::uint64_t>(members, "batch_count"));
  TRY(policy.batch_bytes, number_field<std::uint64_t>(members, "batch_bytes"));
  TRY(policy.bundle_below_bytes, number_field<std::uint64_t>(members, "bundle_below_bytes"));
  TRY(policy.verify, text_field(members, "verify"));
  return change;
}

Result<void> decode_line(const json& line, Journal& journal) {
  if (!line.is_object()) return base::fail(Code::data_loss, "journal: a line is no JSON object");
  for (const char* kind : {"dead", "policy", "no_policy"}) {
    const auto members = line.find(kind);
    if (members == line.end()) continue;
    if (!members->is_object()) return broken(kind);
    if (kind == std::string_view("dead")) {
      TRY(Death death, decode_death(*members));
      journal.deaths.push_back(std::move(death));
    } else {
      TRY(PolicyChange change, decode_policy(*members, kind == std::string_view("no_policy")));
      journal.policies.push_back(std::move(change));
    }
  }
  return {};
}

}  // namespace

std::string encode_journal(const Journal& journal) {
  std::string text;
  for (const Death& death : journal.deaths) text += line_of(death).dump() + "\n";
  for (const PolicyChange& change : journal.policies) text += line_of(change).dump() + "\n";
  return text;
}

Result<Journal> decode_journal(std::string_view text) {
  Journal journal;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty()) TRY_VOID(decode_line(json::parse(line, nullptr, false), journal));
  }
  return journal;
}

}  // namespace reelway::archive
