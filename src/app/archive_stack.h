#pragma once
// The archive of a process: a virtual library, its drives and robot, and the manager, on a thread of their
// own.

#include <memory>
#include <string>

#include "app/reactors.h"
#include "app/serve_options.h"
#include "archive/manager.h"
#include "async/offload.h"
#include "vtl/library.h"

namespace reelway::app {

/// Which cartridges a pool may use, as options name them or, when they do not, pools a and b with half of the
/// library each.
base::Result<std::map<std::string, std::vector<std::string>>> assign_pools(
    const std::vector<std::string>& options, const std::vector<std::string>& barcodes);

class ArchiveStack {
 public:
  struct Parts {
    object::Store& store;
    base::BufferPool& buffers;
    base::Rng& rng;
    async::BlockingPool& hash_pool;
    base::Log& log;
    base::Meter& meter;
  };
  /// Opens the library that options.vtl names; nothing moves before start().
  static base::Result<std::unique_ptr<ArchiveStack>> create(const ServeOptions& options, const Parts& parts);
  ~ArchiveStack();

  archive::Client& client() { return *manager_; }
  base::Result<void> start();
  /// Whoever waits for a tape is told to come again; before the servers' requests end.
  void send_readers_away() { manager_->send_readers_away(); }
  /// Nothing when it is not running.
  base::Result<void> stop();

 private:
  ArchiveStack() : reactor_("archive", 1), catalog_pool_("catalog", 1) {}

  Reactors reactor_;
  async::SystemTimer timer_;
  async::BlockingPool catalog_pool_;
  std::unique_ptr<vtl::Library> virtual_library_;
  std::unique_ptr<tape::Changer> changer_;
  std::vector<std::unique_ptr<tape::Drive>> drives_;
  std::unique_ptr<tape::Library> library_;
  std::unique_ptr<archive::Manager> manager_;
  bool running_ = false;
};

}  // namespace reelway::app
