#pragma once
// What the multipart handlers share.

#include "gateway/call.h"

namespace reelway::gateway {

/// NotImplemented where the store has no multipart uploads.
s3::Outcome<object::Multipart*> uploads_of(const Call& call);
s3::Fault upload_fault(const Call& call, const base::Error& error, std::string_view upload_id);

}  // namespace reelway::gateway
