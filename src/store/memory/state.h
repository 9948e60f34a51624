#pragma once
// What the three faces of the memory store share.

#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "store/memory/memory_store.h"

namespace reelway::store::memory {

using SharedBytes = std::shared_ptr<const base::Bytes>;

/// One version of an object. Never changed once it is in the map, only replaced, so that readers keep what
/// they opened.
struct Version {
  object::ObjectInfo info;
  SharedBytes bytes;  ///< null: evicted
  object::Identity identity;
};
using SharedVersion = std::shared_ptr<const Version>;

struct Part {
  object::PartInfo info;
  base::Bytes bytes;
};

struct PendingUpload {
  object::UploadInfo info;
  std::map<std::uint32_t, Part> parts;
};

struct Bucket {
  object::BucketInfo info;
  std::map<std::string, SharedVersion> objects;
};

struct State {
  explicit State(const Options& given) : options(given) {}

  const Options options;
  std::mutex mutex;
  std::map<std::string, Bucket> buckets;
  std::map<std::string, PendingUpload> uploads;
  std::uint64_t next_inode = 1;

  // All of these want the mutex held.
  base::Result<Bucket*> bucket(const std::string& name);
  base::Result<SharedVersion> find(const object::ObjectName& name);
  base::Result<PendingUpload*> upload(const object::ObjectName& name, const std::string& id);
  /// Conditions, a generation, a place in the map.
  base::Result<object::ObjectInfo> publish(object::ObjectInfo info, base::Bytes bytes,
                                           const object::Conditions& conditions);
  void replace(const object::ObjectName& name, object::ObjectInfo info, SharedBytes bytes);
};

std::unique_ptr<object::Multipart> make_multipart(State& state);
std::unique_ptr<object::Tiered> make_tiered(State& state);

/// The whole of a source.
async::Task<base::Bytes> read_everything(object::ByteSource& source);

}  // namespace reelway::store::memory
