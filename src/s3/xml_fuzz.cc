#include "s3/xml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reelway::s3;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)parse_complete_multipart_upload(text);
  (void)parse_create_bucket(text);
  (void)parse_restore(text);
  (void)parse_error_document(text);
  if (const auto body = parse_delete(text)) {
    for (const auto& entry : body->objects) (void)xml_escape(entry.key);
  }
  return 0;
}
