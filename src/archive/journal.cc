#include "archive/journal.h"

#include <nlohmann/json.hpp>

namespace reelway::archive {

using base::Code;
using base::Result;

std::string encode_journal(const std::vector<ObjectRow>& dead) {
  std::string text;
  for (const ObjectRow& row : dead) {
    const nlohmann::json line = {{"dead",
                                  {{"bucket", base::to_base64(base::as_bytes(row.name.bucket))},
                                   {"key", base::to_base64(base::as_bytes(row.name.key))},
                                   {"generation", row.identity.generation}}}};
    text += line.dump() + "\n";
  }
  return text;
}

namespace {

Result<std::string> text_field(const nlohmann::json& object, const char* name) {
  const auto field = object.find(name);
  if (field == object.end() || !field->is_string())
    return base::fail(Code::data_loss, std::string("journal: a death without ") + name);
  return field->get<std::string>();
}

Result<std::string> bytes_field(const nlohmann::json& object, const char* name) {
  TRY(const std::string text, text_field(object, name));
  const auto bytes = base::from_base64(text);
  if (!bytes.has_value())
    return base::fail(Code::data_loss, std::string("journal: broken base64 in ") + name);
  return std::string(base::as_text(*bytes));
}

}  // namespace

Result<std::vector<Death>> decode_journal(std::string_view text) {
  std::vector<Death> deaths;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) return base::fail(Code::data_loss, "journal: a line is no JSON object");
    const auto dead = json.find("dead");
    if (dead == json.end()) continue;
    if (!dead->is_object()) return base::fail(Code::data_loss, "journal: a death is no JSON object");
    Death death;
    TRY(death.name.bucket, bytes_field(*dead, "bucket"));
    TRY(death.name.key, bytes_field(*dead, "key"));
    TRY(death.generation, text_field(*dead, "generation"));
    deaths.push_back(std::move(death));
  }
  return deaths;
}

}  // namespace reelway::archive
