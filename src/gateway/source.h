#pragma once
// The source of a copy: may the caller read it, is it there, do its conditions hold, are its bytes on disk.

#include "gateway/call.h"

namespace reelway::gateway {

async::net::awaitable<s3::Outcome<object::ObjectInfo>> find_source(Call& call, const s3::CopySource& source,
                                                                   const s3::Conditions& conditions);
s3::Fault source_fault(const s3::CopySource& source, const base::Error& error);

}  // namespace reelway::gateway
