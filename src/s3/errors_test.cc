#include "s3/errors.h"

#include <gmock/gmock.h>

#include <set>

namespace reelway::s3 {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Errors, EveryCodeHasANameAStatusAndAMessageOfItsOwn) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kErrorCodeCount; ++i) {
    const ErrorRow& row = error_row(static_cast<ErrorCode>(i));
    EXPECT_EQ(row.code, static_cast<ErrorCode>(i));
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.message.empty()) << row.name;
    EXPECT_TRUE(row.status == 304 || (row.status >= 400 && row.status < 600)) << row.name;
  }
}

struct Status {
  ErrorCode code;
  std::string_view name;
  int status;
};

TEST(Errors, StatusesThatClientsDependOn) {
  constexpr Status kCases[]{
      {ErrorCode::access_denied, "AccessDenied", 403},
      {ErrorCode::bad_digest, "BadDigest", 400},
      {ErrorCode::bucket_already_owned_by_you, "BucketAlreadyOwnedByYou", 409},
      {ErrorCode::bucket_not_empty, "BucketNotEmpty", 409},
      {ErrorCode::incomplete_body, "IncompleteBody", 400},
      {ErrorCode::insufficient_storage, "InsufficientStorage", 507},
      {ErrorCode::internal_error, "InternalError", 500},
      {ErrorCode::invalid_object_state, "InvalidObjectState", 403},
      {ErrorCode::invalid_part_number, "InvalidPartNumber", 416},
      {ErrorCode::invalid_range, "InvalidRange", 416},
      {ErrorCode::malformed_xml, "MalformedXML", 400},
      {ErrorCode::method_not_allowed, "MethodNotAllowed", 405},
      {ErrorCode::missing_content_length, "MissingContentLength", 411},
      {ErrorCode::no_such_bucket, "NoSuchBucket", 404},
      {ErrorCode::no_such_key, "NoSuchKey", 404},
      {ErrorCode::no_such_upload, "NoSuchUpload", 404},
      {ErrorCode::not_implemented, "NotImplemented", 501},
      {ErrorCode::not_modified, "NotModified", 304},
      {ErrorCode::precondition_failed, "PreconditionFailed", 412},
      {ErrorCode::rdma_not_supported, "RDMANotSupported", 501},
      {ErrorCode::restore_already_in_progress, "RestoreAlreadyInProgress", 409},
      {ErrorCode::signature_does_not_match, "SignatureDoesNotMatch", 403},
      {ErrorCode::slow_down, "SlowDown", 503},
      {ErrorCode::glacier_expedited_retrieval_not_available, "GlacierExpeditedRetrievalNotAvailable", 503},
  };
  for (const Status& each : kCases) {
    EXPECT_EQ(error_row(each.code).name, each.name);
    EXPECT_EQ(error_row(each.code).status, each.status) << each.name;
  }
}

TEST(Errors, NotFoundIsToldApartByScope) {
  const auto name = [](base::Scope scope) {
    return to_fault(base::fail(base::Code::not_found, "", scope), "b", "k").name();
  };
  EXPECT_EQ(name(base::Scope::library), "NoSuchBucket");
  EXPECT_EQ(name(base::Scope::object), "NoSuchKey");
  EXPECT_EQ(name(base::Scope::connection), "NoSuchUpload");
}

TEST(Errors, EveryInternalCodeHasAnAnswer) {
  const std::vector<std::pair<base::Code, std::string_view>> cases{
      {base::Code::invalid_argument, "InvalidArgument"},
      {base::Code::not_found, "NoSuchKey"},
      {base::Code::already_exists, "BucketAlreadyExists"},
      {base::Code::not_empty, "BucketNotEmpty"},
      {base::Code::precondition_failed, "PreconditionFailed"},
      {base::Code::not_modified, "NotModified"},
      {base::Code::out_of_range, "InvalidRange"},
      {base::Code::access_denied, "AccessDenied"},
      {base::Code::not_resident, "InvalidObjectState"},
      {base::Code::busy, "SlowDown"},
      {base::Code::deadline_exceeded, "ServiceUnavailable"},
      {base::Code::cancelled, "ServiceUnavailable"},
      {base::Code::unavailable, "ServiceUnavailable"},
      {base::Code::data_loss, "InternalError"},
      {base::Code::checksum_mismatch, "BadDigest"},
      {base::Code::no_space, "InsufficientStorage"},
      {base::Code::too_large, "EntityTooLarge"},
      {base::Code::unsupported, "NotImplemented"},
      {base::Code::closed, "IncompleteBody"},
      {base::Code::internal, "InternalError"},
  };
  for (const auto& [code, name] : cases)
    EXPECT_EQ(to_fault(base::fail(code, "")).name(), name) << base::to_string(code);
  EXPECT_EQ(to_fault(base::fail(base::Code::deadline_exceeded, "", base::Scope::connection)).name(),
            "RequestTimeout");
}

TEST(Errors, DetailNeverReachesTheClient) {
  const auto document =
      error_document(to_fault(base::fail(base::Code::internal, "/srv/secret/path")), {"/b/k", "id", "host"});
  EXPECT_THAT(document, Not(HasSubstr("secret")));
}

TEST(Errors, DocumentHasTheFieldsAndEscapesThem) {
  Fault refused = fault(ErrorCode::no_such_key, {{"Key", "a<b>&\x01\xFF"}});
  EXPECT_EQ(error_document(refused, {.resource = "/b/a", .request_id = "R", .host_id = "H"}),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>NoSuchKey</Code><Message>The specified "
            "key does not exist."
            "</Message><Key>a&lt;b&gt;&amp;&#x1;?</Key><Resource>/b/a</Resource><RequestId>R</"
            "RequestId><HostId>H</HostId></Error>");
}

TEST(Errors, ClientsReadWhatIsWritten) {
  const auto document = error_document(fault_saying(ErrorCode::slow_down, "not <now>"),
                                       {.resource = "", .request_id = "R", .host_id = "H"});
  const auto parsed = parse_error_document(document);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->code, "SlowDown");
  EXPECT_EQ(parsed->message, "not <now>");
  EXPECT_EQ(parsed->request_id, "R");
  EXPECT_FALSE(parse_error_document("<html></html>"));
  EXPECT_FALSE(parse_error_document(""));
}

}  // namespace
}  // namespace reelway::s3
