#include "client/reply.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reelway::client {
namespace {

using base::Code;
using Fields = std::vector<base::HttpField>;

base::HttpResponseHead head_of(int status, const Fields& fields) {
  base::HttpResponseHead head{.status = status, .fields = {}, .content_length = {}};
  for (const auto& field : fields) head.fields.add(field.name, field.value);
  return head;
}

constexpr const char* kReply = "x-amz-rdma-reply";
constexpr const char* kBytes = "x-amz-rdma-bytes-transferred";
constexpr int kContradiction = -1;

struct Row {
  std::string what;
  int status;
  Fields fields;
  std::uint64_t body_bytes;
  int verdict;
};

int verdict_of(const base::Result<Judgement>& judged) {
  if (judged) return static_cast<int>(judged->verdict);
  EXPECT_EQ(judged.error().code, Code::data_loss);
  return kContradiction;
}
int is(Verdict verdict) { return static_cast<int>(verdict); }

TEST(ClientReply, Get) {
  const std::vector<Row> rows = {
      {"whole", 200, {{kReply, "200"}, {kBytes, "10"}}, 0, is(Verdict::moved)},
      {"empty object", 200, {{kReply, "200"}, {kBytes, "0"}}, 0, is(Verdict::moved)},
      {"range",
       206,
       {{kReply, "206"}, {kBytes, "5"}, {"Content-Range", "bytes 5-9/20"}},
       0,
       is(Verdict::moved)},
      {"declined", 200, {{kReply, "501"}}, 10, is(Verdict::in_band)},
      {"declined range", 206, {{kReply, "501"}}, 10, is(Verdict::in_band)},
      {"unknowing server", 200, {}, 10, is(Verdict::in_band)},
      {"declined as an error", 501, {{kReply, "501"}}, 300, is(Verdict::declined)},
      {"501 without reply", 501, {}, 300, is(Verdict::declined)},
      {"not found", 404, {}, 300, is(Verdict::failed)},
      {"transfer failed", 500, {}, 300, is(Verdict::failed)},
      {"pair 200/206", 200, {{kReply, "206"}, {kBytes, "10"}}, 0, kContradiction},
      {"pair 206/200", 206, {{kReply, "200"}, {kBytes, "10"}}, 0, kContradiction},
      {"reply with a suffix", 200, {{kReply, "200 "}, {kBytes, "10"}}, 0, kContradiction},
      {"reply with a sign", 200, {{kReply, "+200"}, {kBytes, "10"}}, 0, kContradiction},
      {"body and window", 200, {{kReply, "200"}, {kBytes, "10"}}, 1, kContradiction},
      {"no byte count", 200, {{kReply, "200"}}, 0, kContradiction},
      {"broken byte count", 200, {{kReply, "200"}, {kBytes, "10/20"}}, 0, kContradiction},
      {"more than the window", 200, {{kReply, "200"}, {kBytes, "11"}}, 0, kContradiction},
      {"range without range", 206, {{kReply, "206"}, {kBytes, "5"}}, 0, kContradiction},
      {"other range",
       206,
       {{kReply, "206"}, {kBytes, "5"}, {"Content-Range", "bytes 5-8/20"}},
       0,
       kContradiction},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(verdict_of(judge_get(head_of(row.status, row.fields), row.body_bytes, 10)), row.verdict)
        << row.what;
  }
}

TEST(ClientReply, Put) {
  const std::vector<Row> rows = {
      {"stored", 200, {{kReply, "200"}, {kBytes, "10"}, {"ETag", "\"x\""}}, 0, is(Verdict::moved)},
      {"stored, 204", 200, {{kReply, "204"}, {kBytes, "10"}, {"ETag", "\"x\""}}, 0, is(Verdict::moved)},
      {"declined", 501, {{kReply, "501"}}, 0, is(Verdict::declined)},
      {"declined with 200, stored nothing", 200, {{kReply, "501"}}, 0, is(Verdict::declined)},
      {"unknowing server", 200, {{"ETag", "\"x\""}}, 0, is(Verdict::ignored)},
      {"bad digest", 400, {}, 0, is(Verdict::failed)},
      {"transfer failed", 500, {}, 0, is(Verdict::failed)},
      {"strange reply", 200, {{kReply, "206"}, {kBytes, "10"}, {"ETag", "\"x\""}}, 0, kContradiction},
      {"short", 200, {{kReply, "200"}, {kBytes, "9"}, {"ETag", "\"x\""}}, 0, kContradiction},
      {"no byte count", 200, {{kReply, "200"}, {"ETag", "\"x\""}}, 0, kContradiction},
      {"no ETag", 200, {{kReply, "200"}, {kBytes, "10"}}, 0, kContradiction},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(verdict_of(judge_put(head_of(row.status, row.fields), 10)), row.verdict) << row.what;
  }
}

TEST(ClientReply, ToldChecksum) {
  const std::uint64_t check = 0xae8b14860a799888;  // CRC64NVME of "123456789"
  EXPECT_EQ(*told_crc64nvme(head_of(200, {{"x-amz-rdma-checksum", "CRC64NVME rosUhgp5mIg="}}).fields), check);
  EXPECT_EQ(*told_crc64nvme(head_of(200, {{"x-amz-rdma-checksum-crc64nvme", "rosUhgp5mIg="}}).fields), check);
  EXPECT_EQ(*told_crc64nvme(head_of(200, {}).fields), std::nullopt);
  EXPECT_EQ(*told_crc64nvme(head_of(200, {{"x-amz-rdma-checksum", "CRC32C 4waSgw=="}}).fields), std::nullopt);
  EXPECT_FALSE(told_crc64nvme(head_of(200, {{"x-amz-rdma-checksum", "CRC64NVME ros"}}).fields));
}

}  // namespace
}  // namespace reelway::client
