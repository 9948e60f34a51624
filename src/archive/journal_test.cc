#include "archive/journal.h"

#include <gtest/gtest.h>

namespace reelway::archive {
namespace {

PolicyChange some_policy() {
  PolicyChange change;
  change.policy.bucket = "b";
  change.policy.prefix = "p\xff/";
  change.policy.pools = {"one", "two"};
  change.policy.minimum_age_s = 60;
  change.policy.verify = "none";
  change.at = base::TimePoint{std::chrono::nanoseconds{1'234'567'890'123'456'789}};
  return change;
}

TEST(Journal, ComesBackAsItWasWritten) {
  Journal journal;
  journal.deaths.push_back({{"b", std::string("k\0\xff\n", 4)}, "G1"});
  journal.policies.push_back(some_policy());
  PolicyChange removed;
  removed.policy.bucket = "b";
  removed.removed = true;
  removed.at = base::TimePoint{std::chrono::nanoseconds{5}};
  journal.policies.push_back(removed);
  const std::string text = encode_journal(journal);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  const auto again = decode_journal(text);
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(*again, journal);
}

TEST(Journal, LinesOfLaterVersionsAreSkipped) {
  const auto journal =
      decode_journal("{\"hold\": {\"key\": 1}}\n\n" + encode_journal({{{{"b", "k"}, "G"}}, {}}));
  ASSERT_TRUE(journal);
  EXPECT_EQ(journal->deaths.size(), 1U);
}

TEST(Journal, WhatIsWrongIsRefused) {
  for (const char* text :
       {"x", "[]", "{\"dead\": 1}", "{\"dead\": {\"bucket\": \"Yg==\"}}",
        "{\"dead\": {\"bucket\": \"!\", \"key\": \"Yg==\", \"generation\": \"G\"}}",
        "{\"no_policy\": {\"bucket\": \"Yg==\", \"prefix\": \"\"}}",
        "{\"no_policy\": {\"bucket\": \"Yg==\", \"prefix\": \"\", \"at\": -1}}",
        "{\"policy\": {\"bucket\": \"Yg==\", \"prefix\": \"\", \"at\": 1, \"pools\": \"a\"}}"}) {
    const auto journal = decode_journal(text);
    ASSERT_FALSE(journal) << text;
    EXPECT_EQ(journal.error().code, base::Code::data_loss) << text;
  }
}

}  // namespace
}  // namespace reelway::archive
