#include "rdma/reply.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "rdma/planes.h"

namespace reelway::rdma {
namespace {

/// A header's value, or "-".
std::string field(const Answer& answer, std::string_view name) {
  return std::string(answer.fields.get_or(name, "-"));
}

struct Row {
  std::string what;
  Answer answer;
  int status;
  std::string reply;
  std::string bytes;
  std::string error_code;
  bool in_band;
};

TEST(Reply, StatusReplyBytesAndErrorOfEveryOutcome) {
  const std::vector<Row> rows = {
      {"GET", get_moved(false, 4096, {}), 200, "200", "4096", "", false},
      {"ranged GET", get_moved(true, 7, {}), 206, "206", "7", "", false},
      {"empty GET", get_moved(false, 0, {}), 200, "200", "0", "", false},
      {"PUT and UploadPart", put_stored(5, {}), 200, "200", "5", "", false},
      {"declined GET", get_declined(false, DeclineReason::busy, false), 200, "501", "-", "", true},
      {"declined ranged GET", get_declined(true, DeclineReason::size, false), 206, "501", "-", "", true},
      {"declined GET, RDMA required", get_declined(true, DeclineReason::size, true), 501, "501", "-",
       "NotImplemented", false},
      {"declined PUT", put_declined(DeclineReason::disabled), 501, "501", "-", "NotImplemented", false},
      {"malformed token", malformed_token(), 400, "-", "-", "InvalidRDMAToken", false},
      {"failed transfer", transfer_failed(), 500, "-", "-", "RDMATransferFailed", false},
      {"unsigned token", unsigned_token(), 403, "-", "-", "AccessDenied", false},
      {"token and body", token_with_body(), 400, "-", "-", "InvalidRequest", false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(row.answer.status, row.status) << row.what;
    EXPECT_EQ(field(row.answer, "x-amz-rdma-reply"), row.reply) << row.what;
    EXPECT_EQ(field(row.answer, "x-amz-rdma-bytes-transferred"), row.bytes) << row.what;
    EXPECT_EQ(row.answer.error_code, row.error_code) << row.what;
    EXPECT_EQ(row.answer.error_message.empty(), row.error_code.empty()) << row.what;
    EXPECT_EQ(row.answer.body_in_band, row.in_band) << row.what;
    EXPECT_FALSE(row.answer.fields.contains("etag")) << row.what;
  }
}

TEST(Reply, ChecksumHasTheFormsOfTheWire) {
  const Answer answer = get_moved(false, 9, 0xae8b14860a799888);  // CRC64NVME of "123456789"
  EXPECT_EQ(field(answer, "x-amz-rdma-checksum"), "CRC64NVME rosUhgp5mIg=");
  EXPECT_EQ(field(answer, "x-amz-rdma-checksum-crc64nvme"), "rosUhgp5mIg=");
  EXPECT_EQ(field(get_moved(false, 9, {}), "x-amz-rdma-checksum"), "-");
}

TEST(Reply, DeclineSaysWhy) {
  EXPECT_EQ(field(get_declined(false, DeclineReason::token_form, false), "x-amz-rdma-decline"), "token-form");
  EXPECT_EQ(field(put_declined(DeclineReason::policy), "x-amz-rdma-decline"), "policy");
}

TEST(Reply, RequireModeIsReadWithoutRegardToCase) {
  base::HttpFields fields;
  EXPECT_FALSE(rdma_required(fields));
  fields.add("X-Amz-RDMA-Mode", "Require");
  EXPECT_TRUE(rdma_required(fields));
  fields.set("x-amz-rdma-mode", "prefer");
  EXPECT_FALSE(rdma_required(fields));
}

class FakePlane final : public Plane {
 public:
  explicit FakePlane(std::string provider) : provider_(std::move(provider)) {}
  PlaneInfo info() const override { return {.form = "ofi1", .provider = provider_, .window_max = 1}; }
  base::Result<base::Window> parse(std::string_view token) const override {
    if (token.find(":" + provider_ + ":") == std::string_view::npos)
      return base::fail(base::Code::unsupported, "other");
    base::Window window;
    window.plane = "ofi1/" + provider_;
    return window;
  }
  base::Result<void> admit(const base::Window&, const base::HttpPeer&) const override { return {}; }
  async::Task<std::unique_ptr<Transfer>> open(base::Window, base::SteadyPoint) override { co_return nullptr; }
  async::Task<void> close() override { co_return base::Result<void>{}; }

 private:
  std::string provider_;
};

TEST(Planes, ChoosesByTheToken) {
  const std::string ofi = "1000:10:ofi1:tcp:aa:1";
  const std::string dc = "0000000000001000:00100000:00000001:0000:000001:1:00000000000000000000ffffc0a80001";
  Planes planes;
  EXPECT_EQ(std::get<DeclineReason>(planes.choose(ofi)), DeclineReason::disabled);
  EXPECT_TRUE(std::holds_alternative<MalformedToken>(planes.choose("nonsense")));
  planes.add(std::make_unique<FakePlane>("shm"));
  planes.add(std::make_unique<FakePlane>("tcp"));
  ASSERT_TRUE(std::holds_alternative<Choice>(planes.choose(ofi)));
  EXPECT_EQ(std::get<Choice>(planes.choose(ofi)).window.plane, "ofi1/tcp");
  EXPECT_EQ(std::get<DeclineReason>(planes.choose("1000:10:ofi1:uet:aa:1")), DeclineReason::token_form);
  EXPECT_EQ(std::get<DeclineReason>(planes.choose(dc)), DeclineReason::token_form);
  EXPECT_TRUE(std::holds_alternative<MalformedToken>(planes.choose("1000:0:ofi1:tcp:aa:1")));
  EXPECT_EQ(planes.infos().size(), 2U);
}

}  // namespace
}  // namespace reelway::rdma
