#pragma once
// A batch manifest: what was done to a volume since the manifest before it, written as a file
// /.reelway/batches/<n> on the data partition (docs/formats/manifest.md). Its body is JSON lines; its last
// record begins with a magic and gives the blocks of its own start and of the previous manifest, so that a
// scan from end of data finds the chain before any index names it. Applying the changes in order to the index
// before gives the index after.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tape/ltfs/index.h"
#include "tape/member.h"

namespace reelway::tape::ltfs {

struct FileAdded {
  std::string path;
  File file;
};
struct FileRenamed {
  std::string from;
  std::string to;
};
struct FileRemoved {
  std::string path;
};
using Change = std::variant<FileAdded, FileRenamed, FileRemoved>;

/// The members of one bundle.
struct BundleContents {
  std::string path;  ///< of the bundle on the volume
  std::vector<Member> members;
};

struct Manifest {
  std::uint64_t number = 0;  ///< from 1, one more than the previous
  std::string volume_uuid;
  base::TimePoint time{};
  std::vector<Change> changes;
  std::vector<BundleContents> bundles;
};

struct ManifestTrailer {
  std::uint64_t number = 0;
  std::string volume_uuid;
  std::uint64_t start_block = 0;                ///< of the body
  std::uint64_t own_block = 0;                  ///< of the trailer record
  std::optional<std::uint64_t> previous_block;  ///< of the previous manifest's trailer
  std::uint64_t body_bytes = 0;
  std::uint32_t body_crc32c = 0;
  std::uint64_t file_uid = 0;  ///< of the manifest's own file
  base::TimePoint time{};      ///< of the manifest, and of its file
  friend bool operator==(const ManifestTrailer&, const ManifestTrailer&) = default;
};

std::string manifest_path(std::uint64_t number);
std::string encode_manifest(const Manifest& manifest);
base::Result<Manifest> decode_manifest(std::string_view body);
std::string encode_trailer(const ManifestTrailer& trailer);
/// not_found: the record is no trailer. data_loss: it begins as one but is damaged.
base::Result<ManifestTrailer> decode_trailer(base::ByteView record);

}  // namespace reelway::tape::ltfs
