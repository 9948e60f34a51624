#pragma once
// What LTFS allows as a name (LTFS 2.4.0, section 7.4): UTF-8 in normal form C, 1 to 255 code points, no '/'
// and no NUL; ':' and what XML cannot hold is percent-encoded, then the whole name.

#include <string>
#include <string_view>

#include "base/result.h"

namespace reelway::tape::ltfs {

/// True when exactly these bytes can be a name on an LTFS volume and come back unchanged. "." and ".." are no
/// names.
bool is_storable_name(std::string_view name);
/// The same for every component of an absolute path ("/bucket/key"); no empty component, at most 256
/// components.
bool is_storable_path(std::string_view path);
/// Normal form C; invalid_argument when not UTF-8.
base::Result<std::string> to_normal_form_c(std::string_view name);

bool is_xml_text(std::string_view text);  ///< valid UTF-8 of characters that XML 1.0 can hold
bool needs_percent_encoding(std::string_view name);
std::string percent_encode_name(std::string_view name);
base::Result<std::string> percent_decode_name(std::string_view text);

}  // namespace reelway::tape::ltfs
