// Buckets, their default configurations, and what is not there.

#include "gateway/call.h"
#include "s3/xml.h"

namespace reelway::gateway {

namespace {

Reply with_region(const Call& call, Reply reply) {
  reply.head.fields.set("x-amz-bucket-region", call.options().region);
  return reply;
}

}  // namespace

ReplyTask handle(Call& call, const s3::CreateBucket& /*operation*/) {
  CO_TRY(const std::string document, co_await read_document(call, {}));
  CO_TRY(const auto body, s3::parse_create_bucket(document));
  if (!body.location.empty() && body.location != call.options().region) {
    co_return s3::fault(s3::ErrorCode::invalid_location_constraint, {{"LocationConstraint", body.location}});
  }
  object::BucketInfo bucket{.name = call.request.bucket,
                            .created = call.parts().clock.now(),
                            .owner = call.principal.account_id,
                            .region = call.options().region};
  const auto created = co_await call.store().create_bucket(std::move(bucket));
  if (!created && created.error().code == base::Code::already_exists) {
    const auto existing = co_await call.store().head_bucket(call.request.bucket);
    const bool is_own = existing && (existing->owner.empty() || existing->owner == call.principal.account_id);
    co_return s3::fault(
        is_own ? s3::ErrorCode::bucket_already_owned_by_you : s3::ErrorCode::bucket_already_exists,
        {{"BucketName", call.request.bucket}});
  }
  CO_TRY_VOID(or_fault(call, created));
  Reply reply = call.reply(200);
  reply.head.fields.set("Location", "/" + call.request.bucket);
  reply.head.fields.set("x-amz-bucket-arn", "arn:aws:s3:::" + call.request.bucket);
  co_return reply;
}

ReplyTask handle(Call& call, const s3::HeadBucket& /*operation*/) {
  CO_TRY(const auto bucket, or_fault(call, co_await call.store().head_bucket(call.request.bucket)));
  Reply reply = with_region(call, call.reply(200));
  reply.head.fields.set("x-amz-access-point-alias", "false");
  co_return reply;
}

ReplyTask handle(Call& call, const s3::DeleteBucket& /*operation*/) {
  CO_TRY_VOID(or_fault(call, co_await call.store().delete_bucket(call.request.bucket)));
  co_return call.reply(204);
}

ReplyTask handle(Call& call, const s3::GetBucketLocation& /*operation*/) {
  CO_TRY(const auto bucket, or_fault(call, co_await call.store().head_bucket(call.request.bucket)));
  co_return with_region(
      call, call.xml(200, s3::write_location(bucket.region.empty() ? call.options().region : bucket.region)));
}

ReplyTask handle(Call& call, const s3::DefaultConfiguration& operation) {
  CO_TRY(const auto bucket, or_fault(call, co_await call.store().head_bucket(call.request.bucket)));
  if (operation.of_object) {
    object::HeadRequest request{.name = call.name(), .conditions = {}};
    CO_TRY(const auto info, or_fault(call, co_await call.store().head(std::move(request))));
  }
  CO_TRY(std::string document, s3::default_answer(operation, call.request.bucket, call.owner()));
  co_return call.xml(200, std::move(document));
}

ReplyTask handle(Call& /*call*/, const s3::Unsupported& operation) {
  co_return s3::unsupported_fault(operation);
}

}  // namespace reelway::gateway
