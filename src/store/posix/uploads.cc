#include "store/posix/uploads.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "object/metadata_codec.h"

namespace reelway::store::posix {

namespace {

using base::in_context;

constexpr const char* kUploadFile = "upload";
constexpr std::uint64_t kCloneAlignment = 4096;
constexpr std::uint64_t kCopyBytesMax = 1 * base::kGiB;

std::string part_file(std::uint32_t number) { return fmt::format("{:05}", number); }

/// Parts are named as objects of a bucket that cannot be, so that no part's attribute is ever taken for an
/// object's.
object::ObjectName part_name(const std::string& upload_id, std::uint32_t number) {
  return {.bucket = ":" + upload_id, .key = part_file(number)};
}

/// What was declared rides in an object's metadata; the checksum kind as an empty digest of that kind.
base::Bytes encode_upload(const object::UploadInfo& upload) {
  object::ObjectInfo info;
  info.name = upload.name;
  info.last_modified = upload.initiated;
  info.attributes = upload.attributes;
  if (upload.checksum_kind)
    info.checksums.push_back({.kind = *upload.checksum_kind,
                              .value = base::Bytes(base::digest_size(*upload.checksum_kind)),
                              .composite_part_count = upload.checksum_full_object ? 0u : 1u});
  return object::encode_metadata(info);
}

base::Result<object::UploadInfo> decode_upload(base::ByteView bytes, const std::string& upload_id) {
  TRY(object::ObjectInfo info, object::decode_metadata(bytes));
  object::UploadInfo upload{.name = std::move(info.name),
                            .upload_id = upload_id,
                            .initiated = info.last_modified,
                            .attributes = std::move(info.attributes),
                            .checksum_kind = std::nullopt,
                            .checksum_full_object = false};
  if (!info.checksums.empty()) {
    upload.checksum_kind = info.checksums.front().kind;
    upload.checksum_full_object = info.checksums.front().composite_part_count == 0;
  }
  return upload;
}

struct OpenPart {
  base::File file;
  object::PartInfo info;
};

base::Result<OpenPart> open_part(Space& space, int folder, const std::string& upload_id,
                                 std::uint32_t number) {
  TRY(base::File file,
      in_context(space.files().open(folder, part_file(number), O_RDONLY | O_NOFOLLOW | O_NONBLOCK),
                 "open a part"));
  TRY(const base::FileStatus status, in_context(space.files().status(file.get()), "stat a part"));
  TRY(StoredInfo stored, read_stored_info(space, file.get(), status, part_name(upload_id, number)));
  return OpenPart{.file = std::move(file),
                  .info = {.part_number = number,
                           .size = stored.info.size,
                           .etag = std::move(stored.info.etag),
                           .last_modified = stored.info.last_modified,
                           .checksums = std::move(stored.info.checksums)}};
}

/// What vanishes while it is read went with its upload.
template <class T>
base::Result<T> or_no_upload(base::Result<T> result, const std::string& upload_id) {
  if (!result && result.error().code == base::Code::not_found) return object::upload_not_found(upload_id);
  return result;
}

bool earlier(const object::UploadInfo& a, const object::UploadInfo& b) {
  return std::tie(a.name.key, a.initiated, a.upload_id) < std::tie(b.name.key, b.initiated, b.upload_id);
}

bool is_after_marker(const object::UploadInfo& upload, const object::ListUploadsRequest& request,
                     std::optional<base::TimePoint> marker_time) {
  if (upload.name.key != request.key_marker) return upload.name.key > request.key_marker;
  if (request.upload_id_marker.empty()) return request.key_marker.empty();
  if (!marker_time) return upload.upload_id > request.upload_id_marker;
  return std::tie(upload.initiated, upload.upload_id) > std::tie(*marker_time, request.upload_id_marker);
}

base::Result<void> copy_by_hand(Space& space, int from, base::ByteRange range, int to,
                                std::uint64_t to_offset) {
  base::Bytes buffer(std::min<std::uint64_t>(range.length, base::kMiB));
  for (std::uint64_t done = 0; done < range.length;) {
    const base::MutableBytes chunk =
        base::MutableBytes(buffer).first(std::min<std::uint64_t>(buffer.size(), range.length - done));
    TRY(const std::size_t count, in_context(space.files().read(from, chunk, range.offset + done), "copy"));
    if (count == 0)
      return base::fail(base::Code::data_loss, "copy: the source ended early", base::Scope::object);
    TRY_VOID(in_context(space.files().write(to, chunk.first(count), to_offset + done), "copy"));
    done += count;
  }
  return {};
}

}  // namespace

base::Result<void> copy_bytes(Space& space, int from, base::ByteRange range, int to,
                              std::uint64_t to_offset) {
  if (range.length == 0) return {};
  if (range.offset % kCloneAlignment == 0 && to_offset % kCloneAlignment == 0 &&
      space.files().clone_range(from, range.offset, to, to_offset, range.length))
    return {};
  for (std::uint64_t done = 0; done < range.length;) {
    const std::uint64_t ask = std::min(range.length - done, kCopyBytesMax);
    const auto count = space.files().copy_range(from, range.offset + done, to, to_offset + done, ask);
    if (count && *count == 0)
      return base::fail(base::Code::data_loss, "copy: the source ended early", base::Scope::object);
    if (!count && (count.error() == ENOSPC || count.error() == EDQUOT || count.error() == EFBIG ||
                   count.error() == EIO))
      return base::from_errno(count.error(), "copy");
    if (!count)
      return copy_by_hand(space, from, {.offset = range.offset + done, .length = range.length - done}, to,
                          to_offset + done);
    done += *count;
  }
  return {};
}

base::Result<base::File> Uploads::open_folder(const object::ObjectName& name, const std::string& upload_id) {
  TRY(const base::File bucket, open_bucket(space_, name.bucket));
  if (!is_generation(upload_id)) return object::upload_not_found(upload_id);
  auto folder = space_.files().open(space_.uploads(), name.bucket + "/" + upload_id,
                                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (folder) return std::move(*folder);
  if (folder.error() == ENOENT) return object::upload_not_found(upload_id);
  return base::from_errno(folder.error(), "open an upload");
}

base::Result<std::optional<KeyLocks::Held>> Uploads::try_lock(const object::ObjectName& name,
                                                              const std::string& upload_id,
                                                              base::LockMode mode) {
  TRY(const base::File there, open_folder(name, upload_id));
  return locks_.try_take("uploads:" + name.bucket, upload_id, mode);
}

base::Result<object::UploadInfo> Uploads::create(const object::CreateUploadRequest& request) {
  TRY(const KeyLocks::Held held, objects_.lock_bucket(request.name.bucket));
  TRY(const base::File bucket, open_bucket(space_, request.name.bucket));
  object::UploadInfo upload{.name = request.name,
                            .upload_id = space_.make_ulid(),
                            .initiated = space_.clock().now(),
                            .attributes = request.attributes,
                            .checksum_kind = request.checksum_kind,
                            .checksum_full_object = request.checksum_full_object};
  TRY(const base::File folder, space_.open_made_folder(space_.uploads(), ".reelway/uploads/",
                                                       request.name.bucket + "/" + upload.upload_id));
  if (const auto written = space_.write_small_file(folder.get(), kUploadFile, encode_upload(upload));
      !written) {
    std::ignore = remove_upload(request.name, upload.upload_id, false);
    return written.error();
  }
  return upload;
}

base::Result<object::UploadInfo> Uploads::find(const object::ObjectName& name, const std::string& upload_id) {
  TRY(const base::File folder, open_folder(name, upload_id));
  const auto bytes = space_.read_small_file(folder.get(), kUploadFile);
  if (!bytes && bytes.error().code == base::Code::not_found) return object::upload_not_found(upload_id);
  if (!bytes) return bytes.error();
  TRY(object::UploadInfo upload, decode_upload(*bytes, upload_id));
  if (upload.name != name) return object::upload_not_found(upload_id);
  return upload;
}

base::Result<std::optional<object::PartInfo>> Uploads::publish_part(Temporary& file,
                                                                    const object::PutPartRequest& request,
                                                                    const object::Seal& seal) {
  TRY(const std::optional<KeyLocks::Held> held,
      try_lock(request.name, request.upload_id, base::LockMode::shared));
  if (!held) return std::nullopt;
  TRY(const KeyLocks::Held bucket, objects_.lock_bucket(request.name.bucket));
  TRY(const object::UploadInfo upload, find(request.name, request.upload_id));
  TRY(const base::FileStatus status, in_context(space_.files().status(file.get()), "stat a part"));
  object::ObjectInfo info;
  info.name = part_name(request.upload_id, request.part_number);
  info.size = status.size;
  info.last_modified = status.modified;
  info.etag = seal.etag;
  info.checksums = seal.checksums;
  TRY_VOID(write_stored_info(space_, file.get(), info));
  TRY_VOID(space_.sync(file.get()));
  TRY(const base::File folder, open_folder(request.name, request.upload_id));
  TRY_VOID(space_.publish(file, folder.get(), part_file(request.part_number)));
  return object::PartInfo{.part_number = request.part_number,
                          .size = info.size,
                          .etag = std::move(info.etag),
                          .last_modified = info.last_modified,
                          .checksums = std::move(info.checksums)};
}

base::Result<object::PartPage> Uploads::list_parts(const object::ListPartsRequest& request) {
  object::PartPage page;
  TRY(page.upload, find(request.name, request.upload_id));
  TRY(const base::File folder, open_folder(request.name, request.upload_id));
  TRY(std::vector<base::FolderEntry> entries,
      or_no_upload(in_context(space_.files().entries(folder.get()), "read an upload"), request.upload_id));
  std::ranges::sort(entries, {}, &base::FolderEntry::name);
  for (const base::FolderEntry& entry : entries) {
    const auto number = base::parse_decimal(entry.name);
    if (!number || *number <= request.after) continue;
    if (page.parts.size() == request.count_max) {
      page.truncated = request.count_max > 0;
      break;
    }
    TRY(OpenPart part,
        or_no_upload(open_part(space_, folder.get(), request.upload_id, static_cast<std::uint32_t>(*number)),
                     request.upload_id));
    page.parts.push_back(std::move(part.info));
  }
  return page;
}

base::Result<std::vector<object::UploadInfo>> Uploads::read_uploads(const std::string& bucket,
                                                                    const std::string& prefix) {
  std::vector<object::UploadInfo> uploads;
  const auto folder = space_.files().open(space_.uploads(), bucket, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder && folder.error() == ENOENT) return uploads;
  if (!folder) return base::from_errno(folder.error(), "open the uploads");
  TRY(const std::vector<base::FolderEntry> entries,
      in_context(space_.files().entries(folder->get()), "read the uploads"));
  for (const base::FolderEntry& entry : entries) {
    const auto bytes = space_.read_small_file(folder->get(), entry.name + "/" + kUploadFile);
    if (!bytes && bytes.error().code == base::Code::not_found) continue;  // just begun, or just ended
    if (!bytes) return bytes.error();
    auto upload = decode_upload(*bytes, entry.name);
    if (upload && upload->name.key.starts_with(prefix)) uploads.push_back(std::move(*upload));
  }
  std::ranges::sort(uploads, earlier);
  return uploads;
}

base::Result<object::UploadPage> Uploads::list_uploads(const object::ListUploadsRequest& request) {
  TRY(const base::File bucket, open_bucket(space_, request.bucket));
  TRY(const std::vector<object::UploadInfo> uploads, read_uploads(request.bucket, request.prefix));
  const auto marker = std::ranges::find(uploads, request.upload_id_marker, &object::UploadInfo::upload_id);
  const auto marker_time = marker == uploads.end() ? std::nullopt : std::optional(marker->initiated);
  object::UploadPage page;
  for (const object::UploadInfo& upload : uploads) {
    if (!is_after_marker(upload, request, marker_time)) continue;
    const std::size_t at = request.delimiter.empty()
                               ? std::string::npos
                               : upload.name.key.find(request.delimiter, request.prefix.size());
    const std::string common =
        at == std::string::npos ? "" : upload.name.key.substr(0, at + request.delimiter.size());
    if (!common.empty() && (common <= request.key_marker ||
                            (!page.common_prefixes.empty() && page.common_prefixes.back() == common)))
      continue;
    if (page.uploads.size() + page.common_prefixes.size() == request.count_max) {
      page.truncated = request.count_max > 0;
      break;
    }
    page.next_key_marker = common.empty() ? upload.name.key : common;
    page.next_upload_id_marker = common.empty() ? upload.upload_id : "";
    if (common.empty()) {
      page.uploads.push_back(upload);
    } else {
      page.common_prefixes.push_back(common);
    }
  }
  if (!page.truncated) page.next_key_marker = page.next_upload_id_marker = "";
  return page;
}

/// Joins the parts into `target`; gives their sizes.
base::Result<std::vector<std::uint64_t>> Uploads::join(int folder, const object::CompleteRequest& request,
                                                       int target) {
  std::vector<std::uint64_t> sizes;
  std::uint64_t offset = 0;
  for (const object::PartInfo& checked : request.parts) {
    const auto part = open_part(space_, folder, request.upload_id, checked.part_number);
    if (!part && part.error().code == base::Code::not_found)
      return base::fail(base::Code::invalid_argument,
                        fmt::format("part {} was never uploaded", checked.part_number));
    if (!part) return part.error();
    if (!object::same_bytes(part->info, checked))
      return base::fail(base::Code::invalid_argument,
                        fmt::format("part {} was uploaded anew meanwhile", checked.part_number));
    TRY_VOID(copy_bytes(space_, part->file.get(), {.offset = 0, .length = part->info.size}, target, offset));
    offset += part->info.size;
    sizes.push_back(part->info.size);
  }
  return sizes;
}

base::Result<std::optional<object::ObjectInfo>> Uploads::complete(const object::CompleteRequest& request) {
  TRY(const std::optional<KeyLocks::Held> held,
      try_lock(request.name, request.upload_id, base::LockMode::exclusive));
  if (!held) return std::nullopt;
  TRY(object::UploadInfo upload, find(request.name, request.upload_id));
  TRY(const base::File folder, open_folder(request.name, request.upload_id));
  TRY(Temporary file, space_.make_temporary());
  object::ObjectInfo info;
  TRY(info.part_sizes, join(folder.get(), request, file.get()));
  info.name = request.name;
  info.attributes = std::move(upload.attributes);
  info.etag = request.seal.etag;
  info.checksums = request.seal.checksums;
  TRY(object::ObjectInfo published, objects_.publish(file, std::move(info), request.conditions));
  // The object stands; an upload that a crash brings back completes again to the same, and parts that cannot
  // be removed now only cost room until the upload is aborted.
  if (const auto removed = remove_upload(request.name, request.upload_id, false); !removed)
    space_.log().write(base::LogLevel::warning, "store/posix", removed.error().detail);
  return published;
}

base::Result<std::optional<Uploads::Aborted>> Uploads::abort(const object::ObjectName& name,
                                                             const std::string& upload_id) {
  TRY(const std::optional<KeyLocks::Held> held, try_lock(name, upload_id, base::LockMode::exclusive));
  if (!held) return std::nullopt;
  TRY(const object::UploadInfo upload, find(name, upload_id));
  TRY_VOID(remove_upload(name, upload_id, true));
  return Aborted{};
}

base::Result<void> Uploads::remove_upload(const object::ObjectName& name, const std::string& upload_id,
                                          bool durably) {
  TRY(const base::File uploads,
      in_context(space_.files().open(space_.uploads(), name.bucket, O_RDONLY | O_DIRECTORY | O_NOFOLLOW),
                 "open the uploads"));
  TRY(const base::File folder,
      in_context(space_.files().open(uploads.get(), upload_id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW),
                 "open an upload"));
  // Without its declaration the upload is gone, whatever else is still there.
  const auto gone = space_.files().unlink(folder.get(), kUploadFile);
  if (!gone && gone.error() != ENOENT) return base::from_errno(gone.error(), "remove an upload");
  if (durably) TRY_VOID(space_.sync(folder.get()));
  TRY(const std::vector<base::FolderEntry> entries,
      in_context(space_.files().entries(folder.get()), "read an upload"));
  for (const base::FolderEntry& entry : entries)
    TRY_VOID(in_context(space_.files().unlink(folder.get(), entry.name), "remove a part"));
  TRY_VOID(in_context(space_.files().remove_folder(uploads.get(), upload_id), "remove an upload"));
  space_.forget_folder(".reelway/uploads/", name.bucket + "/" + upload_id);
  return {};
}

}  // namespace reelway::store::posix
