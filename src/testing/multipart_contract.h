#pragma once
// What object::Multipart promises. Included beside store_contract.h by stores that have it.

#include "testing/store_contract.h"

namespace reelway::testing {

class MultipartContract : public StoreContract {
 protected:
  std::string begin(std::string key) {
    object::CreateUploadRequest request{.name = {"bucket", std::move(key)},
                                        .attributes = {},
                                        .checksum_kind = base::ChecksumKind::crc32,
                                        .checksum_full_object = true};
    request.attributes.user["note"] = "upload";
    const auto upload = run_task(multipart().create_upload(std::move(request)));
    EXPECT_TRUE(upload);
    return upload ? upload->upload_id : "";
  }
  base::Result<object::PartInfo> put_part(std::string key, std::string id, std::uint32_t number,
                                          std::string bytes) {
    ChoppySource source(bytes);
    object::PutPartRequest request{.name = {"bucket", std::move(key)},
                                   .upload_id = std::move(id),
                                   .part_number = number,
                                   .seal = seal_with("p" + std::to_string(number))};
    return run_task(multipart().put_part(std::move(request), source));
  }
  base::Result<object::ObjectInfo> complete(std::string key, std::string id,
                                            std::vector<std::uint32_t> numbers,
                                            object::Conditions conditions = {}) {
    TRY(std::vector<object::PartInfo> checked, checked_parts(key, id, numbers));
    return complete_checked(std::move(key), std::move(id), std::move(checked), std::move(conditions));
  }
  static object::PartInfo never_seen(std::uint32_t number) {
    object::PartInfo part;
    part.part_number = number;
    return part;
  }
  /// As the store lists them.
  base::Result<std::vector<object::PartInfo>> checked_parts(const std::string& key, const std::string& id,
                                                            const std::vector<std::uint32_t>& numbers) {
    TRY(const object::PartPage page, parts(key, id));
    std::vector<object::PartInfo> checked;
    for (const std::uint32_t number : numbers) {
      const auto found = std::ranges::find(page.parts, number, &object::PartInfo::part_number);
      checked.push_back(found != page.parts.end() ? *found : never_seen(number));
    }
    return checked;
  }
  base::Result<object::ObjectInfo> complete_checked(std::string key, std::string id,
                                                    std::vector<object::PartInfo> checked,
                                                    object::Conditions conditions = {}) {
    return run_task(multipart().complete_upload({.name = {"bucket", std::move(key)},
                                                 .upload_id = std::move(id),
                                                 .parts = std::move(checked),
                                                 .seal = {.etag = "whole-2", .checksums = {}},
                                                 .conditions = std::move(conditions)}));
  }
  base::Result<object::PartPage> parts(std::string key, std::string id, std::uint32_t after = 0,
                                       std::size_t count_max = 1000) {
    return run_task(multipart().list_parts({.name = {"bucket", std::move(key)},
                                            .upload_id = std::move(id),
                                            .after = after,
                                            .count_max = count_max}));
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MultipartContract);

TEST_P(MultipartContract, PartsBecomeAnObject) {
  const std::string id = begin("dir/big");
  const std::string one(70'000, '1');
  ASSERT_TRUE(put_part("dir/big", id, 3, "three"));
  ASSERT_TRUE(put_part("dir/big", id, 1, "to be replaced"));
  ASSERT_TRUE(put_part("dir/big", id, 1, one));
  ASSERT_TRUE(put_part("dir/big", id, 9, "not named"));
  EXPECT_TRUE(object::is_object_not_found(error_of(head("dir/big")))) << "nothing is visible before";
  const auto done = complete("dir/big", id, {1, 3});
  ASSERT_TRUE(done) << to_string(done.error());
  EXPECT_TRUE(get("dir/big").value_or("") == one + "three");
  const auto info = head("dir/big");
  EXPECT_EQ(info->etag, "whole-2");
  EXPECT_EQ(info->attributes.user.at("note"), "upload");
  EXPECT_EQ(info->part_sizes, (std::vector<std::uint64_t>{70'000, 5}));
  EXPECT_EQ(get("dir/big", {}, 2).value_or(""), "three");
  EXPECT_EQ(code_of(get("dir/big", {}, 3)), base::Code::out_of_range);
  EXPECT_TRUE(object::is_upload_not_found(error_of(complete("dir/big", id, {1, 3}))));
  EXPECT_TRUE(object::is_upload_not_found(error_of(parts("dir/big", id))));
}

TEST_P(MultipartContract, PartsAreListedByNumber) {
  const std::string id = begin("k");
  for (const std::uint32_t number : {10000u, 2u, 30u}) ASSERT_TRUE(put_part("k", id, number, "x"));
  const auto page = parts("k", id, 0, 2);
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->truncated);
  ASSERT_EQ(page->parts.size(), 2u);
  EXPECT_EQ(page->parts[0].part_number, 2u);
  EXPECT_EQ(page->parts[0].etag, "p2");
  EXPECT_EQ(page->parts[0].size, 1u);
  EXPECT_EQ(page->parts[1].part_number, 30u);
  EXPECT_EQ(page->upload.checksum_kind, base::ChecksumKind::crc32);
  EXPECT_TRUE(page->upload.checksum_full_object);
  const auto rest = parts("k", id, 30);
  ASSERT_TRUE(rest);
  EXPECT_FALSE(rest->truncated);
  ASSERT_EQ(rest->parts.size(), 1u);
  EXPECT_EQ(rest->parts[0].part_number, 10000u);
}

TEST_P(MultipartContract, APartUploadedAnewAfterTheCheckIsNotJoined) {
  const std::string id = begin("k");
  const auto checked = put_part("k", id, 1, "checked");
  ASSERT_TRUE(checked);
  ChoppySource source("another");
  object::PutPartRequest anew{
      .name = {"bucket", "k"}, .upload_id = id, .part_number = 1, .seal = seal_with("anew")};
  ASSERT_TRUE(run_task(multipart().put_part(std::move(anew), source)));
  EXPECT_EQ(code_of(complete_checked("k", id, {*checked})), base::Code::invalid_argument);
  EXPECT_TRUE(object::is_object_not_found(error_of(head("k"))));
  ASSERT_TRUE(put_part("k", id, 1, "checked")) << "the same bytes again are as good";
  ASSERT_TRUE(complete_checked("k", id, {*checked}));
  EXPECT_EQ(get("k").value_or(""), "checked");
}

TEST_P(MultipartContract, AFailedCompleteLeavesTheUpload) {
  const std::string id = begin("k");
  ASSERT_TRUE(put_part("k", id, 1, "1"));
  EXPECT_EQ(code_of(complete("k", id, {1, 2})), base::Code::invalid_argument);
  ASSERT_TRUE(put("k", "there"));
  EXPECT_EQ(code_of(complete("k", id, {1}, if_none_match("*"))), base::Code::precondition_failed);
  EXPECT_EQ(get("k").value_or(""), "there");
  EXPECT_TRUE(complete("k", id, {1}));
  EXPECT_EQ(get("k").value_or(""), "1");
}

TEST_P(MultipartContract, AFailedPartLeavesTheOldOne) {
  const std::string id = begin("k");
  ASSERT_TRUE(put_part("k", id, 1, "good"));
  ChoppySource broken("bad", base::fail(base::Code::closed, "gone"));
  object::PutPartRequest request{
      .name = {"bucket", "k"}, .upload_id = id, .part_number = 1, .seal = seal_with("x")};
  EXPECT_EQ(code_of(run_task(multipart().put_part(std::move(request), broken))), base::Code::closed);
  ASSERT_TRUE(complete("k", id, {1}));
  EXPECT_EQ(get("k").value_or(""), "good");
}

TEST_P(MultipartContract, AbortedUploadsAreGone) {
  const std::string id = begin("k");
  ASSERT_TRUE(put_part("k", id, 1, "1"));
  EXPECT_TRUE(object::is_upload_not_found(error_of(parts("other", id)))) << "an upload belongs to its key";
  EXPECT_TRUE(run_task(multipart().abort_upload({"bucket", "k"}, id)));
  EXPECT_TRUE(object::is_upload_not_found(error_of(run_task(multipart().abort_upload({"bucket", "k"}, id)))));
  EXPECT_TRUE(object::is_upload_not_found(error_of(put_part("k", id, 1, "1"))));
  EXPECT_TRUE(object::is_upload_not_found(error_of(put_part("k", "../../escape", 1, "1"))));
}

TEST_P(MultipartContract, UploadsAreListedByKeyThenTime) {
  const std::string first = begin("b");
  const std::string second = begin("b");
  begin("a/x");
  begin("c");
  const auto page = [&](std::string delimiter, std::string key_marker, std::string id_marker,
                        std::size_t count_max) {
    auto result = run_task(multipart().list_uploads({.bucket = "bucket",
                                                     .prefix = "",
                                                     .delimiter = std::move(delimiter),
                                                     .key_marker = std::move(key_marker),
                                                     .upload_id_marker = std::move(id_marker),
                                                     .count_max = count_max}));
    EXPECT_TRUE(result);
    return result ? std::move(*result) : object::UploadPage{};
  };
  const auto all = page("", "", "", 100);
  ASSERT_EQ(all.uploads.size(), 4u);
  EXPECT_EQ(all.uploads[0].name.key, "a/x");
  EXPECT_EQ(all.uploads[3].name.key, "c");
  EXPECT_EQ((std::set<std::string>{all.uploads[1].upload_id, all.uploads[2].upload_id}),
            (std::set<std::string>{first, second}));
  EXPECT_EQ(page("/", "", "", 100).common_prefixes, std::vector<std::string>{"a/"});
  const auto two = page("", "", "", 2);
  EXPECT_TRUE(two.truncated);
  const auto rest = page("", two.next_key_marker, two.next_upload_id_marker, 100);
  ASSERT_EQ(rest.uploads.size(), 2u);
  EXPECT_EQ(rest.uploads[0].upload_id, all.uploads[2].upload_id);
  EXPECT_EQ(page("", "b", "", 100).uploads.size(), 1u);
}

}  // namespace reelway::testing
