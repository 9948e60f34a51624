#include "s3client/reply_xml.h"

#include <fmt/format.h>

#include <pugixml.hpp>

namespace reelway::s3client {

namespace {

base::Error odd_answer(std::string_view what) {
  return base::fail(base::Code::unavailable, fmt::format("the server's {} is no such document", what));
}

base::Result<pugi::xml_node> load(pugi::xml_document& document, std::string_view xml, const char* root) {
  constexpr unsigned kOptions = pugi::parse_default | pugi::parse_ws_pcdata_single;
  if (!document.load_buffer(xml.data(), xml.size(), kOptions, pugi::encoding_utf8)) return odd_answer(root);
  const pugi::xml_node element = document.child(root);
  if (!element) return odd_answer(root);
  return element;
}

base::Result<std::string> decoded(const char* text) {
  return base::percent_decode(text, /*plus_is_space=*/false);
}

base::Result<s3::ObjectEntry> object_entry(const pugi::xml_node& node) {
  s3::ObjectEntry entry;
  TRY(entry.key, decoded(node.child_value("Key")));
  TRY(entry.size, base::parse_decimal(node.child_value("Size")));
  entry.etag = unquote(node.child_value("ETag"));
  entry.last_modified = s3::parse_iso8601(node.child_value("LastModified")).value_or(base::TimePoint{});
  if (const pugi::xml_node storage_class = node.child("StorageClass"))
    entry.storage_class = storage_class.child_value();
  return entry;
}

}  // namespace

std::string unquote(std::string_view etag) {
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  return std::string(etag);
}

base::Result<ListResult> parse_list_result(std::string_view xml) {
  pugi::xml_document document;
  TRY(const pugi::xml_node root, load(document, xml, "ListBucketResult"));
  ListResult result;
  for (const pugi::xml_node& node : root.children("Contents")) {
    TRY(auto entry, object_entry(node));
    result.objects.push_back(std::move(entry));
  }
  for (const pugi::xml_node& node : root.children("CommonPrefixes")) {
    TRY(auto prefix, decoded(node.child_value("Prefix")));
    result.common_prefixes.push_back(std::move(prefix));
  }
  result.truncated = std::string_view(root.child_value("IsTruncated")) == "true";
  result.next_continuation_token = root.child_value("NextContinuationToken");
  if (result.truncated && result.next_continuation_token.empty())
    return odd_answer("truncated list without a token");
  return result;
}

base::Result<std::vector<s3::BucketEntry>> parse_bucket_list(std::string_view xml) {
  pugi::xml_document document;
  TRY(const pugi::xml_node root, load(document, xml, "ListAllMyBucketsResult"));
  std::vector<s3::BucketEntry> buckets;
  for (const pugi::xml_node& node : root.child("Buckets").children("Bucket")) {
    buckets.push_back(
        {.name = node.child_value("Name"),
         .created = s3::parse_iso8601(node.child_value("CreationDate")).value_or(base::TimePoint{})});
  }
  return buckets;
}

base::Result<std::string> parse_upload_id(std::string_view xml) {
  pugi::xml_document document;
  TRY(const pugi::xml_node root, load(document, xml, "InitiateMultipartUploadResult"));
  std::string id = root.child_value("UploadId");
  if (id.empty()) return odd_answer("InitiateMultipartUploadResult without an upload id");
  return id;
}

base::Result<std::string> parse_complete_result(std::string_view xml) {
  pugi::xml_document document;
  TRY(const pugi::xml_node root, load(document, xml, "CompleteMultipartUploadResult"));
  return unquote(root.child_value("ETag"));
}

std::string write_complete_request(const std::vector<s3::CompletedPart>& parts) {
  std::string xml = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (const s3::CompletedPart& part : parts) {
    xml += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>\"{}\"</ETag></Part>", part.part_number,
                       s3::xml_escape(part.etag));
  }
  return xml + "</CompleteMultipartUpload>";
}

std::string write_restore_request(const RestoreOptions& options) {
  return fmt::format(
      "<RestoreRequest "
      "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Days>{}</Days><GlacierJobParameters><Tier>{}</Tier>"
      "</GlacierJobParameters></RestoreRequest>",
      options.days, s3::xml_escape(options.tier));
}

}  // namespace reelway::s3client
