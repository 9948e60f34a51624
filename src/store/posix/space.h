#pragma once
// What every part of the store shares: the seam to the files, the folders under root/.reelway, how durable to
// be, and the small file operations that the publish protocol is made of. Everything here blocks.

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "store/posix/posix_store.h"

namespace reelway::store::posix {

/// A file that is not published yet. Where the file system has no unnamed files it has a name in
/// .reelway/tmp, which goes with it.
class Temporary {
 public:
  Temporary() = default;
  Temporary(base::Files& files, int folder, base::File file, std::string name)
      : files_(&files), folder_(folder), file_(std::move(file)), name_(std::move(name)) {}
  Temporary(Temporary&& other) noexcept
      : files_(other.files_),
        folder_(other.folder_),
        file_(std::move(other.file_)),
        name_(std::exchange(other.name_, {})) {}
  Temporary& operator=(Temporary&&) = delete;
  ~Temporary();
  int get() const { return file_.get(); }
  explicit operator bool() const { return static_cast<bool>(file_); }
  const std::string& name() const { return name_; }  ///< empty: unnamed
  void set_name(std::string name) { name_ = std::move(name); }
  void forget_name() { name_.clear(); }

 private:
  base::Files* files_ = nullptr;
  int folder_ = -1;
  base::File file_;
  std::string name_;
};

class Space {
 public:
  static base::Result<std::unique_ptr<Space>> create(const Options& options);

  base::Files& files() const { return *options_.files; }
  base::Clock& clock() const { return *options_.clock; }
  base::Log& log() const { return *options_.log; }
  const Options& options() const { return options_; }
  std::string make_ulid() const { return base::make_ulid(*options_.clock, *options_.rng); }

  int root() const { return root_.get(); }
  int tmp() const { return tmp_.get(); }
  int locks() const { return locks_.get(); }
  int meta() const { return meta_.get(); }
  int odd() const { return odd_.get(); }
  int evicting() const { return evicting_.get(); }
  int uploads() const { return uploads_.get(); }
  int buckets() const { return buckets_.get(); }

  bool writes_trusted() const { return trusted_; }
  const base::Bytes& site_key() const { return site_key_; }
  bool leases_are_believed() const { return leases_; }

  /// fsync, as far as the durability asks for it. A failed one must not be repeated: drop what it was for.
  base::Result<void> sync(int descriptor);
  base::Result<Temporary> make_temporary();
  /// Publishes `file` as folder/name and syncs the folder; what was there is displaced and gone.
  /// already_exists: a folder lies there. On an error nothing has changed.
  base::Result<void> publish(Temporary& file, int folder, const std::string& name);
  /// As publish, but already_exists when anything lies there.
  base::Result<void> publish_new(Temporary& file, int folder, const std::string& name);
  /// Writes, syncs and publishes a small file.
  base::Result<void> write_small_file(int folder, const std::string& name, base::ByteView bytes);
  base::Result<base::Bytes> read_small_file(int folder, const std::string& path);
  /// Opens base/path, making and syncing folders that are missing. `tag` names `base`. not_found: base's own
  /// folder is gone; already_exists: something that is no folder is in the way.
  base::Result<base::File> open_made_folder(int base, const std::string& tag, const std::string& path);
  /// To be called when a folder was removed.
  void forget_folder(const std::string& tag, const std::string& path);

 private:
  explicit Space(const Options& options) : options_(options) {}
  base::Result<void> open_folders();
  base::Result<void> load_site_key();
  base::Result<void> probe_attributes();
  base::Result<void> probe_leases();
  base::Result<base::File> step_into(int folder, const std::string& name);
  base::Result<void> replace_displacing(Temporary& file, int folder, const std::string& name);

  Options options_;
  base::File root_, own_, tmp_, locks_, meta_, odd_, evicting_, uploads_, buckets_;
  bool trusted_ = false;
  bool leases_ = false;
  base::Bytes site_key_;
  std::mutex mutex_;
  std::map<std::string, std::uint64_t>
      durable_folders_;  ///< path to inode: known to be synced into their parents
};

}  // namespace reelway::store::posix
