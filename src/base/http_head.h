#pragma once
// The head of an HTTP/1.1 request or response as a plain value. Field names compare without regard to case;
// the order of fields is kept.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reelway::base {

struct HttpField {
  std::string name;
  std::string value;
};

bool equals_ignoring_case(std::string_view a, std::string_view b);

class HttpFields {
 public:
  void add(std::string name, std::string value) { fields_.push_back({std::move(name), std::move(value)}); }
  void set(std::string_view name, std::string value);
  void erase(std::string_view name);
  /// The first field of that name.
  std::optional<std::string_view> get(std::string_view name) const;
  std::string_view get_or(std::string_view name, std::string_view otherwise) const;
  bool contains(std::string_view name) const { return get(name).has_value(); }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }
  std::size_t size() const { return fields_.size(); }

 private:
  std::vector<HttpField> fields_;
};

struct HttpRequestHead {
  std::string method;
  std::string target;  ///< as on the wire: path and query, still percent-encoded
  HttpFields fields;
  std::optional<std::uint64_t> content_length;
  bool chunked = false;  ///< Transfer-Encoding: chunked
  bool expects_continue = false;
};

struct HttpResponseHead {
  int status = 200;
  HttpFields fields;
  /// Sent as Content-Length. Absent: chunked (or, for a HEAD, 204 and 304, nothing).
  std::optional<std::uint64_t> content_length;
};

/// Where a request came from, and which of our addresses it reached.
struct HttpPeer {
  std::string address;  ///< "127.0.0.1"
  std::uint16_t port = 0;
  bool tls = false;
  std::string local_address;
  std::uint16_t local_port = 0;  ///< 0: not known
};

}  // namespace reelway::base
