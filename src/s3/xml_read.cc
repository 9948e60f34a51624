#include <algorithm>
#include <array>
#include <charconv>
#include <pugixml.hpp>

#include "base/encoding.h"
#include "s3/request.h"
#include "s3/xml.h"

namespace reelway::s3 {

namespace {

constexpr std::size_t kDocumentBytesMax = 16 * base::kMiB;
constexpr int kDepthMax = 16;

std::string_view local_name(const pugi::xml_node& node) {
  const std::string_view name = node.name();
  const auto colon = name.find(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

bool within_depth(const pugi::xml_document& document) {
  int depth = 0;
  pugi::xml_node node = document.first_child();
  while (node) {
    if (node.first_child()) {
      if (++depth > kDepthMax) return false;
      node = node.first_child();
      continue;
    }
    while (node && !node.next_sibling()) {
      node = node.parent();
      --depth;
    }
    if (node) node = node.next_sibling();
  }
  return true;
}

/// Loads `xml` and returns its root element when that is `root` and nothing is odd about the document.
std::optional<pugi::xml_node> load(pugi::xml_document& document, std::string_view xml,
                                   std::string_view root) {
  if (xml.size() > kDocumentBytesMax) return std::nullopt;
  constexpr unsigned kOptions = pugi::parse_default | pugi::parse_ws_pcdata_single | pugi::parse_doctype;
  if (!document.load_buffer(xml.data(), xml.size(), kOptions, pugi::encoding_utf8)) return std::nullopt;
  for (const pugi::xml_node& node : document.children()) {
    if (node.type() == pugi::node_doctype) return std::nullopt;
  }
  if (!within_depth(document)) return std::nullopt;
  const pugi::xml_node element = document.document_element();
  if (!element || local_name(element) != root) return std::nullopt;
  return element;
}

pugi::xml_node child(const pugi::xml_node& parent, std::string_view name) {
  for (const pugi::xml_node& node : parent.children()) {
    if (node.type() == pugi::node_element && local_name(node) == name) return node;
  }
  return {};
}

std::string text_of(const pugi::xml_node& element) {
  std::string text;
  for (const pugi::xml_node& node : element.children()) {
    if (node.type() == pugi::node_pcdata || node.type() == pugi::node_cdata) text += node.value();
  }
  return text;
}

std::string child_text(const pugi::xml_node& parent, std::string_view name) {
  return text_of(child(parent, name));
}

/// For values in which white space around means nothing.
std::string trimmed(std::string text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string without_quotes(const std::string& etag) {
  const std::string text = trimmed(etag);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') return text.substr(1, text.size() - 2);
  return text;
}

Fault malformed() { return fault(ErrorCode::malformed_xml); }

Outcome<std::vector<Checksum>> part_checksums(const pugi::xml_node& part) {
  using enum base::ChecksumKind;
  std::vector<Checksum> checksums;
  for (const base::ChecksumKind kind : {crc32, crc32c, crc64nvme, sha1, sha256}) {
    const pugi::xml_node element = child(part, checksum_element(kind));
    if (!element) continue;
    auto value = base::from_base64(trimmed(text_of(element)));
    if (!value || value->size() != base::digest_size(kind)) {
      return fault_saying(ErrorCode::invalid_request,
                          "Value for " + checksum_header(kind) + " header is invalid.");
    }
    checksums.push_back({.kind = kind, .value = std::move(*value)});
  }
  return checksums;
}

Outcome<CompletedPart> completed_part(const pugi::xml_node& element) {
  const std::string number_text = trimmed(child_text(element, "PartNumber"));
  const auto number = base::parse_decimal(number_text);
  CompletedPart part;
  part.etag = without_quotes(child_text(element, "ETag"));
  if (!number || part.etag.empty()) return malformed();
  if (*number < 1 || *number > kPartNumberMax) {
    return invalid_argument("Part number must be an integer between 1 and 10000, inclusive", "PartNumber",
                            number_text);
  }
  part.part_number = static_cast<std::uint32_t>(*number);
  TRY(part.checksums, part_checksums(element));
  return part;
}

bool is_tier(std::string_view tier) { return tier == "Expedited" || tier == "Standard" || tier == "Bulk"; }

}  // namespace

Outcome<std::vector<CompletedPart>> parse_complete_multipart_upload(std::string_view xml) {
  pugi::xml_document document;
  const auto root = load(document, xml, "CompleteMultipartUpload");
  if (!root) return malformed();
  std::vector<CompletedPart> parts;
  for (const pugi::xml_node& node : root->children()) {
    if (local_name(node) != "Part") continue;
    if (parts.size() == kPartNumberMax) return malformed();
    TRY(auto part, completed_part(node));
    if (!parts.empty() && part.part_number <= parts.back().part_number)
      return fault(ErrorCode::invalid_part_order);
    parts.push_back(std::move(part));
  }
  if (parts.empty()) return malformed();
  return parts;
}

Outcome<DeleteBody> parse_delete(std::string_view xml) {
  pugi::xml_document document;
  const auto root = load(document, xml, "Delete");
  if (!root) return malformed();
  DeleteBody body;
  body.quiet = base::equals_ignoring_case(trimmed(child_text(*root, "Quiet")), "true");
  for (const pugi::xml_node& node : root->children()) {
    if (local_name(node) != "Object") continue;
    DeleteEntry entry;
    entry.key = child_text(node, "Key");
    entry.version_id = trimmed(child_text(node, "VersionId"));
    if (const pugi::xml_node etag = child(node, "ETag")) entry.etag = without_quotes(text_of(etag));
    if (entry.key.empty() || body.objects.size() == kPageMax) return malformed();
    body.objects.push_back(std::move(entry));
  }
  if (body.objects.empty()) return malformed();
  return body;
}

Outcome<CreateBucketBody> parse_create_bucket(std::string_view xml) {
  CreateBucketBody body;
  if (xml.empty()) return body;
  pugi::xml_document document;
  const auto root = load(document, xml, "CreateBucketConfiguration");
  if (!root) return malformed();
  body.location = trimmed(child_text(*root, "LocationConstraint"));
  return body;
}

Outcome<RestoreBody> parse_restore(std::string_view xml) {
  pugi::xml_document document;
  const auto root = load(document, xml, "RestoreRequest");
  if (!root) return malformed();
  if (child(*root, "Type") || child(*root, "SelectParameters"))
    return fault(ErrorCode::not_implemented, {{"Header", "SelectParameters"}});
  RestoreBody body;
  const std::string days_text = trimmed(child_text(*root, "Days"));
  const auto days = base::parse_decimal(days_text);
  if (!days) return malformed();
  if (*days < 1 || *days > 36'500) {
    return invalid_argument("Restoration days must be between 1 and 36500", "Days", days_text);
  }
  body.days = static_cast<std::uint32_t>(*days);
  const std::string job_tier = trimmed(child_text(child(*root, "GlacierJobParameters"), "Tier"));
  const std::string tier = job_tier.empty() ? trimmed(child_text(*root, "Tier")) : job_tier;
  if (!tier.empty()) body.tier = tier;
  if (!is_tier(body.tier)) return malformed();
  body.description = child_text(*root, "Description");
  return body;
}

base::Result<ParsedError> parse_error_document(std::string_view xml) {
  pugi::xml_document document;
  const auto root = load(document, xml, "Error");
  if (!root) return base::fail(base::Code::invalid_argument, "not an S3 error document");
  return ParsedError{.code = trimmed(child_text(*root, "Code")),
                     .message = child_text(*root, "Message"),
                     .request_id = trimmed(child_text(*root, "RequestId"))};
}

}  // namespace reelway::s3
