#include "rdma/ofi/peer_rules.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>

#include "base/encoding.h"

namespace reelway::rdma::ofi {
namespace {

base::Bytes name_of(const std::string& address) {
  base::Bytes name(sizeof(sockaddr_in6));
  sockaddr_in four{.sin_family = AF_INET, .sin_port = htons(7), .sin_addr = {}, .sin_zero = {}};
  if (inet_pton(AF_INET, address.c_str(), &four.sin_addr) == 1) {
    name.resize(sizeof four);
    std::memcpy(name.data(), &four, sizeof four);
    return name;
  }
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  EXPECT_EQ(inet_pton(AF_INET6, address.c_str(), &six.sin6_addr), 1) << address;
  std::memcpy(name.data(), &six, sizeof six);
  return name;
}

bool allows(const std::vector<std::string>& networks, const std::string& requester,
            const std::string& endpoint) {
  const auto rules = PeerRules::create(networks);
  EXPECT_TRUE(rules);
  base::HttpPeer peer;
  peer.address = requester;
  return rules->check(name_of(endpoint), peer).has_value();
}

TEST(PeerRules, TheRequestersOwnAddressIsAllowed) {
  EXPECT_TRUE(allows({}, "192.0.2.1", "192.0.2.1"));
  EXPECT_TRUE(allows({}, "::ffff:192.0.2.1", "192.0.2.1")) << "IPv4 in IPv6 clothes";
  EXPECT_TRUE(allows({}, "2001:db8::1", "2001:db8::1"));
  EXPECT_FALSE(allows({}, "192.0.2.1", "192.0.2.2"));
  EXPECT_FALSE(allows({}, "2001:db8::1", "2001:db8::2"));
  EXPECT_FALSE(allows({}, "", "0.0.0.0"));
}

TEST(PeerRules, ListedNetworksAreAllowedToTheirLastBit) {
  const std::vector<std::string> networks{"10.1.0.0/15", "198.51.100.7", "2001:db8:8000::/33"};
  EXPECT_TRUE(allows(networks, "192.0.2.1", "10.0.0.1"));
  EXPECT_TRUE(allows(networks, "192.0.2.1", "10.1.255.255"));
  EXPECT_FALSE(allows(networks, "192.0.2.1", "10.2.0.0"));
  EXPECT_TRUE(allows(networks, "192.0.2.1", "198.51.100.7"));
  EXPECT_FALSE(allows(networks, "192.0.2.1", "198.51.100.6"));
  EXPECT_TRUE(allows(networks, "192.0.2.1", "2001:db8:ffff::"));
  EXPECT_FALSE(allows(networks, "192.0.2.1", "2001:db8:7fff::"));
  EXPECT_TRUE(allows({"0.0.0.0/0"}, "192.0.2.1", "203.0.113.9"));
  EXPECT_FALSE(allows({"0.0.0.0/0"}, "192.0.2.1", "2001:db8::1"));
}

TEST(PeerRules, WrongNetworksAreNamed) {
  for (const char* text :
       {"", "10.0.0.0/33", "10.0.0/8", "2001:db8::/129", "10.0.0.0/", "10.0.0.0/x", "host"}) {
    const auto rules = PeerRules::create({"10.0.0.0/8", text});
    ASSERT_FALSE(rules) << text;
    EXPECT_NE(rules.error().detail.find(text), std::string::npos);
  }
}

TEST(PeerRules, WhatIsNoSocketAddressIsDenied) {
  const auto rules = PeerRules::create({"0.0.0.0/0", "::/0"});
  base::HttpPeer peer;
  peer.address = "192.0.2.1";
  auto name = name_of("192.0.2.1");
  EXPECT_TRUE(rules->check(name, peer));
  name.pop_back();
  EXPECT_FALSE(rules->check(name, peer));
  EXPECT_FALSE(rules->check({}, peer));
  EXPECT_FALSE(rules->check(base::as_bytes(std::string_view("fi_shm://1:0:0")), peer));
}

}  // namespace
}  // namespace reelway::rdma::ofi
