#pragma once
// The steps that tier.cc and recover.cc share.

#include "store/posix/tier.h"

namespace reelway::store::posix {

struct Spot {
  base::File folder;
  std::string name;
};
base::Result<Spot> open_spot(Space& space, const object::ObjectName& name, bool odd);

inline constexpr const char* kRecallPrefix = "recall:";  ///< of a recalled file's name in .reelway/evicting

/// The exchange of rule 5: the whole file takes the stub's place. precondition_failed when something else lay
/// there; that is back in its place then.
base::Result<void> exchange_for_stub(Space& space, Temporary& file, const std::string& generation,
                                     const Spot& spot, std::uint64_t stub_inode);

/// Publishes .reelway/evicting/<entry> under a key that is free. already_exists.
base::Result<void> put_stub_in_place(Space& space, const std::string& entry, const object::ObjectName& name);

/// What a recall will give a file whose inode nobody remembers: the process's own files' owner and mode, the
/// object's time.
base::Result<InodeRecord> stub_record(Space& space, const object::ObjectInfo& info);

}  // namespace reelway::store::posix
