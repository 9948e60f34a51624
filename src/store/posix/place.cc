#include "store/posix/place.h"

#include <fcntl.h>

#include <cerrno>

#include "base/checksum.h"
#include "object/store.h"

namespace reelway::store::posix {

namespace {

using base::in_context;

constexpr std::size_t kNameBytesMax = 255;
constexpr std::size_t kPathBytesMax = 4000;  // PATH_MAX less room for the bucket

std::string parent_of(const std::string& key) {
  const std::size_t slash = key.rfind('/');
  return slash == std::string::npos ? "" : key.substr(0, slash);
}

std::string leaf_of(const std::string& key) { return key.substr(key.rfind('/') + 1); }

base::Result<Place> odd_place(Space& space, const object::ObjectName& name) {
  TRY(base::File folder, space.open_made_folder(space.odd(), ".reelway/odd/", name.bucket));
  return Place{.folder = std::move(folder), .name = odd_name_of(name.key), .odd = true};
}

}  // namespace

bool is_bucket_name(std::string_view bucket) {
  return !bucket.empty() && bucket.size() <= kNameBytesMax && bucket.front() != '.' &&
         bucket.find_first_of(std::string_view("/:\0", 3)) == std::string_view::npos;
}

bool is_plain_key(std::string_view key) {
  if (key.empty() || key.size() > kPathBytesMax || key.contains('\0')) return false;
  for (std::size_t start = 0; start <= key.size();) {
    const std::size_t end = std::min(key.find('/', start), key.size());
    const std::string_view part = key.substr(start, end - start);
    if (part.empty() || part == "." || part == ".." || part.size() > kNameBytesMax) return false;
    start = end + 1;
  }
  return true;
}

std::string odd_name_of(std::string_view key) {
  return base::to_hex(base::digest_of(base::ChecksumKind::sha256, base::as_bytes(key)));
}

base::Result<base::File> open_bucket(Space& space, const std::string& bucket) {
  if (!is_bucket_name(bucket)) return object::bucket_not_found(bucket);
  auto folder = space.files().open(space.root(), bucket, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (folder) return std::move(*folder);
  if (folder.error() == ENOENT || folder.error() == ENOTDIR || folder.error() == ELOOP)
    return object::bucket_not_found(bucket);
  return base::from_errno(folder.error(), "open the bucket's folder");
}

base::Result<Place> make_place(Space& space, const object::ObjectName& name, bool prefer_odd) {
  TRY(const base::File bucket, open_bucket(space, name.bucket));
  if (prefer_odd || !is_plain_key(name.key)) return odd_place(space, name);
  // Other requests remove folders that became empty; each round makes them anew.
  for (int attempt = 0; attempt < 100; ++attempt) {
    auto folder = space.open_made_folder(bucket.get(), name.bucket + "/", parent_of(name.key));
    if (folder) return Place{.folder = std::move(*folder), .name = leaf_of(name.key), .odd = false};
    if (folder.error().code == base::Code::already_exists) return odd_place(space, name);
    if (folder.error().code != base::Code::not_found) return folder.error();
    TRY(const base::File still_there, open_bucket(space, name.bucket));
  }
  return base::fail(base::Code::busy, "the key's folder vanishes all the time", base::Scope::object,
                    base::Retry::later);
}

void remove_empty_parents(Space& space, const object::ObjectName& name) {
  if (!is_plain_key(name.key)) return;
  const auto bucket = open_bucket(space, name.bucket);
  if (!bucket) return;
  for (std::string path = parent_of(name.key); !path.empty(); path = parent_of(path)) {
    const std::string above = parent_of(path);
    const auto folder =
        space.files().open(bucket->get(), above.empty() ? "." : above, O_PATH | O_DIRECTORY | O_NOFOLLOW);
    if (!folder || !space.files().remove_folder(folder->get(), leaf_of(path))) return;
    space.forget_folder(name.bucket + "/", path);
  }
}

}  // namespace reelway::store::posix
