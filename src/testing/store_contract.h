#pragma once
// What object/store.h promises, as tests over any store: each store's test program includes this once and
// instantiates StoreContract with a factory. The stores are called from one thread unless a test says
// otherwise.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "object/tiered.h"
#include "testing/run_task.h"
#include "testing/sources.h"

namespace reelway::testing {

/// A store with whatever it needs to live.
class StoreHolder {
 public:
  virtual ~StoreHolder() = default;
  virtual object::Store& store() = 0;
  /// Lets so much time pass that objects may be archived.
  virtual void let_objects_settle() {}
};

struct StoreFactory {
  std::string name;
  std::function<std::unique_ptr<StoreHolder>()> make;
};

class StoreContract : public ::testing::TestWithParam<StoreFactory> {
 protected:
  void SetUp() override {
    holder_ = GetParam().make();
    ASSERT_NE(holder_, nullptr);
    ASSERT_TRUE(make_bucket("bucket"));
  }
  object::Store& store() { return holder_->store(); }
  object::Multipart& multipart() { return *store().multipart(); }

  base::Result<void> make_bucket(std::string name) {
    return run_task(
        store().create_bucket({.name = std::move(name), .created = kMade, .owner = "owner", .region = "r1"}));
  }
  base::Result<object::ObjectInfo> put(std::string key, std::string_view bytes, std::string etag = "e1",
                                       object::Conditions conditions = {}) {
    object::MemorySource source(base::as_bytes(bytes));
    object::PutRequest request{.name = {"bucket", std::move(key)},
                               .attributes = {},
                               .conditions = std::move(conditions),
                               .seal = seal_with(std::move(etag))};
    request.attributes.user["note"] = "n";
    return run_task(store().put(std::move(request), source));
  }
  base::Result<object::ObjectInfo> head(std::string key, object::Conditions conditions = {}) {
    return run_task(store().head({.name = {"bucket", std::move(key)}, .conditions = std::move(conditions)}));
  }
  base::Result<std::unique_ptr<object::Reader>> open(std::string key,
                                                     std::optional<object::RangeRequest> range = {},
                                                     std::optional<std::uint32_t> part = {}) {
    return run_task(store().get(
        {.name = {"bucket", std::move(key)}, .conditions = {}, .range = range, .part_number = part}));
  }
  static base::Result<std::string> read_all(object::ByteSource& reader) {
    std::string out;
    std::array<std::byte, 1000> buffer;
    for (;;) {
      TRY(const std::size_t count, run_task(reader.read(buffer)));
      if (count == 0) return out;
      out += base::as_text(base::ByteView(buffer).first(count));
    }
  }
  base::Result<std::string> get(std::string key, std::optional<object::RangeRequest> range = {},
                                std::optional<std::uint32_t> part = {}) {
    TRY(const std::unique_ptr<object::Reader> reader, open(std::move(key), range, part));
    return read_all(*reader);
  }
  base::Result<bool> remove(std::string key, object::Conditions conditions = {}) {
    return run_task(
        store().remove({.name = {"bucket", std::move(key)}, .conditions = std::move(conditions)}));
  }
  object::ListPage list(std::string prefix, std::string delimiter = "", std::string start_after = "",
                        std::size_t count_max = 1000) {
    auto page = run_task(store().list({.bucket = "bucket",
                                       .prefix = std::move(prefix),
                                       .delimiter = std::move(delimiter),
                                       .start_after = std::move(start_after),
                                       .count_max = count_max}));
    EXPECT_TRUE(page) << to_string(page.error());
    return page ? std::move(*page) : object::ListPage{};
  }
  std::vector<std::string> keys(const object::ListPage& page) {
    std::vector<std::string> out;
    for (const auto& object : page.objects) out.push_back(object.name.key);
    return out;
  }
  template <class T>
  static base::Code code_of(const base::Result<T>& result) {
    EXPECT_FALSE(result);
    return result ? base::Code::internal : result.error().code;
  }

  static constexpr base::TimePoint kMade{std::chrono::seconds{1'600'000'000}};
  std::unique_ptr<StoreHolder> holder_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreContract);

TEST_P(StoreContract, BucketsComeAndGo) {
  EXPECT_EQ(code_of(make_bucket("bucket")), base::Code::already_exists);
  ASSERT_TRUE(make_bucket("a-bucket"));
  const auto info = run_task(store().head_bucket("bucket"));
  ASSERT_TRUE(info);
  EXPECT_EQ(info->owner, "owner");
  EXPECT_EQ(info->region, "r1");
  EXPECT_EQ(info->created, kMade);
  const auto all = run_task(store().list_buckets());
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].name, "a-bucket");
  EXPECT_EQ((*all)[1].name, "bucket");
  EXPECT_TRUE(run_task(store().delete_bucket("a-bucket")));
  EXPECT_TRUE(object::is_bucket_not_found(error_of(run_task(store().delete_bucket("a-bucket")))));
  EXPECT_TRUE(object::is_bucket_not_found(error_of(run_task(store().head_bucket("a-bucket")))));
}

TEST_P(StoreContract, ABucketWithObjectsIsNotDeleted) {
  for (const std::string key : {"a/b/c", "odd//key"}) {
    ASSERT_TRUE(put(key, "x"));
    EXPECT_EQ(code_of(run_task(store().delete_bucket("bucket"))), base::Code::not_empty);
    EXPECT_EQ(get(key).value_or(""), "x");
    ASSERT_TRUE(remove(key));
  }
  EXPECT_TRUE(run_task(store().delete_bucket("bucket")));
}

TEST_P(StoreContract, ObjectsAreWhatWasPut) {
  ChoppySource source(std::string(100'000, 'x') + "end");
  object::PutRequest request{.name = {"bucket", "dir/key"}, .attributes = {}, .conditions = {}, .seal = {}};
  request.attributes = {.headers = {{"content-type", "text/x"}},
                        .user = {{"a", std::string("\xff\n", 2)}},
                        .storage_class = "STANDARD_IA",
                        .owner = "me"};
  const std::vector<object::Checksum> sums{
      {.kind = base::ChecksumKind::crc32, .value = base::Bytes(4, std::byte{1}), .composite_part_count = 0}};
  int seals = 0;
  request.seal = [&]() -> base::Result<object::Seal> {
    ++seals;
    return object::Seal{.etag = "tag", .checksums = sums};
  };
  const auto attributes = request.attributes;
  const auto stored = run_task(store().put(std::move(request), source));
  ASSERT_TRUE(stored) << to_string(stored.error());
  EXPECT_EQ(seals, 1);
  const auto info = head("dir/key");
  ASSERT_TRUE(info);
  for (const auto& one : {*stored, *info}) {
    EXPECT_EQ(one.size, 100'003u);
    EXPECT_EQ(one.etag, "tag");
    EXPECT_EQ(one.attributes, attributes);
    EXPECT_EQ(one.checksums, sums);
    EXPECT_EQ(one.generation.size(), 26u);
    EXPECT_EQ(one.residency, object::Residency::resident);
  }
  EXPECT_EQ(stored->generation, info->generation);
  EXPECT_EQ(stored->last_modified, info->last_modified);
  EXPECT_EQ(get("dir/key").value_or(""), std::string(100'000, 'x') + "end");
}

TEST_P(StoreContract, LargeObjectsComeBackWhole) {
  std::string bytes(3'000'001, '\0');
  std::minstd_rand random(7);
  for (char& c : bytes) c = static_cast<char>(random());
  ASSERT_TRUE(put("large", bytes));
  EXPECT_TRUE(get("large").value_or("") == bytes);
}

TEST_P(StoreContract, EmptyObjectsAreObjects) {
  ASSERT_TRUE(put("empty", ""));
  EXPECT_EQ(must(head("empty")).size, 0u);
  EXPECT_EQ(get("empty").value_or("?"), "");
  EXPECT_EQ(code_of(get("empty", object::RangeRequest{.first = 0, .last = {}})), base::Code::out_of_range);
}

TEST_P(StoreContract, MissingThingsAreToldApart) {
  EXPECT_TRUE(object::is_object_not_found(error_of(head("none"))));
  EXPECT_TRUE(object::is_object_not_found(error_of(get("none"))));
  EXPECT_TRUE(object::is_object_not_found(error_of(head("none/below"))));
  object::MemorySource source({});
  object::PutRequest request{
      .name = {"nobucket", "k"}, .attributes = {}, .conditions = {}, .seal = seal_with("e")};
  EXPECT_TRUE(object::is_bucket_not_found(error_of(run_task(store().put(std::move(request), source)))));
  EXPECT_TRUE(object::is_bucket_not_found(
      error_of(run_task(store().head({.name = {"nobucket", "k"}, .conditions = {}})))));
  EXPECT_TRUE(object::is_bucket_not_found(error_of(
      run_task(store().list({.bucket = "nobucket", .prefix = {}, .delimiter = {}, .start_after = {}})))));
  EXPECT_TRUE(object::is_bucket_not_found(
      error_of(run_task(store().remove({.name = {"nobucket", "k"}, .conditions = {}})))));
}

TEST_P(StoreContract, APutReplacesWithANewGeneration) {
  const auto first = put("k", "one", "e1");
  const auto reader = open("k");
  ASSERT_TRUE(reader);
  const auto second = put("k", "two!", "e2");
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->generation, second->generation);
  EXPECT_EQ(get("k").value_or(""), "two!");
  EXPECT_EQ(must(head("k")).etag, "e2");
  EXPECT_EQ(read_all(**reader).value_or(""), "one") << "a reader keeps the version that it opened";
}

TEST_P(StoreContract, APutThatFailsLeavesNoTrace) {
  for (const std::string key : {"new/folder/key", "odd//key", "old"}) {
    const bool is_old = key == "old";
    if (is_old) ASSERT_TRUE(put(key, "before", "e0"));
    ChoppySource broken(std::string(70'000, 'y'), base::fail(base::Code::closed, "gone"));
    object::PutRequest request{
        .name = {"bucket", key}, .attributes = {}, .conditions = {}, .seal = seal_with("e")};
    EXPECT_EQ(code_of(run_task(store().put(std::move(request), broken))), base::Code::closed);
    ChoppySource good("bytes");
    object::PutRequest refused{
        .name = {"bucket", key}, .attributes = {}, .conditions = {}, .seal = [] {
          return base::Result<object::Seal>(base::fail(base::Code::checksum_mismatch, "no"));
        }};
    EXPECT_EQ(code_of(run_task(store().put(std::move(refused), good))), base::Code::checksum_mismatch);
    if (is_old) {
      EXPECT_EQ(get(key).value_or(""), "before");
      EXPECT_EQ(must(head(key)).etag, "e0");
    } else {
      EXPECT_TRUE(object::is_object_not_found(error_of(head(key))));
      EXPECT_TRUE(list("").objects.empty());
    }
  }
}

TEST_P(StoreContract, WriteConditionsHold) {
  ASSERT_TRUE(put("k", "1", "e1", if_none_match("*")));
  EXPECT_EQ(code_of(put("k", "2", "e2", if_none_match("*"))), base::Code::precondition_failed);
  EXPECT_EQ(code_of(put("k", "2", "e2", if_match("other"))), base::Code::precondition_failed);
  EXPECT_TRUE(put("k", "2", "e2", if_match("e1")));
  EXPECT_EQ(code_of(put("none", "2", "e2", if_match("e1"))), base::Code::not_found);
  EXPECT_EQ(get("k").value_or(""), "2");
}

TEST_P(StoreContract, OfManyConditionalPutsOneWins) {
  std::atomic<int> won = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      if (put("raced", std::string(1000, static_cast<char>('a' + i)), "e" + std::to_string(i),
              if_none_match("*")))
        ++won;
    });
  }
  threads.clear();
  EXPECT_EQ(won, 1);
  const std::string winner = must(head("raced")).etag;
  EXPECT_EQ(get("raced").value_or(""), std::string(1000, static_cast<char>('a' + winner[1] - '0')));
}

TEST_P(StoreContract, ReadConditionsHold) {
  ASSERT_TRUE(put("k", "1", "e1"));
  EXPECT_EQ(code_of(head("k", if_match("x"))), base::Code::precondition_failed);
  EXPECT_EQ(code_of(head("k", if_none_match("e1"))), base::Code::not_modified);
  EXPECT_TRUE(head("k", if_match("e1")));
}

TEST_P(StoreContract, RangesGiveExactlyTheirBytes) {
  ASSERT_TRUE(put("k", "0123456789"));
  EXPECT_EQ(get("k", object::RangeRequest{.first = 2, .last = 4}).value_or(""), "234");
  EXPECT_EQ(get("k", object::RangeRequest{.first = 7, .last = {}}).value_or(""), "789");
  EXPECT_EQ(get("k", object::RangeRequest{.first = {}, .last = 2}).value_or(""), "89");
  EXPECT_EQ(code_of(get("k", object::RangeRequest{.first = 10, .last = {}})), base::Code::out_of_range);
  const auto reader = open("k", object::RangeRequest{.first = 2, .last = 4});
  ASSERT_TRUE(reader);
  EXPECT_EQ((*reader)->range(), (base::ByteRange{2, 3}));
  EXPECT_EQ((*reader)->info().size, 10u);
  EXPECT_EQ((*reader)->length(), 3u);
  EXPECT_EQ(get("k", {}, 1).value_or(""), "0123456789") << "part 1 of an object without parts is the whole";
  EXPECT_EQ(code_of(get("k", {}, 2)), base::Code::out_of_range);
}

TEST_P(StoreContract, RemovingIsIdempotent) {
  ASSERT_TRUE(put("a/b", "1", "e1"));
  EXPECT_EQ(code_of(remove("a/b", if_match("x"))), base::Code::precondition_failed);
  EXPECT_TRUE(must(remove("a/b", if_match("e1"))));
  EXPECT_FALSE(must(remove("a/b")));
  EXPECT_FALSE(must(remove("never")));
  EXPECT_TRUE(object::is_object_not_found(error_of(head("a/b"))));
}

TEST_P(StoreContract, AnyKeyIsAKey) {
  const std::vector<std::string> all{"a",
                                     "a/",
                                     "a/b",
                                     "a/b/",
                                     "a//b",
                                     "/lead",
                                     "..",
                                     "../x",
                                     "x/../y",
                                     ".",
                                     "./z",
                                     ".reelway/site.key",
                                     ".hidden",
                                     "with space",
                                     "\xff\xfe",
                                     std::string("nul\0key", 7),
                                     std::string(255, 'l'),
                                     std::string(256, 'm'),
                                     std::string(300, 'n') + "/" + std::string(300, 'o'),
                                     "tail/.",
                                     "tail/..",
                                     "a b/\n",
                                     "é/ü",
                                     "//",
                                     "a/b/c/d/e/f/g"};
  for (const auto& key : all) {
    const auto stored = put(key, "of " + key, "e");
    ASSERT_TRUE(stored) << key << ": " << to_string(stored.error());
  }
  for (const auto& key : all) {
    EXPECT_EQ(get(key).value_or("(gone)"), "of " + key);
    EXPECT_EQ(must(head(key)).name.key, key);
  }
  auto sorted = all;
  std::ranges::sort(sorted);
  EXPECT_EQ(keys(list("")), sorted);
  for (const auto& key : all) EXPECT_TRUE(must(remove(key))) << key;
  EXPECT_TRUE(list("").objects.empty());
  EXPECT_TRUE(run_task(store().delete_bucket("bucket")));
}

TEST_P(StoreContract, ListsAreInByteOrderOfTheWholeKey) {
  for (const char* key : {"a/b", "a", "a-b", "a0", "a/", "b/c/d", "b.c"}) ASSERT_TRUE(put(key, "1"));
  EXPECT_EQ(keys(list("")), (std::vector<std::string>{"a", "a-b", "a/", "a/b", "a0", "b.c", "b/c/d"}));
  const auto page = list("", "/");
  EXPECT_EQ(keys(page), (std::vector<std::string>{"a", "a-b", "a0", "b.c"}));
  EXPECT_EQ(page.common_prefixes, (std::vector<std::string>{"a/", "b/"}));
  EXPECT_EQ(keys(list("a/")), (std::vector<std::string>{"a/", "a/b"}));
  EXPECT_EQ(list("b", "/").common_prefixes, (std::vector<std::string>{"b/"}));
  EXPECT_EQ(keys(list("b/c/", "/")), (std::vector<std::string>{"b/c/d"}));
  EXPECT_EQ(list("b", "c").common_prefixes, (std::vector<std::string>{"b.c", "b/c"}));
  EXPECT_TRUE(list("zzz").objects.empty());
  EXPECT_FALSE(list("", "", "", 7).truncated);
  EXPECT_TRUE(list("", "", "", 6).truncated);
  EXPECT_TRUE(list("", "", "", 0).objects.empty());
  EXPECT_FALSE(list("", "", "", 0).truncated);
  EXPECT_EQ(list("").objects[0].size, 1u);
}

/// The contract of ListRequest, over a sorted map.
inline object::ListPage model_list(const std::set<std::string>& keys, const object::ListRequest& request) {
  object::ListPage page;
  std::string last;
  for (const std::string& key : keys) {
    if (!key.starts_with(request.prefix)) continue;
    const std::size_t at =
        request.delimiter.empty() ? std::string::npos : key.find(request.delimiter, request.prefix.size());
    const std::string shown = at == std::string::npos ? key : key.substr(0, at + request.delimiter.size());
    const bool is_common = at != std::string::npos;
    if (shown <= request.start_after && !(request.start_after.empty())) continue;
    if (is_common && !page.common_prefixes.empty() && page.common_prefixes.back() == shown) continue;
    if (page.objects.size() + page.common_prefixes.size() == request.count_max) {
      page.truncated = true;
      page.next_start_after = last;
      return page;
    }
    last = shown;
    if (is_common) {
      page.common_prefixes.push_back(shown);
    } else {
      page.objects.emplace_back().name.key = shown;
    }
  }
  return page;
}

TEST_P(StoreContract, ListsAgreeWithASortedMap) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<std::string> parts{"a", "b", "a-", "a0", "/", "/", "//", ".", "..", "-", "\xff", "zz"};
  const auto random_text = [&](std::size_t count_max) {
    std::string text;
    for (std::size_t i = random() % (count_max + 1); i-- > 0;) text += parts[random() % parts.size()];
    return text;
  };
  std::set<std::string> model;
  for (int i = 0; i < 120; ++i) {
    const std::string key = random_text(6);
    if (key.empty()) continue;
    ASSERT_TRUE(put(key, "1")) << key;
    model.insert(key);
    if (random() % 5 == 0) {
      const auto victim = std::next(model.begin(), static_cast<std::ptrdiff_t>(random() % model.size()));
      ASSERT_TRUE(must(remove(*victim))) << *victim;
      model.erase(victim);
    }
  }
  for (int i = 0; i < 200; ++i) {
    object::ListRequest request{.bucket = "bucket",
                                .prefix = random_text(2),
                                .delimiter = random() % 3 == 0   ? ""
                                             : random() % 2 == 0 ? "/"
                                                                 : random_text(1),
                                .start_after = random() % 2 == 0 ? "" : random_text(4),
                                .count_max = 1 + random() % 30};
    for (int pages = 0; pages < 200; ++pages) {
      SCOPED_TRACE("prefix=" + request.prefix + " delimiter=" + request.delimiter +
                   " start_after=" + request.start_after);
      const auto expected = model_list(model, request);
      const auto actual = list(request.prefix, request.delimiter, request.start_after, request.count_max);
      ASSERT_EQ(keys(actual), keys(expected));
      ASSERT_EQ(actual.common_prefixes, expected.common_prefixes);
      ASSERT_EQ(actual.truncated, expected.truncated);
      ASSERT_EQ(actual.next_start_after, expected.next_start_after);
      if (!actual.truncated) break;
      request.start_after = actual.next_start_after;
    }
  }
}

TEST_P(StoreContract, CopiesCarryWhatTheyShould) {
  ASSERT_TRUE(put("from", "bytes", "e1"));
  const auto copied = run_task(store().copy({.source = {"bucket", "from"},
                                             .source_conditions = {},
                                             .target = {"bucket", "d/to"},
                                             .target_conditions = {},
                                             .replace_attributes = {},
                                             .storage_class = {}}));
  ASSERT_TRUE(copied) << to_string(copied.error());
  EXPECT_EQ(get("d/to").value_or(""), "bytes");
  EXPECT_EQ(must(head("d/to")).etag, "e1");
  EXPECT_EQ(must(head("d/to")).attributes.user.at("note"), "n");
  EXPECT_NE(must(head("d/to")).generation, must(head("from")).generation);

  object::Attributes attributes;
  attributes.user["note"] = "other";
  ASSERT_TRUE(run_task(store().copy({.source = {"bucket", "from"},
                                     .source_conditions = {},
                                     .target = {"bucket", "from"},
                                     .target_conditions = {},
                                     .replace_attributes = attributes,
                                     .storage_class = {}})));
  EXPECT_EQ(must(head("from")).attributes.user.at("note"), "other");
  EXPECT_EQ(get("from").value_or(""), "bytes");

  const auto refused = [&](object::Conditions source, object::Conditions target, std::string from) {
    return code_of(run_task(store().copy({.source = {"bucket", std::move(from)},
                                          .source_conditions = std::move(source),
                                          .target = {"bucket", "d/to"},
                                          .target_conditions = std::move(target),
                                          .replace_attributes = {},
                                          .storage_class = {}})));
  };
  EXPECT_EQ(refused(if_match("x"), {}, "from"), base::Code::precondition_failed);
  EXPECT_EQ(refused(if_none_match("e1"), {}, "from"), base::Code::precondition_failed);
  EXPECT_EQ(refused({}, if_none_match("*"), "from"), base::Code::precondition_failed);
  EXPECT_EQ(refused({}, {}, "none"), base::Code::not_found);
}

}  // namespace reelway::testing
