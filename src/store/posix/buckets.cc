#include "store/posix/buckets.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "object/metadata_codec.h"

namespace reelway::store::posix {

namespace {

using base::in_context;

/// Removes the folders below that hold nothing but folders. not_empty at the first thing that is none.
base::Result<void> remove_empty_folders(Space& space, int folder) {
  TRY(const std::vector<base::FolderEntry> entries,
      in_context(space.files().entries(folder), "read a folder"));
  for (const base::FolderEntry& entry : entries) {
    if (entry.kind != base::EntryKind::folder)
      return base::fail(base::Code::not_empty, "the bucket holds " + entry.name);
    TRY(const base::File child,
        in_context(space.files().open(folder, entry.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW),
                   "open a folder"));
    TRY_VOID(remove_empty_folders(space, child.get()));
    TRY_VOID(in_context(space.files().remove_folder(folder, entry.name), "remove an empty folder"));
  }
  return {};
}

/// The things of ours that belong to a bucket which is gone.
void remove_folder_of(Space& space, int parent, const std::string& bucket) {
  const auto folder = space.files().open(parent, bucket, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder) return;
  const auto entries = space.files().entries(folder->get());
  if (!entries) return;
  for (const base::FolderEntry& entry : *entries) {
    if (entry.kind == base::EntryKind::folder) {
      remove_folder_of(space, folder->get(), entry.name);
    } else {
      std::ignore = space.files().unlink(folder->get(), entry.name);
    }
  }
  std::ignore = space.files().remove_folder(parent, bucket);
}

}  // namespace

base::Result<void> Buckets::create(const object::BucketInfo& bucket) {
  if (!is_bucket_name(bucket.name)) return base::fail(base::Code::invalid_argument, "not a bucket's name");
  TRY(const KeyLocks::Held held, locks_.take_bucket(bucket.name, base::LockMode::exclusive));
  const auto there = space_.files().status_at(space_.root(), bucket.name);
  if (there) return base::fail(base::Code::already_exists, "bucket " + bucket.name + " exists");
  if (there.error() != ENOENT) return base::from_errno(there.error(), "stat the bucket's folder");
  object::ObjectInfo record;
  record.name.bucket = bucket.name;
  record.last_modified = bucket.created;
  record.attributes.owner = bucket.owner;
  record.attributes.headers["region"] = bucket.region;
  TRY_VOID(space_.write_small_file(space_.buckets(), bucket.name, object::encode_metadata(record)));
  auto made = make_folder(bucket.name);
  if (!made) std::ignore = space_.files().unlink(space_.buckets(), bucket.name);
  return made;
}

base::Result<void> Buckets::make_folder(const std::string& bucket) {
  TRY_VOID(in_context(space_.files().make_folder(space_.root(), bucket, 0755), "make the bucket's folder"));
  auto synced = space_.sync(space_.root());
  if (!synced) std::ignore = space_.files().remove_folder(space_.root(), bucket);
  return synced;
}

base::Result<object::BucketInfo> Buckets::head(const std::string& bucket) {
  TRY(const base::File folder, open_bucket(space_, bucket));
  object::BucketInfo info{.name = bucket, .created = {}, .owner = {}, .region = space_.options().region};
  const auto bytes = space_.read_small_file(space_.buckets(), bucket);
  const auto record =
      bytes ? object::decode_metadata(*bytes) : base::Result<object::ObjectInfo>(bytes.error());
  if (record) {
    info.created = record->last_modified;
    info.owner = record->attributes.owner;
    const auto region = record->attributes.headers.find("region");
    if (region != record->attributes.headers.end()) info.region = region->second;
    return info;
  }
  if (record.error().code != base::Code::not_found) return record.error();
  TRY(const base::FileStatus status,
      in_context(space_.files().status(folder.get()), "stat the bucket's folder"));
  info.created = status.modified;
  return info;
}

base::Result<void> Buckets::check_empty(const std::string& bucket) {
  const auto odd = space_.files().open(space_.odd(), bucket, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!odd && odd.error() == ENOENT) return {};
  if (!odd) return base::from_errno(odd.error(), "open the odd keys");
  TRY(const std::vector<base::FolderEntry> entries,
      in_context(space_.files().entries(odd->get()), "read the odd keys"));
  if (!entries.empty()) return base::fail(base::Code::not_empty, "the bucket holds odd keys");
  return {};
}

base::Result<void> Buckets::clear(const std::string& bucket) {
  TRY(const base::File folder, open_bucket(space_, bucket));
  TRY_VOID(check_empty(bucket));
  return remove_empty_folders(space_, folder.get());
}

base::Result<void> Buckets::remove(const std::string& bucket) {
  TRY_VOID(clear(bucket));  // the answer for a bucket in use, which does not wait for those who use it
  TRY(const KeyLocks::Held held, locks_.take_bucket(bucket, base::LockMode::exclusive));
  TRY_VOID(clear(bucket));
  TRY_VOID(in_context(space_.files().remove_folder(space_.root(), bucket), "remove the bucket's folder"));
  TRY_VOID(space_.sync(space_.root()));
  std::ignore = space_.files().unlink(space_.buckets(), bucket);
  for (const int parent : {space_.odd(), space_.meta(), space_.uploads()})
    remove_folder_of(space_, parent, bucket);
  space_.forget_folder("", bucket);
  return {};
}

base::Result<std::vector<object::BucketInfo>> Buckets::list() {
  TRY(const std::vector<base::FolderEntry> entries,
      in_context(space_.files().entries(space_.root()), "read the root"));
  std::vector<object::BucketInfo> buckets;
  for (const base::FolderEntry& entry : entries) {
    if (entry.kind != base::EntryKind::folder || !is_bucket_name(entry.name)) continue;
    auto info = head(entry.name);
    if (!info && object::is_bucket_not_found(info.error())) continue;  // removed meanwhile
    if (!info) return info.error();
    buckets.push_back(std::move(*info));
  }
  std::ranges::sort(buckets, {}, &object::BucketInfo::name);
  return buckets;
}

}  // namespace reelway::store::posix
