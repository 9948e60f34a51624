#include "tape/ltfs/attributes.h"

namespace reelway::tape::ltfs {

using base::Code;
using base::fail;
using base::Result;

namespace {

constexpr std::size_t kValueBytesMax = 4096;
constexpr std::string_view kGeneration = "reelway.generation";
constexpr std::string_view kBucket = "reelway.bucket";
constexpr std::string_view kKey = "reelway.key";
constexpr std::string_view kMeta = "reelway.meta.";
constexpr std::string_view kSha256 = "ltfs.hash.sha256sum";
constexpr std::size_t kPiecesMax = 4096;

/// promised the latter.
void add(std::vector<ExtendedAttribute>& out, std::string_view key, std::string_view value) {
  out.push_back({std::string(key), std::string(value)});
}

}  // namespace

std::vector<ExtendedAttribute> to_extended_attributes(const ObjectAttributes& attributes) {
  std::vector<ExtendedAttribute> out;
  add(out, kGeneration, attributes.generation);
  add(out, kBucket, attributes.bucket);
  add(out, kKey, attributes.key);
  if (!attributes.sha256.empty()) add(out, kSha256, attributes.sha256);
  auto rest = base::as_text(attributes.metadata);
  for (std::size_t piece = 0; !rest.empty(); ++piece) {
    add(out, std::string(kMeta) + std::to_string(piece), rest.substr(0, kValueBytesMax));
    rest.remove_prefix(std::min(rest.size(), kValueBytesMax));
  }
  return out;
}

Result<ObjectAttributes> from_extended_attributes(const Entry& entry) {
  const auto* generation = entry.attribute(kGeneration);
  const auto* bucket = entry.attribute(kBucket);
  const auto* key = entry.attribute(kKey);
  if (generation == nullptr || bucket == nullptr || key == nullptr) {
    return fail(Code::not_found, "not a file of Reelway's", base::Scope::object);
  }
  ObjectAttributes out;
  out.generation = *generation;
  out.bucket = *bucket;
  out.key = *key;
  if (const auto* sha256 = entry.attribute(kSha256)) out.sha256 = *sha256;
  std::size_t pieces = 0;
  for (const auto& attribute : entry.attributes) pieces += attribute.key.starts_with(kMeta) ? 1 : 0;
  if (pieces > kPiecesMax) return fail(Code::data_loss, "too many pieces of metadata", base::Scope::object);
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    const auto* value = entry.attribute(std::string(kMeta) + std::to_string(piece));
    if (value == nullptr)
      return fail(Code::data_loss, "a piece of the metadata is missing", base::Scope::object);
    const auto bytes = base::as_bytes(*value);
    out.metadata.insert(out.metadata.end(), bytes.begin(), bytes.end());
  }
  return out;
}

}  // namespace reelway::tape::ltfs
