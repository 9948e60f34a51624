#pragma once
// The way of object bytes into the store, shared by PutObject, UploadPart and the copies that read: rules
// from the request, the source by its road, the store's call, the fence, and then the one answer.

#include <functional>

#include "gateway/call.h"
#include "transfer/upload.h"

namespace reelway::gateway {

/// What the store is asked with the source; the result's fields go into the answer.
struct Stored {
  std::string etag;
  std::vector<object::Checksum> checksums;
};
using StoreCall = std::function<async::Task<Stored>(object::ByteSource& source, object::Sealer seal)>;

/// Receives the request's object, in band or by plane. `also`: the kind of checksum that the upload declared.
/// The answer bears ETag and checksums.
ReplyTask receive_object(Call& call, const s3::Integrity& integrity, std::optional<base::ChecksumKind> also,
                         const StoreCall& store);

/// Stores what `source` gives (a copy that must read).
async::net::awaitable<s3::Outcome<Stored>> store_bytes(Call& call, object::ByteSource& source,
                                                       transfer::UploadRules rules, const StoreCall& store);

}  // namespace reelway::gateway
