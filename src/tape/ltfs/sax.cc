#include "tape/ltfs/sax.h"

#include <libxml/parser.h>

#include <algorithm>
#include <cstring>

namespace reelway::tape::ltfs {

using base::Code;
using base::fail;
using base::Result;

namespace {

constexpr std::size_t kFeedBytes = 64 << 10;  // so that limits are looked at often

base::Error damaged(std::string_view what) {
  return fail(Code::data_loss, "XML: " + std::string(what), base::Scope::cartridge);
}

std::string_view view_of(const xmlChar* text) { return reinterpret_cast<const char*>(text); }

}  // namespace

struct XmlParser::State {
  XmlHandler& handler;
  XmlLimits limits;
  xmlParserCtxtPtr context = nullptr;
  std::uint64_t document_bytes = 0;
  std::uint64_t bytes_since_event = 0;
  std::uint32_t depth = 0;
  std::vector<XmlAttribute> attributes;
  Result<void> outcome;

  void take(Result<void> result) {
    bytes_since_event = 0;
    if (result.has_value() || !outcome.has_value()) return;
    outcome = std::move(result);
    xmlStopParser(context);
  }

  static State& of(void* user) { return *static_cast<State*>(user); }
  static void on_start(void* user, const xmlChar* name, const xmlChar** attributes) {
    of(user).start(name, attributes);
  }
  static void on_end(void* user, const xmlChar* name) {
    --of(user).depth;
    if (of(user).outcome.has_value()) of(user).take(of(user).handler.end(view_of(name)));
  }
  static void on_text(void* user, const xmlChar* text, int length) {
    if (!of(user).outcome.has_value()) return;
    of(user).take(
        of(user).handler.text({reinterpret_cast<const char*>(text), static_cast<std::size_t>(length)}));
  }
  static void on_doctype(void* user, const xmlChar*, const xmlChar*, const xmlChar*) {
    of(user).take(damaged("document type declarations are refused"));
  }
  static void on_error(void*, const char*, ...) {}  // the parser's own return value tells

  void start(const xmlChar* name, const xmlChar** raw) {
    if (!outcome.has_value()) return;
    if (++depth > limits.depth_max) return take(damaged("nested too deeply"));
    attributes.clear();
    for (; raw != nullptr && raw[0] != nullptr; raw += 2) {
      attributes.push_back({view_of(raw[0]), raw[1] == nullptr ? std::string_view() : view_of(raw[1])});
    }
    take(handler.start(view_of(name), attributes));
  }

  Result<void> parse(base::ByteView piece, bool last) {
    const int error = xmlParseChunk(context, reinterpret_cast<const char*>(piece.data()),
                                    static_cast<int>(piece.size()), last ? 1 : 0);
    if (!outcome.has_value()) return outcome;
    if (error != XML_ERR_OK && context->wellFormed == 0) return damaged("not well-formed");
    return {};
  }
};

XmlParser::XmlParser(XmlHandler& handler, XmlLimits limits)
    : state_(std::make_unique<State>(
          State{.handler = handler, .limits = limits, .attributes = {}, .outcome = {}})) {
  xmlSAXHandler callbacks;
  std::memset(&callbacks, 0, sizeof callbacks);
  callbacks.initialized = 1;  // not XML_SAX2_MAGIC: names and attributes as written
  callbacks.startElement = &State::on_start;
  callbacks.endElement = &State::on_end;
  callbacks.characters = &State::on_text;
  callbacks.ignorableWhitespace = &State::on_text;
  callbacks.cdataBlock = &State::on_text;
  callbacks.internalSubset = &State::on_doctype;
  callbacks.error = &State::on_error;
  callbacks.warning = &State::on_error;
  state_->context = xmlCreatePushParserCtxt(&callbacks, state_.get(), nullptr, 0, nullptr);
  // HUGE lifts limits that a large index meets by right; ours take their place.
  if (state_->context != nullptr) xmlCtxtUseOptions(state_->context, XML_PARSE_NONET | XML_PARSE_HUGE);
}

XmlParser::~XmlParser() {
  if (state_->context != nullptr) xmlFreeParserCtxt(state_->context);
}

Result<void> XmlParser::feed(base::ByteView bytes) {
  if (state_->context == nullptr) throw std::bad_alloc();
  TRY_VOID(state_->outcome);
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kFeedBytes));
    bytes = bytes.subspan(piece.size());
    state_->document_bytes += piece.size();
    state_->bytes_since_event += piece.size();
    if (state_->document_bytes > state_->limits.document_bytes_max) return damaged("larger than allowed");
    TRY_VOID(state_->parse(piece, false));
    if (state_->bytes_since_event > state_->limits.tag_bytes_max) return damaged("a tag larger than allowed");
  }
  return {};
}

Result<void> XmlParser::finish() {
  if (state_->context == nullptr) throw std::bad_alloc();
  TRY_VOID(state_->outcome);
  TRY_VOID(state_->parse({}, true));
  if (state_->depth != 0 || state_->document_bytes == 0) return damaged("cut short");
  return {};
}

void append_escaped(std::string_view text, std::string& out) {
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\r':
        out += "&#13;";
        break;  // a bare one would come back as a line feed
      default:
        out += c;
    }
  }
}

void append_element(std::string_view name, std::string_view text, std::string& out) {
  out += '<';
  out += name;
  out += '>';
  append_escaped(text, out);
  out += "</";
  out += name;
  out += ">\n";
}

}  // namespace reelway::tape::ltfs
