#pragma once
// Where a key lies. Most keys are their own path. A key that no path can be (empty, "." or ".." components,
// over 255 bytes each or 4000 in all, NUL), or whose path is taken by a folder or runs through a file, is odd
// and lies at .reelway/odd/<bucket>/<SHA-256 of the key>. Where both exist, the path is the object: a POSIX
// process put it there.

#include "object/types.h"
#include "store/posix/space.h"

namespace reelway::store::posix {

/// One path component that is a legal bucket's name and none of ours.
bool is_bucket_name(std::string_view bucket);
bool is_plain_key(std::string_view key);
std::string odd_name_of(std::string_view key);

struct Place {
  base::File folder;
  std::string name;
  bool odd = false;
};

/// bucket_not_found.
base::Result<base::File> open_bucket(Space& space, const std::string& bucket);
/// Where the key is to be put, folders made and synced: at its path, or, when that cannot be or `prefer_odd`
/// says so, among the odd.
base::Result<Place> make_place(Space& space, const object::ObjectName& name, bool prefer_odd);
/// Removes the folders above the key that are empty, the bucket excepted.
void remove_empty_parents(Space& space, const object::ObjectName& name);

}  // namespace reelway::store::posix
