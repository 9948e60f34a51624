#pragma once
// The status page (page.html), whole: styles and script are inside, nothing is loaded from elsewhere but
// /status.json and /events.

#include <string_view>

namespace reelway::admin {

std::string_view status_page();

}  // namespace reelway::admin
