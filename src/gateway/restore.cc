// RestoreObject: AWS's answers, and the archive's queue.

#include "gateway/call.h"
#include "gateway/convert.h"
#include "s3/xml.h"

namespace reelway::gateway {

namespace {

object::RestoreTier to_tier(std::string_view tier) {
  if (tier == "Expedited") return object::RestoreTier::expedited;
  return tier == "Bulk" ? object::RestoreTier::bulk : object::RestoreTier::standard;
}

s3::Fault not_archived(const object::ObjectInfo& info) {
  return s3::fault(s3::ErrorCode::invalid_object_state, {{"StorageClass", shown_class(info)}});
}

}  // namespace

ReplyTask handle(Call& call, const s3::RestoreObject& operation) {
  CO_TRY_VOID(check_version(call, operation.version_id));
  CO_TRY(const std::string document, co_await read_document(call, {}));
  CO_TRY(const auto body, s3::parse_restore(document));
  object::HeadRequest head{.name = call.name(), .conditions = {}};
  CO_TRY(const auto info, or_fault(call, co_await call.store().head(std::move(head))));
  object::RecallQueue* recalls = call.parts().recalls;
  const bool is_evicted = info.residency == object::Residency::evicted;
  if (recalls == nullptr || (!is_evicted && !info.restore)) co_return not_archived(info);
  if (info.restore && info.restore->ongoing) co_return s3::fault(s3::ErrorCode::restore_already_in_progress);
  object::RecallRequest request{.name = call.name(),
                                .generation = info.generation,
                                .days = body.days,
                                .tier = to_tier(body.tier),
                                .for_reader = false};
  const auto submitted = co_await recalls->submit(std::move(request));
  if (!submitted && submitted.error().code == base::Code::not_found) co_return not_archived(info);
  CO_TRY_VOID(or_fault(call, submitted));
  co_return call.reply(is_evicted ? 202 : 200);
}

}  // namespace reelway::gateway
