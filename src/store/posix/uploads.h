#pragma once
// Multipart uploads: .reelway/uploads/<bucket>/<upload id>/ holds `upload` (what was declared) and one file
// per part, named by its number in five digits, with the same packed attribute as an object has. Completing
// joins the parts into a new file: shared blocks where the file system has them. Parts are published under
// the upload's lock, shared; it is completed and aborted under it alone. A join can take minutes, so nobody
// waits for that lock on a thread: who cannot have it gets nothing, and comes again.

#include "store/posix/objects.h"

namespace reelway::store::posix {

class Uploads {
 public:
  Uploads(Space& space, KeyLocks& locks, Objects& objects)
      : space_(space), locks_(locks), objects_(objects) {}

  struct Aborted {};

  base::Result<object::UploadInfo> create(const object::CreateUploadRequest& request);
  base::Result<object::UploadInfo> find(const object::ObjectName& name, const std::string& upload_id);
  /// Publishes a whole file as a part. Nothing while the upload is completed or aborted.
  base::Result<std::optional<object::PartInfo>> publish_part(Temporary& file,
                                                             const object::PutPartRequest& request,
                                                             const object::Seal& seal);
  base::Result<object::PartPage> list_parts(const object::ListPartsRequest& request);
  base::Result<object::UploadPage> list_uploads(const object::ListUploadsRequest& request);
  /// Nothing while parts are published, or the upload is completed or aborted.
  base::Result<std::optional<object::ObjectInfo>> complete(const object::CompleteRequest& request);
  base::Result<std::optional<Aborted>> abort(const object::ObjectName& name, const std::string& upload_id);

 private:
  base::Result<base::File> open_folder(const object::ObjectName& name, const std::string& upload_id);
  base::Result<std::optional<KeyLocks::Held>> try_lock(const object::ObjectName& name,
                                                       const std::string& upload_id, base::LockMode mode);
  base::Result<std::vector<object::UploadInfo>> read_uploads(const std::string& bucket,
                                                             const std::string& prefix);
  base::Result<std::vector<std::uint64_t>> join(int folder, const object::CompleteRequest& request,
                                                int target);
  base::Result<void> remove_upload(const object::ObjectName& name, const std::string& upload_id,
                                   bool durably);
  Space& space_;
  KeyLocks& locks_;
  Objects& objects_;
};

/// Copies [offset, offset + length) of one file to another without the bytes passing through this process
/// where that can be.
base::Result<void> copy_bytes(Space& space, int from, base::ByteRange range, int to, std::uint64_t to_offset);

}  // namespace reelway::store::posix
