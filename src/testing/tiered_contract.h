#pragma once
// What object::Tiered promises. Included beside store_contract.h by stores that have it.

#include "testing/store_contract.h"

namespace reelway::testing {

class TieredContract : public StoreContract {
 protected:
  object::Tiered& tiered() { return *store().tiered(); }
  static object::ObjectName name(std::string key) { return {"bucket", std::move(key)}; }
  base::Result<object::Identity> archive(std::string key) {
    TRY(const std::unique_ptr<object::ArchiveReader> reader,
        run_task(tiered().open_for_archive(name(std::move(key)))));
    TRY(archived_bytes_, read_all(*reader));
    return run_task(reader->confirm_unchanged());
  }
  base::Result<object::Identity> put_and_evict(std::string key, std::string bytes) {
    TRY_VOID(put(key, bytes));
    holder_->let_objects_settle();
    TRY(const object::Identity archived, archive(key));
    return run_task(tiered().evict(name(std::move(key)), archived));
  }
  static object::Checksum sha256_of(std::string_view bytes) {
    return {.kind = base::ChecksumKind::sha256,
            .value = base::digest_of(base::ChecksumKind::sha256, base::as_bytes(bytes)),
            .composite_part_count = 0};
  }
  base::Result<object::Identity> recall(std::string key, std::string generation, std::string bytes) {
    TRY(const std::unique_ptr<object::RecallWriter> writer,
        run_task(tiered().begin_recall(name(std::move(key)), std::move(generation))));
    TRY_VOID(run_task(writer->write(base::as_bytes(bytes))));
    return run_task(writer->commit(sha256_of(bytes)));
  }
  std::string archived_bytes_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TieredContract);

TEST_P(TieredContract, AnObjectGoesToTapeAndComesBack) {
  for (const std::string key : {"dir/key", "odd//key"}) {
    const std::string bytes(100'000, 'k');
    ASSERT_TRUE(put(key, bytes, "tag"));
    holder_->let_objects_settle();
    const auto before = head(key);
    const auto archived = archive(key);
    ASSERT_TRUE(archived) << to_string(archived.error());
    EXPECT_TRUE(archived_bytes_ == bytes);
    EXPECT_EQ(archived->generation, before->generation);
    const auto stub = run_task(tiered().evict(name(key), *archived));
    ASSERT_TRUE(stub) << to_string(stub.error());
    EXPECT_EQ(stub->size, bytes.size());

    const auto evicted = head(key);
    ASSERT_TRUE(evicted) << to_string(evicted.error());
    EXPECT_EQ(evicted->residency, object::Residency::evicted);
    EXPECT_EQ(evicted->size, bytes.size());
    EXPECT_EQ(evicted->etag, "tag");
    EXPECT_EQ(evicted->attributes, before->attributes);
    EXPECT_EQ(evicted->last_modified, before->last_modified);
    EXPECT_EQ(code_of(get(key)), base::Code::not_resident);
    ASSERT_EQ(list("").objects.size(), 1u);
    EXPECT_EQ(list("").objects[0].residency, object::Residency::evicted);
    EXPECT_EQ(code_of(run_task(tiered().open_for_archive(name(key)))), base::Code::not_resident);

    const auto landed = recall(key, before->generation, bytes);
    ASSERT_TRUE(landed) << to_string(landed.error());
    EXPECT_EQ(get(key).value_or(""), bytes);
    const auto after = head(key);
    EXPECT_EQ(after->residency, object::Residency::resident);
    EXPECT_EQ(after->generation, before->generation);
    EXPECT_EQ(after->etag, "tag");
    EXPECT_EQ(after->attributes, before->attributes);
    EXPECT_EQ(after->last_modified, before->last_modified);
    // What commit says is what the next evict needs.
    EXPECT_TRUE(run_task(tiered().evict(name(key), *landed)));
    ASSERT_TRUE(must(remove(key)));
    EXPECT_TRUE(list("").objects.empty());
  }
}

TEST_P(TieredContract, OnlyTheVersionThatWasArchivedIsEvicted) {
  ASSERT_TRUE(put("k", "one"));
  holder_->let_objects_settle();
  const auto archived = archive("k");
  ASSERT_TRUE(archived);
  ASSERT_TRUE(put("k", "two"));
  EXPECT_EQ(code_of(run_task(tiered().evict(name("k"), *archived))), base::Code::precondition_failed);
  EXPECT_EQ(get("k").value_or(""), "two");
  EXPECT_TRUE(object::is_object_not_found(error_of(run_task(tiered().evict(name("none"), *archived)))));
}

TEST_P(TieredContract, AnObjectReplacedWhileArchivedIsNotConfirmed) {
  ASSERT_TRUE(put("k", "one"));
  holder_->let_objects_settle();
  const auto reader = run_task(tiered().open_for_archive(name("k")));
  ASSERT_TRUE(reader) << to_string(reader.error());
  ASSERT_TRUE(put("k", "two"));
  EXPECT_EQ(read_all(**reader).value_or(""), "one");
  EXPECT_EQ(code_of(run_task((*reader)->confirm_unchanged())), base::Code::precondition_failed);
}

TEST_P(TieredContract, WhatChangedAMomentAgoIsLeftAlone) {
  ASSERT_TRUE(put("k", "one"));
  EXPECT_EQ(code_of(run_task(tiered().open_for_archive(name("k")))), base::Code::busy);
}

TEST_P(TieredContract, ARecallWithWrongBytesChangesNothing) {
  const auto stub = put_and_evict("k", "true bytes");
  ASSERT_TRUE(stub);
  {
    const auto writer = run_task(tiered().begin_recall(name("k"), stub->generation));
    ASSERT_TRUE(writer);
    ASSERT_TRUE(run_task((*writer)->write(base::as_bytes("false byte"))));
    EXPECT_EQ(code_of(run_task((*writer)->commit(sha256_of("true bytes")))), base::Code::checksum_mismatch);
  }
  {
    const auto writer = run_task(tiered().begin_recall(name("k"), stub->generation));
    ASSERT_TRUE(writer);
    ASSERT_TRUE(run_task((*writer)->write(base::as_bytes("short"))));
    EXPECT_EQ(code_of(run_task((*writer)->commit(sha256_of("short")))), base::Code::checksum_mismatch);
  }
  EXPECT_EQ(must(head("k")).residency, object::Residency::evicted);
  EXPECT_TRUE(recall("k", stub->generation, "true bytes"));
}

TEST_P(TieredContract, ALandingFileIsReadWhileItIsWrittenAndStaysWhatItIs) {
  const auto stub = put_and_evict("k", "old bytes");
  ASSERT_TRUE(stub);
  auto writer = run_task(tiered().begin_recall(name("k"), stub->generation));
  ASSERT_TRUE(writer);
  const auto file = (*writer)->file();
  const auto read = [&](std::uint64_t offset) {
    base::Bytes bytes(100);
    const std::size_t count = run_task(file->read(offset, bytes)).value_or(0);
    return std::string(base::as_text(bytes).substr(0, count));
  };
  EXPECT_EQ(read(0), "");
  ASSERT_TRUE(run_task((*writer)->write(base::as_bytes("old "))));
  EXPECT_EQ(read(1), "ld ");
  ASSERT_TRUE(run_task((*writer)->write(base::as_bytes("bytes"))));
  ASSERT_TRUE(run_task((*writer)->commit(sha256_of("old bytes"))));
  writer->reset();
  EXPECT_EQ(read(4), "bytes");
  ASSERT_TRUE(put("k", "new"));
  EXPECT_EQ(read(0), "old bytes");
}

TEST_P(TieredContract, ARecallNeverOverwritesANewVersion) {
  const auto stub = put_and_evict("k", "old");
  ASSERT_TRUE(stub);
  const auto writer = run_task(tiered().begin_recall(name("k"), stub->generation));
  ASSERT_TRUE(writer);
  ASSERT_TRUE(run_task((*writer)->write(base::as_bytes("old"))));
  ASSERT_TRUE(put("k", "new"));
  EXPECT_EQ(code_of(run_task((*writer)->commit(sha256_of("old")))), base::Code::precondition_failed);
  EXPECT_EQ(get("k").value_or(""), "new");
  EXPECT_EQ(code_of(run_task(tiered().begin_recall(name("k"), stub->generation))),
            base::Code::precondition_failed);
}

TEST_P(TieredContract, StubsAreMadeFromWhatATapeSays) {
  object::ObjectInfo info;
  info.name = name("from/tape");
  info.size = 5;
  info.etag = "tag";
  info.generation = "01HF000000000000000000000G";
  info.last_modified = kMade;
  info.attributes.user["note"] = "taped";
  ASSERT_TRUE(run_task(tiered().create_stub(info)));
  EXPECT_EQ(code_of(run_task(tiered().create_stub(info))), base::Code::already_exists);
  const auto evicted = head("from/tape");
  ASSERT_TRUE(evicted);
  EXPECT_EQ(evicted->residency, object::Residency::evicted);
  EXPECT_EQ(evicted->attributes, info.attributes);
  ASSERT_TRUE(recall("from/tape", info.generation, "bytes"));
  EXPECT_EQ(get("from/tape").value_or(""), "bytes");
  EXPECT_EQ(must(head("from/tape")).last_modified, kMade);
  EXPECT_EQ(must(head("from/tape")).generation, info.generation);
}

TEST_P(TieredContract, AScanTellsResidencyAndIdentity) {
  const auto stub = put_and_evict("a", "1");
  ASSERT_TRUE(stub);
  ASSERT_TRUE(put("b", "22"));
  ASSERT_TRUE(put("c", "333"));
  const auto all = run_task(tiered().scan("bucket", "", "", 100));
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 3u);
  EXPECT_EQ((*all)[0].info.residency, object::Residency::evicted);
  EXPECT_EQ((*all)[0].identity, *stub);
  EXPECT_EQ((*all)[1].info.residency, object::Residency::resident);
  EXPECT_EQ((*all)[1].identity.size, 2u);
  holder_->let_objects_settle();
  const auto archived = archive("b");
  ASSERT_TRUE(archived);
  EXPECT_EQ((*all)[1].identity, *archived);
  const auto rest = run_task(tiered().scan("bucket", "", "a", 1));
  ASSERT_TRUE(rest);
  ASSERT_EQ(rest->size(), 1u);
  EXPECT_EQ((*rest)[0].info.name.key, "b");
}

TEST_P(TieredContract, RecoveringARestingStoreChangesNothing) {
  ASSERT_TRUE(put_and_evict("a", "1"));
  ASSERT_TRUE(put("b", "2"));
  const auto conflicts = run_task(tiered().recover());
  ASSERT_TRUE(conflicts);
  EXPECT_TRUE(conflicts->empty());
  EXPECT_EQ(must(head("a")).residency, object::Residency::evicted);
  EXPECT_EQ(get("b").value_or(""), "2");
}

TEST_P(TieredContract, AnEvictedObjectCanBeOverwritten) {
  ASSERT_TRUE(put_and_evict("k", "old"));
  EXPECT_EQ(code_of(put("k", "x", "e", if_none_match("*"))), base::Code::precondition_failed);
  ASSERT_TRUE(put("k", "new"));
  EXPECT_EQ(get("k").value_or(""), "new");
}

}  // namespace reelway::testing
