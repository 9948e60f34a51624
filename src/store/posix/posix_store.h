#pragma once
// Objects as plain files: bucket/key is root/bucket/key, readable and writable by any POSIX tool beside S3
// (docs/architecture.md, part 3). What S3 knows of an object lies in one attribute of its file
// (docs/formats/packed-attribute.md); what is ours alone lies under root/.reelway. Any number of processes
// may serve one root at the same time. Small reads whose pages are hot are served on the caller's thread;
// everything that may wait runs on the blocking pool.

#include <memory>
#include <string>

#include "async/offload.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/rng.h"
#include "object/tiered.h"

namespace reelway::store::posix {

enum class Durability : std::uint8_t {
  full,  ///< an answer is given only when bytes, metadata and name have been synced
  none,  ///< nothing is synced: a crash of the machine may lose or tear what was answered
};

struct Options {
  std::string root;
  Durability durability = Durability::full;
  /// Take leases on file systems that are not known to be local at their word (`--evict-on-any-filesystem`).
  bool evict_on_any_file_system = false;
  base::Duration lock_patience = std::chrono::seconds{30};
  /// What changed more recently is not archived yet.
  base::Duration settle = std::chrono::seconds{2};
  std::string region = "us-east-1";  ///< of buckets made by mkdir

  async::BlockingPool* pool = nullptr;  ///< required; outlives the store
  base::Files* files = nullptr;         ///< null: the system's
  base::Clock* clock = nullptr;         ///< null: the system's
  base::Rng* rng = nullptr;             ///< null: the system's
  base::Log* log = nullptr;             ///< null: none
};

class PosixStore : public object::Store {
 public:
  /// Makes root/.reelway where it is missing. Blocks. access_denied, no_space; not_found when the root is no
  /// folder.
  static base::Result<std::unique_ptr<PosixStore>> create(Options options);
  /// Answers false to evict with the reason, where the root's file system has no leases to be believed.
  virtual bool leases_are_believed() const = 0;
};

}  // namespace reelway::store::posix
