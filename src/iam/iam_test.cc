#include <gtest/gtest.h>

#include <set>

#include "iam/accounts.h"
#include "iam/authorize.h"

namespace reelway::iam {
namespace {

constexpr Action kAllActions[] = {Action::list_all_my_buckets, Action::create_bucket, Action::delete_bucket, Action::list_bucket,
                                  Action::get_bucket_location, Action::list_bucket_multipart_uploads, Action::get_object,
                                  Action::put_object, Action::delete_object, Action::abort_multipart_upload,
                                  Action::list_multipart_upload_parts, Action::restore_object,
                                  Action::read_service_description, Action::administer};

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
  for (const Action action : kAllActions) {
    EXPECT_TRUE(allow(root, action, {"bucket", "key"})) << to_string(action);
    EXPECT_FALSE(allow(Principal{}, action, {"bucket", "key"})) << to_string(action);
  }
}

TEST(Authorize, EachActionHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const Action action : kAllActions) names.insert(to_string(action));
  EXPECT_EQ(names.size(), std::size(kAllActions));
}

}  // namespace
}  // namespace reelway::iam
