#pragma once
// A thin, defensive wrapper of libxml2's push parser: elements and text go to a handler as they arrive, so
// memory does not grow with the document. Refused with data_loss: what is not well-formed, document type
// declarations (and so all entities but XML's own five), nesting, single tags and documents beyond the
// limits. Nothing is ever fetched. Names come as written, prefix included.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace reelway::tape::ltfs {

struct XmlAttribute {
  std::string_view name;
  std::string_view value;
};

class XmlHandler {
 public:
  virtual ~XmlHandler() = default;
  virtual base::Result<void> start(std::string_view name, const std::vector<XmlAttribute>& attributes) = 0;
  virtual base::Result<void> text(std::string_view text) = 0;  ///< may come in pieces
  virtual base::Result<void> end(std::string_view name) = 0;
};

struct XmlLimits {
  std::uint64_t document_bytes_max = 1 << 20;
  std::uint64_t tag_bytes_max = 256 << 10;  ///< between two events
  std::uint32_t depth_max = 64;
};

class XmlParser {
 public:
  XmlParser(XmlHandler& handler, XmlLimits limits);
  ~XmlParser();
  base::Result<void> feed(base::ByteView bytes);
  base::Result<void> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// ---- writing ----
void append_escaped(std::string_view text, std::string& out);
/// <name>text</name> and a newline.
void append_element(std::string_view name, std::string_view text, std::string& out);

}  // namespace reelway::tape::ltfs
