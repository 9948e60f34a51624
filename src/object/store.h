#pragma once
// A place where objects live. All calls are safe from several reactors at once. put, copy, complete are
// durable and whole when they return success, and leave no trace when they return an error (as far as the
// store's durability option says). The store knows nothing of HTTP, RDMA or who is asking.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "object/byte_stream.h"
#include "object/types.h"

namespace reelway::object {

/// An open file of which [offset, offset + length) are the bytes asked for; lives as long as its Reader. For
/// sendfile(2).
struct FileSegment {
  int descriptor = -1;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// An object opened for reading: everything that can be refused was refused before it exists. Gives exactly
/// range().length bytes.
class Reader : public ByteSource {
 public:
  virtual const ObjectInfo& info() const = 0;
  virtual base::ByteRange range() const = 0;
  virtual std::optional<FileSegment> file_segment() const { return std::nullopt; }
  /// The wait for a tape that the next read() would begin with: whoever holds pool chunks lets go of them and
  /// awaits it first (rule 9). Its errors are read()'s.
  virtual std::optional<async::Task<void>> tape_wait() { return std::nullopt; }
  std::optional<std::uint64_t> length() const override { return range().length; }
};

/// A range as S3 has it: first-last, first-, -suffix.
struct RangeRequest {
  std::optional<std::uint64_t> first;  ///< absent: the last `last` bytes
  std::optional<std::uint64_t> last;   ///< inclusive
};
/// Resolves against a size; out_of_range when nothing of it exists.
base::Result<base::ByteRange> resolve_range(const RangeRequest& range, std::uint64_t size);

struct HeadRequest {
  ObjectName name;
  Conditions conditions;
};

struct GetRequest {
  ObjectName name;
  Conditions conditions;
  std::optional<RangeRequest> range;
  std::optional<std::uint32_t> part_number;  ///< from 1; excludes range
  bool without_tape_waits = false;           ///< a reader whose tape_wait() is absent from its first byte on
};

/// Which bytes a GET asks for. out_of_range for a part or range that does not exist.
base::Result<base::ByteRange> requested_range(const GetRequest& request, const ObjectInfo& info);

/// What is known only after a source's last byte. The store calls the sealer once, after the source's end and
/// before anything becomes visible; an error from it makes the put fail with that error and store nothing.
struct Seal {
  std::string etag;
  std::vector<Checksum> checksums;
};
using Sealer = std::move_only_function<base::Result<Seal>()>;

struct PutRequest {
  ObjectName name;
  Attributes attributes;
  Conditions conditions;
  Sealer seal;
};

struct CopyRequest {
  ObjectName source;
  Conditions source_conditions;
  ObjectName target;
  Conditions target_conditions;
  std::optional<Attributes> replace_attributes;  ///< absent: the source's are kept
  std::optional<std::string> storage_class;      ///< with kept attributes
};

struct RemoveRequest {
  ObjectName name;
  Conditions conditions;  ///< if_match only
};

struct ListRequest {
  std::string bucket;
  std::string prefix;
  std::string delimiter;    ///< empty: none
  std::string start_after;  ///< exclusive; compares with keys and with common prefixes
  std::size_t count_max = 1000;
};

struct ListPage {
  std::vector<ObjectInfo> objects;           ///< in byte order of keys; user attributes may be left out
  std::vector<std::string> common_prefixes;  ///< in byte order
  bool truncated = false;
  std::string next_start_after;  ///< the largest key or common prefix of this page, when truncated
};

class Multipart;
class Tiered;

class Store {
 public:
  virtual ~Store() = default;

  virtual async::Task<void> create_bucket(BucketInfo bucket) = 0;       ///< already_exists
  virtual async::Task<BucketInfo> head_bucket(std::string bucket) = 0;  ///< not_found
  virtual async::Task<void> delete_bucket(std::string bucket) = 0;      ///< not_found, not_empty
  virtual async::Task<std::vector<BucketInfo>> list_buckets() = 0;      ///< in byte order

  // A missing bucket and a missing key are both not_found: is_bucket_not_found() and is_object_not_found()
  // tell them apart.
  virtual async::Task<ObjectInfo> head(
      HeadRequest request) = 0;  ///< not_found, not_modified, precondition_failed
  virtual async::Task<std::unique_ptr<Reader>> get(
      GetRequest request) = 0;  ///< as head; out_of_range, not_resident
  virtual async::Task<ObjectInfo> put(PutRequest request,
                                      ByteSource& source) = 0;  ///< precondition_failed, no_space, too_large
  virtual async::Task<ObjectInfo> copy(
      CopyRequest request) = 0;  ///< not_found, precondition_failed, not_resident
  /// Absent is success; true when something was removed.
  virtual async::Task<bool> remove(RemoveRequest request) = 0;
  virtual async::Task<ListPage> list(ListRequest request) = 0;

  virtual Multipart* multipart() { return nullptr; }
  virtual Tiered* tiered() { return nullptr; }
};

/// The two kinds of not_found that a client must be able to tell apart. Both have Code::not_found; the scope
/// tells them apart: `library` for the bucket (the container), `object` for the key.
base::Error bucket_not_found(const std::string& bucket);
base::Error object_not_found(const ObjectName& name);
base::Error upload_not_found(const std::string& upload_id);  ///< scope `connection`: the upload
bool is_bucket_not_found(const base::Error& error);
bool is_object_not_found(const base::Error& error);
bool is_upload_not_found(const base::Error& error);

struct PartInfo {
  std::uint32_t part_number = 0;  ///< 1 to 10000
  std::uint64_t size = 0;
  std::string etag;
  base::TimePoint last_modified{};
  std::vector<Checksum> checksums;
};
/// Number, size, ETag and checksums: all that is known of a part's bytes.
bool same_bytes(const PartInfo& a, const PartInfo& b);

struct UploadInfo {
  ObjectName name;
  std::string upload_id;
  base::TimePoint initiated{};
  Attributes attributes;
  std::optional<base::ChecksumKind> checksum_kind;  ///< declared at creation
  bool checksum_full_object = false;
};

struct CreateUploadRequest {
  ObjectName name;
  Attributes attributes;
  std::optional<base::ChecksumKind> checksum_kind;
  bool checksum_full_object = false;
};

struct PutPartRequest {
  ObjectName name;
  std::string upload_id;
  std::uint32_t part_number = 0;
  Sealer seal;
};

struct CompleteRequest {
  ObjectName name;
  std::string upload_id;
  std::vector<PartInfo> parts;  ///< ascending; as list_parts gave them when the caller checked them
  Seal seal;                    ///< of the whole object
  Conditions conditions;
};

struct ListPartsRequest {
  ObjectName name;
  std::string upload_id;
  std::uint32_t after = 0;
  std::size_t count_max = 1000;
};
struct PartPage {
  UploadInfo upload;
  std::vector<PartInfo> parts;
  bool truncated = false;
};

struct ListUploadsRequest {
  std::string bucket;
  std::string prefix;
  std::string delimiter;
  std::string key_marker;  ///< exclusive, unless upload_id_marker is given too
  std::string upload_id_marker;
  std::size_t count_max = 1000;
};
struct UploadPage {
  std::vector<UploadInfo> uploads;  ///< by key, then by time of initiation
  std::vector<std::string> common_prefixes;
  bool truncated = false;
  std::string next_key_marker;
  std::string next_upload_id_marker;
};

class Multipart {
 public:
  virtual ~Multipart() = default;
  virtual async::Task<UploadInfo> create_upload(CreateUploadRequest request) = 0;
  virtual async::Task<PartInfo> put_part(PutPartRequest request,
                                         ByteSource& source) = 0;  ///< replaces a part of that number
  virtual async::Task<PartPage> list_parts(ListPartsRequest request) = 0;
  virtual async::Task<UploadPage> list_uploads(ListUploadsRequest request) = 0;
  /// invalid_argument when a part is missing, or has other bytes by now than the request says. The upload is
  /// gone afterwards, parts that were not named included. Completing again with the same upload id answers
  /// upload_not_found; while the first still runs, the second waits for it.
  virtual async::Task<ObjectInfo> complete_upload(CompleteRequest request) = 0;
  virtual async::Task<void> abort_upload(ObjectName name, std::string upload_id) = 0;  ///< upload_not_found
};

}  // namespace reelway::object
