#include <algorithm>
#include <set>

#include "tape/ltfs/manifest_scan.h"
#include "tape/ltfs/volume_state.h"

namespace reelway::tape::ltfs {

using async::Task;

Task<ImportedVolume> import_scan(Volume& volume) { return volume.import_members(); }

Task<ImportedVolume> Volume::import_members() {
  auto& state = *state_;
  CO_TRY_VOID(state.check_readable());
  ImportedVolume out{.bundles = {}, .undescribed_bundles = {}, .problems = state.problems};
  std::set<std::string> described;
  std::vector<std::uint64_t> trailers;
  if (const auto* batches = state.index.find_directory("/.reelway/batches")) {
    for (const auto& [name, file] : batches->files) {
      if (!file->extents.empty()) trailers.push_back(file->extents.back().start_block);
    }
  }
  std::ranges::sort(trailers);
  for (const auto block : trailers) {
    auto found = co_await read_manifest(state, block);
    if (!found) {
      const auto scope = found.error().scope;
      if (scope == base::Scope::drive || scope == base::Scope::library) co_return std::move(found).error();
      out.problems.push_back("batch manifest at block " + std::to_string(block) + ": " +
                             found.error().detail);
      continue;
    }
    for (auto& bundle : found->manifest.bundles) {
      if (state.index.find_file(bundle.path) == nullptr) continue;
      described.insert(bundle.path);
      out.bundles.push_back(std::move(bundle));
    }
  }
  if (const auto* bundles = state.index.find_directory("/.reelway/bundles")) {
    for (const auto& [name, file] : bundles->files) {
      const auto path = "/.reelway/bundles/" + name;
      if (!described.contains(path)) out.undescribed_bundles.push_back(path);
    }
  }
  co_return out;
}

}  // namespace reelway::tape::ltfs
