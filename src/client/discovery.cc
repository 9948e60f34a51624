#include "client/discovery.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

namespace reelway::client {
namespace {

using base::Code;
using base::Result;

base::Error not_facts() {
  return base::fail(Code::invalid_argument, "the server's description is not a Reelway document");
}

std::string to_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET) {
    in_addr four{};
    std::memcpy(&four, reinterpret_cast<const char*>(address) + offsetof(sockaddr_in, sin_addr), sizeof four);
    inet_ntop(AF_INET, &four, text.data(), text.size());
  } else {
    in6_addr six{};
    std::memcpy(&six, reinterpret_cast<const char*>(address) + offsetof(sockaddr_in6, sin6_addr), sizeof six);
    inet_ntop(AF_INET6, &six, text.data(), text.size());
  }
  return text.data();
}

/// Connecting a datagram socket sends nothing and makes the kernel choose the local address.
Result<Route> route_to(const addrinfo& host) {
  const int socket = ::socket(host.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return base::from_errno(errno, "socket");
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  auto* address = reinterpret_cast<sockaddr*>(&own);
  const bool found =
      ::connect(socket, host.ai_addr, host.ai_addrlen) == 0 && ::getsockname(socket, address, &size) == 0;
  const int error = errno;
  ::close(socket);
  if (!found) return base::from_errno(error, "finding the way to the server");
  const std::string local = to_text(address);
  return Route{.local_address = local, .same_machine = local == to_text(host.ai_addr)};
}

}  // namespace

Result<ServerFacts> parse_facts(const std::string& json) {
  boost::json::error_code error;
  const auto document = boost::json::parse(json, error);
  const auto* root = error ? nullptr : document.if_object();
  const auto* planes = root == nullptr ? nullptr : root->if_contains("planes");
  if (planes == nullptr || planes->if_array() == nullptr) return not_facts();
  ServerFacts facts;
  for (const auto& entry : *planes->if_array()) {
    const auto* plane = entry.if_object();
    const auto* form = plane == nullptr ? nullptr : plane->if_contains("form");
    const auto* provider = plane == nullptr ? nullptr : plane->if_contains("provider");
    if (form == nullptr || provider == nullptr || !form->is_string() || !provider->is_string())
      return not_facts();
    if (form->as_string() == "ofi1") facts.providers.emplace_back(provider->as_string());
  }
  if (const auto* small = root->if_contains("small_object_bytes");
      small != nullptr && small->is_int64() && small->as_int64() > 0) {
    facts.small_object_bytes = static_cast<std::uint64_t>(small->as_int64());
  }
  return facts;
}

Result<Route> find_route(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(host.c_str(), "9", &hints, &found); code != 0) {
    return base::fail(Code::unavailable, "the server's host: " + std::string(gai_strerror(code)),
                      base::Scope::peer);
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  return route_to(*found);
}

std::vector<std::string> rank(const std::vector<std::string>& providers, bool same_machine,
                              const std::string& wanted) {
  // Memory of this very machine first, then what hardware moves, then sockets.
  const auto cost = [](const std::string& provider) {
    return provider == "shm" ? 0 : provider == "tcp" ? 2 : 1;
  };
  std::vector<std::string> ranked;
  for (int wanted_cost = 0; wanted_cost <= 2; ++wanted_cost) {
    for (const std::string& provider : providers) {
      if (cost(provider) != wanted_cost || (!wanted.empty() && provider != wanted)) continue;
      if (provider == "shm" && !same_machine) continue;
      ranked.push_back(provider);
    }
  }
  return ranked;
}

}  // namespace reelway::client
