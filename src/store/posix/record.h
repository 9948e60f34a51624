#pragma once
// An object's metadata as it lies beside its bytes: the attribute of its file, the sidecar, the stub of an
// evicted object.

#include <optional>

#include "object/tiered.h"
#include "store/posix/space.h"

namespace reelway::store::posix {

struct StoredInfo {
  object::ObjectInfo info;
  bool has_sidecar = false;
  bool lacks_sidecar = false;  ///< it was not where the attribute says: the file may just have been replaced
};

/// What a recall gives back besides bytes and metadata, and which inode the stub is.
struct InodeRecord {
  std::uint64_t stub_inode = 0;
  std::uint32_t user = 0;
  std::uint32_t group = 0;
  std::uint32_t mode = 0;
  base::TimePoint accessed{};
  base::TimePoint modified{};
  std::map<std::string, base::Bytes> attributes;
};

struct Sidecar {
  object::ObjectInfo info;
  std::optional<InodeRecord> inode;
};

/// The metadata of a regular file that lies at `name`; made up where there is none to be believed. What could
/// not be read (I/O, no descriptors left) is an error.
base::Result<StoredInfo> read_stored_info(Space& space, int file, const base::FileStatus& status,
                                          const object::ObjectName& name);

/// Gives a file its metadata; `info`'s size and last_modified must be the file's. Writes and syncs the
/// sidecar where one is needed; true then.
base::Result<bool> write_stored_info(Space& space, int file, const object::ObjectInfo& info,
                                     bool sidecar_exists = false);

base::Result<Sidecar> read_sidecar(Space& space, const std::string& bucket, const std::string& generation);
base::Result<void> write_sidecar(Space& space, const Sidecar& sidecar);
void remove_sidecar(Space& space, const std::string& bucket, const std::string& generation);

/// Neither not found nor damaged: the metadata may well be there, and must not be thought away.
bool is_unreadable(const base::Error& error);

/// An entry may be exchanged while it is looked at. Who finds it so begins again from its name, at most so
/// often.
inline constexpr int kLooksMax = 20;

/// The name in the attribute of a file or the sidecar of a stub, whether or not it still counts; nothing when
/// there is none. `bucket` may be empty: any.
base::Result<std::optional<object::ObjectName>> read_recorded_name(Space& space, int folder,
                                                                   const std::string& entry,
                                                                   const std::string& bucket);

/// Everything of a file that a stub cannot carry.
base::Result<InodeRecord> read_inode_record(Space& space, int file, const base::FileStatus& status);
/// Owner, mode, foreign attributes and times; what the process may not give back is logged.
base::Result<void> restore_inode(Space& space, int file, const InodeRecord& record);

struct StubText {
  std::string generation;
  std::uint64_t size = 0;
};
std::string make_stub_text(const StubText& stub);
std::optional<StubText> parse_stub_text(std::string_view text);

bool is_generation(std::string_view text);  ///< 26 characters of Crockford's base 32

}  // namespace reelway::store::posix
