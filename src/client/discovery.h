#pragma once
// Which plane client and server share.

#include <string>
#include <vector>

#include "base/result.h"

namespace reelway::client {

struct ServerFacts {
  std::vector<std::string> providers;  ///< of form ofi1
  std::uint64_t small_object_bytes = 0;
};

/// Reads the document of GET /.well-known/reelway; unknown members are ignored. invalid_argument: it is not
/// such a document.
base::Result<ServerFacts> parse_facts(const std::string& json);

/// The address of this machine from which the host is reached; the same as the host's own when it is this
/// machine.
struct Route {
  std::string local_address;
  bool same_machine = false;
};
/// unavailable: the host has no address.
base::Result<Route> find_route(const std::string& host);

/// The server's providers in the order in which they are to be tried.
std::vector<std::string> rank(const std::vector<std::string>& providers, bool same_machine,
                              const std::string& wanted);

}  // namespace reelway::client
