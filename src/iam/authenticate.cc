#include "iam/authenticate.h"

namespace reelway::iam {

s3::Outcome<Caller> authenticate(const base::HttpRequestHead& head, const Accounts& accounts,
                                 s3::SigningKeyCache& keys, std::string_view region, base::TimePoint now) {
  TRY(const auto authorization, s3::parse_authorization(head));
  if (!authorization) {
    TRY(const auto payload, s3::parse_payload(head));
    if (payload.form == s3::PayloadForm::streaming_signed ||
        payload.form == s3::PayloadForm::streaming_signed_trailer) {
      return s3::fault_saying(s3::ErrorCode::invalid_request, "An anonymous request cannot sign its chunks.");
    }
    return Caller{.principal = {}, .verified = {.payload = payload, .signing = {}}};
  }
  const Account* account = accounts.find(authorization->access_key);
  if (account == nullptr) return s3::invalid_access_key(authorization->access_key);
  const auto key = keys.get(account->access_key, account->secret_key, authorization->date, region, "s3");
  TRY(auto verified, s3::verify(*authorization, head, key, region, now));
  return Caller{.principal = account->principal, .verified = std::move(verified)};
}

}  // namespace reelway::iam
