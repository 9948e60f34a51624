#pragma once
// Builds a small XML document as text. Element names are trusted; texts are escaped. Only for this room's own
// documents.

#include <cstdint>
#include <string>
#include <string_view>

namespace reelway::s3 {

std::string xml_escape(std::string_view text);

class XmlWriter {
 public:
  XmlWriter() : out_("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n") {}

  void open(std::string_view name) { append("<", name, ">"); }
  /// The root element, in S3's namespace.
  void open_root(std::string_view name) {
    append("<", name, " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
  }
  void close(std::string_view name) { append("</", name, ">"); }
  void text(std::string_view name, std::string_view value) {
    open(name);
    out_ += xml_escape(value);
    close(name);
  }
  void number(std::string_view name, std::uint64_t value) { text(name, std::to_string(value)); }
  void boolean(std::string_view name, bool value) { text(name, value ? "true" : "false"); }
  void raw(std::string_view markup) { out_ += markup; }
  std::string take() && { return std::move(out_); }

 private:
  void append(std::string_view before, std::string_view name, std::string_view after) {
    out_ += before;
    out_ += name;
    out_ += after;
  }
  std::string out_;
};

}  // namespace reelway::s3
