#include "client/discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reelway::client {
namespace {

using testing::ElementsAre;

TEST(Discovery, ReadsTheServersDocument) {
  const auto facts = parse_facts(
      R"({"version":"1","planes":[{"form":"ofi1","provider":"tcp","window_max":1},{"form":"dc","provider":"mlx5"},)"
      R"({"form":"ofi1","provider":"shm"}],"small_object_bytes":65536,"checksums":["CRC32"],"later":{}})");
  ASSERT_TRUE(facts) << to_string(facts.error());
  EXPECT_THAT(facts->providers, ElementsAre("tcp", "shm"));
  EXPECT_EQ(facts->small_object_bytes, 65536U);
}

TEST(Discovery, RefusesWhatIsNotOne) {
  for (const char* text :
       {"", "null", "[]", "{", "{}", R"({"planes":{}})", R"({"planes":[1]})",
        R"({"planes":[{"form":"ofi1"}]})", R"({"planes":[{"form":"ofi1","provider":5}]})"}) {
    EXPECT_FALSE(parse_facts(text)) << text;
  }
}

TEST(Discovery, SharedMemoryFirstAndOnlyOnOneMachine) {
  const std::vector<std::string> all = {"tcp", "verbs;ofi_rxm", "shm"};
  EXPECT_THAT(rank(all, true, ""), ElementsAre("shm", "verbs;ofi_rxm", "tcp"));
  EXPECT_THAT(rank(all, false, ""), ElementsAre("verbs;ofi_rxm", "tcp"));
  EXPECT_THAT(rank(all, true, "tcp"), ElementsAre("tcp"));
  EXPECT_THAT(rank(all, false, "shm"), ElementsAre());
}

TEST(Discovery, LoopbackIsThisMachine) {
  const auto route = find_route("127.0.0.1");
  ASSERT_TRUE(route) << to_string(route.error());
  EXPECT_TRUE(route->same_machine);
  EXPECT_EQ(route->local_address, "127.0.0.1");
  EXPECT_FALSE(find_route("no such host"));
}

}  // namespace
}  // namespace reelway::client
