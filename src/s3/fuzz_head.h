#pragma once
// Makes a request head of a fuzzer's bytes. Only for fuzzers.

#include <string_view>

#include "base/http_head.h"

namespace reelway::s3 {

inline base::HttpRequestHead fuzz_head(std::string_view text) {
  const auto line = [&] {
    const auto end = text.find('\n');
    const std::string_view taken = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    return taken;
  };
  base::HttpRequestHead head;
  head.method = line();
  head.target = line();
  while (!text.empty()) {
    const std::string_view field = line();
    const auto colon = field.find(": ");
    if (colon != std::string_view::npos)
      head.fields.add(std::string(field.substr(0, colon)), std::string(field.substr(colon + 2)));
  }
  return head;
}

}  // namespace reelway::s3
