#pragma once
// Between the words of S3 (s3/types.h) and those of stores (object/types.h). Pure.

#include "object/store.h"
#include "s3/response.h"
#include "s3/types.h"
#include "s3/xml.h"

namespace reelway::gateway {

object::Conditions to_object(const s3::Conditions& conditions);
object::Attributes to_object(const s3::Attributes& attributes, std::string storage_class, std::string owner);
object::Checksum to_object(const s3::Checksum& checksum);
s3::Checksum to_s3(const object::Checksum& checksum);
std::vector<s3::Checksum> to_s3(const std::vector<object::Checksum>& checksums);
std::optional<object::RangeRequest> to_object(const std::optional<s3::Range>& range);

/// The one checksum that clients are shown: the kind that the object's maker chose, else CRC64NVME.
std::vector<s3::Checksum> shown_checksums(const std::vector<object::Checksum>& checksums);

/// The class that clients are shown: an object whose bytes are on tape only, or were restored from there for
/// a time, is GLACIER, whatever it was stored as, unless it was stored in an archive class of its own.
std::string shown_class(const object::ObjectInfo& info);

s3::ObjectView to_view(const object::ObjectInfo& info);
s3::ObjectEntry to_entry(const object::ObjectInfo& info, bool with_restore);

}  // namespace reelway::gateway
