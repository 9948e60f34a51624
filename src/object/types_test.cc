#include "object/types.h"

#include <gtest/gtest.h>

#include "object/store.h"

namespace reelway::object {
namespace {

using base::Code;
using std::chrono::milliseconds;
using std::chrono::seconds;

ObjectInfo object_with(std::string etag, base::TimePoint modified) {
  ObjectInfo info;
  info.etag = std::move(etag);
  info.last_modified = modified;
  return info;
}

Conditions conditions(std::vector<std::string> match, std::vector<std::string> none_match = {},
                      std::optional<base::TimePoint> modified_since = {},
                      std::optional<base::TimePoint> unmodified_since = {}) {
  return {.if_match = std::move(match),
          .if_none_match = std::move(none_match),
          .if_modified_since = modified_since,
          .if_unmodified_since = unmodified_since};
}

Code code_of(const base::Result<void>& result) { return result ? Code::internal : result.error().code; }

const base::TimePoint kNoon{seconds{1'700'000'000}};

TEST(ReadConditions, EmptyAlwaysHolds) { EXPECT_TRUE(check_read_conditions({}, object_with("a", kNoon))); }

TEST(ReadConditions, IfMatchNeedsOneOfTheETagsOrAny) {
  const auto info = object_with("a", kNoon);
  EXPECT_TRUE(check_read_conditions(conditions({"b", "a"}), info));
  EXPECT_TRUE(check_read_conditions(conditions({"*"}), info));
  EXPECT_EQ(code_of(check_read_conditions(conditions({"b"}), info)), Code::precondition_failed);
}

TEST(ReadConditions, IfMatchTrueWinsOverIfUnmodifiedSinceFalse) {
  EXPECT_TRUE(check_read_conditions(conditions({"a"}, {}, {}, kNoon - seconds{9}), object_with("a", kNoon)));
}

TEST(ReadConditions, IfNoneMatchDecidesOverIfModifiedSince) {
  const auto info = object_with("a", kNoon);
  EXPECT_EQ(code_of(check_read_conditions(conditions({}, {"a"}, kNoon - seconds{9}), info)),
            Code::not_modified);
  EXPECT_TRUE(check_read_conditions(conditions({}, {"b"}, kNoon + seconds{9}), info));
}

TEST(ReadConditions, TimesCompareByWholeSeconds) {
  const auto info = object_with("a", kNoon + milliseconds{900});
  EXPECT_TRUE(check_read_conditions(conditions({}, {}, {}, kNoon), info));
  EXPECT_EQ(code_of(check_read_conditions(conditions({}, {}, kNoon), info)), Code::not_modified);
  EXPECT_EQ(code_of(check_read_conditions(conditions({}, {}, {}, kNoon - seconds{1}), info)),
            Code::precondition_failed);
  EXPECT_TRUE(check_read_conditions(conditions({}, {}, kNoon - seconds{1}), info));
}

TEST(WriteConditions, IfNoneMatchAnyNeedsAbsence) {
  const auto info = object_with("a", kNoon);
  EXPECT_TRUE(check_write_conditions(conditions({}, {"*"}), nullptr));
  EXPECT_EQ(code_of(check_write_conditions(conditions({}, {"*"}), &info)), Code::precondition_failed);
}

TEST(WriteConditions, IfMatchOnNothingIsNotFound) {
  const auto info = object_with("a", kNoon);
  const auto missing = check_write_conditions(conditions({"a"}), nullptr);
  ASSERT_FALSE(missing);
  EXPECT_TRUE(is_object_not_found(missing.error()));
  EXPECT_TRUE(check_write_conditions(conditions({"a"}), &info));
  EXPECT_EQ(code_of(check_write_conditions(conditions({"b"}), &info)), Code::precondition_failed);
}

TEST(NotFound, TheThreeKindsAreToldApart) {
  EXPECT_TRUE(is_bucket_not_found(bucket_not_found("b")));
  EXPECT_TRUE(is_object_not_found(object_not_found({"b", "k"})));
  EXPECT_TRUE(is_upload_not_found(upload_not_found("u")));
  EXPECT_FALSE(is_object_not_found(bucket_not_found("b")));
  EXPECT_FALSE(is_bucket_not_found(upload_not_found("u")));
  EXPECT_FALSE(is_upload_not_found(object_not_found({"b", "k"})));
}

TEST(ResolveRange, AsS3HasIt) {
  const auto range = [](std::optional<std::uint64_t> first, std::optional<std::uint64_t> last,
                        std::uint64_t size) {
    const auto result = resolve_range({.first = first, .last = last}, size);
    return result ? std::optional(*result) : std::nullopt;
  };
  EXPECT_EQ(range(0, 9, 100), (base::ByteRange{0, 10}));
  EXPECT_EQ(range(90, 200, 100), (base::ByteRange{90, 10}));
  EXPECT_EQ(range(90, {}, 100), (base::ByteRange{90, 10}));
  EXPECT_EQ(range({}, 7, 100), (base::ByteRange{93, 7}));
  EXPECT_EQ(range({}, 700, 100), (base::ByteRange{0, 100}));
  EXPECT_EQ(range(0, UINT64_MAX, 100), (base::ByteRange{0, 100}));
  EXPECT_EQ(range(100, {}, 100), std::nullopt);
  EXPECT_EQ(range({}, 0, 100), std::nullopt);
  EXPECT_EQ(range({}, 5, 0), std::nullopt);
  EXPECT_EQ(range(5, 4, 100), std::nullopt);
}

}  // namespace
}  // namespace reelway::object
