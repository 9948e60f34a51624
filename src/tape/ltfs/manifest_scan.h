#pragma once
// Finding and reading batch manifests on the data partition.

#include <string>
#include <vector>

#include "tape/ltfs/manifest.h"
#include "tape/ltfs/volume_state.h"

namespace reelway::tape::ltfs {

struct FoundManifest {
  Manifest manifest;
  ManifestTrailer trailer;
  std::size_t trailer_bytes = 0;
};

struct FoundManifests {
  std::vector<FoundManifest> manifests;  ///< ascending
  std::vector<std::string> problems;
};

/// The manifests between `from_block` and the end of data, but those that the index names already: the last
/// one is looked for from the end of data backwards, the others by its chain.
async::Task<FoundManifests> find_manifests(Volume::State& state, std::uint64_t from_block);

/// A manifest whose trailer stands at `block`. data_loss when either is damaged; not_found when there is no
/// trailer.
async::Task<FoundManifest> read_manifest(Volume::State& state, std::uint64_t block);

}  // namespace reelway::tape::ltfs
