#include <gtest/gtest.h>

#include <string_view>

#include "iam/accounts.h"
#include "iam/authorize.h"

namespace reelway::iam {
namespace {

constexpr std::string_view kActions[] = {"s3:ListAllMyBuckets", "s3:GetObject", "s3:PutObject",
                                         "reelway:Administer", ""};

TEST(Accounts, FindsRootByItsKeyAndNobodyElse) {
  auto accounts = Accounts::with_root("AKIAROOT", "not-a-real-secret");
  ASSERT_TRUE(accounts.has_value());
  ASSERT_NE(accounts->find("AKIAROOT"), nullptr);
  EXPECT_EQ(accounts->find("AKIAROOT")->principal.role, Role::root);
  EXPECT_EQ(accounts->find("akiaroot"), nullptr);
  EXPECT_EQ(accounts->find(""), nullptr);
}

TEST(Accounts, OwnerIdsDoNotShowTheAccessKey) {
  const std::string id = canonical_id("AKIAROOT");
  EXPECT_EQ(id.size(), 64u);
  EXPECT_EQ(id.find("AKIAROOT"), std::string::npos);
  EXPECT_NE(id, canonical_id("AKIAROOU"));
}

TEST(Accounts, RefusesKeysThatCannotWork) {
  EXPECT_FALSE(Accounts::with_root("", "not-a-real-secret").has_value());
  EXPECT_FALSE(Accounts::with_root("a/b/c", "not-a-real-secret").has_value());
  EXPECT_FALSE(Accounts::with_root("AKIA ROOT", "not-a-real-secret").has_value());
  EXPECT_FALSE(Accounts::with_root("AKIAROOT", "short").has_value());
}

TEST(Accounts, ErrorsNeverRepeatTheSecret) {
  const auto refused = Accounts::with_root("AKIAROOT", "has a space");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().detail.find("has a space"), std::string::npos);
}

TEST(Authorize, RootMayDoEverythingAndAnonymousNothing) {
  const Principal root{.role = Role::root, .account_id = "id", .display_name = "root"};
  for (const std::string_view action : kActions) {
    EXPECT_TRUE(allow(root, action, {"bucket", "key"})) << action;
    EXPECT_FALSE(allow(Principal{}, action, {"bucket", "key"})) << action;
  }
}

}  // namespace
}  // namespace reelway::iam
