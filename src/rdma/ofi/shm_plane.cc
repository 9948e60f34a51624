#include "rdma/ofi/shm_plane.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <cerrno>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "async/offload.h"
#include "rdma/ofi/pending.h"
#include "rdma/ofi/shm_peer.h"
#include "rdma/ofi/windows.h"

namespace reelway::rdma::ofi {
namespace {

using base::Code;
using base::Result;
using base::Scope;

/// Copying this takes a reactor about as long as handing it to another thread.
constexpr std::size_t kInlineBytesMax = 64 * base::kKiB;
/// Between two such steps of a file the deadline and cancellation are looked at.
constexpr std::uint64_t kFileStep = 32 * base::kMiB;
/// So much of a file is mapped at a time: mapping all of it costs a fifth more.
constexpr std::uint64_t kMappedBytes = 4 * base::kMiB;

enum class Direction : std::uint8_t { push, pull };

base::Error from_copy(int number) {
  const Code code = number == EPERM    ? Code::access_denied
                    : number == ENOMEM ? Code::no_space
                                       : Code::unavailable;
  const std::string_view what = number == EFAULT
                                    ? "no memory lies there (of the client, or of a file cut short)"
                                : number == ESRCH ? "the client's process has ended"
                                                  : std::strerror(number);
  return base::fail(code, fmt::format("copying between processes: {}", what), Scope::peer,
                    base::Retry::later);
}

/// One-sided copies between this process and another, which is watched so that its number means no other.
class OtherProcess {
 public:
  static Result<OtherProcess> open(base::ByteView endpoint_name) {
    TRY(const ShmPeer peer, find_shm_peer(endpoint_name));
    OtherProcess process;
    process.id_ = peer.process;
    TRY(process.watch_, ProcessWatch::open(peer.process));
    // What was looked at before the watch began may have been another's.
    TRY(const ShmPeer again, find_shm_peer(endpoint_name));
    if (again.user != peer.user)
      return base::fail(Code::access_denied, "the process changed hands", Scope::peer);
    return process;
  }

  /// access_denied where the kernel (Yama, a missing capability) forbids it. That no memory lies there is
  /// told by the copy.
  Result<void> check_permission(const base::Window& window) const {
    std::byte first{};
    const auto copied =
        window.length == 0 ? Result<void>{} : copy(Direction::pull, window.address, {&first, 1});
    if (!copied && copied.error().code == Code::access_denied) return copied;
    return {};
  }

  Result<void> copy(Direction direction, std::uint64_t remote, base::MutableBytes local) const {
    while (!local.empty()) {
      if (!watch_.is_running()) return from_copy(ESRCH);
      const iovec own{local.data(), local.size()};
      const iovec other{reinterpret_cast<void*>(remote),
                        local.size()};  // NOLINT: an address in the other process
      const ssize_t count = direction == Direction::push ? process_vm_writev(id_, &own, 1, &other, 1, 0)
                                                         : process_vm_readv(id_, &own, 1, &other, 1, 0);
      if (count <= 0) return from_copy(count == 0 ? EFAULT : errno);
      remote += static_cast<std::uint64_t>(count);
      local = local.subspan(static_cast<std::size_t>(count));
    }
    return {};
  }

 private:
  pid_t id_ = 0;
  ProcessWatch watch_;
};

/// A file's pages in our address space. They are only ever read by the kernel for us: where the file was cut
/// short meanwhile that is an error, while a look at them would be a signal.
class MappedPages {
 public:
  static Result<MappedPages> map(int file, std::uint64_t offset, std::size_t length) {
    static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    MappedPages pages;
    pages.skip_ = static_cast<std::size_t>(offset % page);
    pages.size_ = pages.skip_ + length;
    void* const start = ::mmap(nullptr, pages.size_, PROT_READ, MAP_SHARED | MAP_POPULATE, file,
                               static_cast<off_t>(offset - pages.skip_));
    if (start == MAP_FAILED) return base::from_errno(errno, "map a file");
    pages.start_ = static_cast<std::byte*>(start);
    return pages;
  }
  MappedPages(MappedPages&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)), size_(other.size_), skip_(other.skip_) {}
  MappedPages& operator=(MappedPages&&) = delete;
  ~MappedPages() {
    if (start_ != nullptr) ::munmap(start_, size_);
  }
  base::MutableBytes bytes() const { return {start_ + skip_, size_ - skip_}; }

 private:
  MappedPages() = default;
  std::byte* start_ = nullptr;
  std::size_t size_ = 0;
  std::size_t skip_ = 0;
};

/// Copies a file's bytes to an address of the other process.
Result<void> copy_file(const OtherProcess& process, FileRange from, std::uint64_t remote) {
  while (from.length > 0) {
    const auto size = static_cast<std::size_t>(std::min(from.length, kMappedBytes));
    TRY(const MappedPages pages, MappedPages::map(from.file, from.offset, size));
    TRY_VOID(process.copy(Direction::push, remote, pages.bytes()));
    from.offset += size;
    from.length -= size;
    remote += size;
  }
  return {};
}

/// The windows in use of each client address.
class Clients {
 public:
  explicit Clients(std::size_t clients_max) : clients_max_(clients_max) {}

  Result<std::uint64_t> hold(const base::Window& window) {
    const std::scoped_lock lock(mutex_);
    if (closed_) return base::fail(Code::closed, "the plane is closed");
    if (!clients_.contains(window.endpoint) && clients_.size() >= clients_max_) {
      return base::fail(Code::busy, fmt::format("{} clients have windows in use", clients_max_), Scope::node,
                        base::Retry::later);
    }
    TRY_VOID(clients_[window.endpoint].hold(window, next_id_));
    return next_id_++;
  }
  void let_go(const base::Window& window, std::uint64_t id) {
    const std::scoped_lock lock(mutex_);
    const auto client = clients_.find(window.endpoint);
    client->second.let_go(id);
    if (client->second.empty()) clients_.erase(client);
  }
  void close() {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
  }

 private:
  const std::size_t clients_max_;
  std::mutex mutex_;
  std::map<base::Bytes, Ranges> clients_;
  std::uint64_t next_id_ = 1;
  bool closed_ = false;
};

class ShmTransfer final : public Transfer {
 public:
  ShmTransfer(Clients& clients, async::BlockingPool& threads, const base::BufferPool& pool,
              base::Window window, std::uint64_t id, OtherProcess process, base::SteadyPoint deadline)
      : clients_(clients),
        threads_(threads),
        pool_(pool),
        window_(std::move(window)),
        id_(id),
        process_(std::move(process)),
        deadline_(deadline) {}
  ~ShmTransfer() override {
    pending_.wait_blocking();
    clients_.let_go(window_, id_);
  }

  async::Task<void> push(std::uint64_t offset, base::ByteView bytes) override {
    // process_vm_writev(2) takes the local side as non-const.
    co_return co_await copy_chunk(Direction::push, offset,
                                  {const_cast<std::byte*>(bytes.data()), bytes.size()});
  }
  async::Task<void> pull(std::uint64_t offset, base::MutableBytes into) override {
    co_return co_await copy_chunk(Direction::pull, offset, into);
  }
  async::Task<void> push_file(std::uint64_t offset, FileRange from) override;
  async::Task<void> fence() override { co_return co_await pending_.wait(); }

 private:
  Result<void> check(std::uint64_t offset, std::uint64_t length) const;
  async::Task<void> copy_chunk(Direction direction, std::uint64_t offset, base::MutableBytes local);

  Clients& clients_;
  async::BlockingPool& threads_;
  const base::BufferPool& pool_;
  const base::Window window_;
  const std::uint64_t id_;
  const OtherProcess process_;
  const base::SteadyPoint deadline_;
  Pending pending_;
};

/// Counts itself among the transfer's operations while it lives.
class Entered {
 public:
  explicit Entered(Pending& pending) : pending_(pending) { pending_.enter(); }
  ~Entered() { pending_.leave(); }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  Pending& pending_;
};

Result<void> ShmTransfer::check(std::uint64_t offset, std::uint64_t length) const {
  if (offset > window_.length || length > window_.length - offset)
    return base::fail(Code::out_of_range, "the transfer would leave the window");
  if (std::chrono::steady_clock::now() >= deadline_) {
    return base::fail(Code::deadline_exceeded, "the transfer's time is over", Scope::peer,
                      base::Retry::later);
  }
  return {};
}

async::Task<void> ShmTransfer::copy_chunk(Direction direction, std::uint64_t offset,
                                          base::MutableBytes local) {
  CO_TRY_VOID(check(offset, local.size()));
  if (!lies_in(pool_, local)) co_return base::fail(Code::invalid_argument, "the memory is not the pool's");
  const Entered entered(pending_);
  const std::uint64_t remote = window_.address + offset;
  if (local.size() <= kInlineBytesMax) co_return process_.copy(direction, remote, local);
  co_return co_await async::offload(threads_, [&] { return process_.copy(direction, remote, local); });
}

async::Task<void> ShmTransfer::push_file(std::uint64_t offset, FileRange from) {
  const Entered entered(pending_);
  for (std::uint64_t done = 0; done < from.length;) {
    CO_TRY_VOID(check(offset + done, from.length - done));
    const auto state = co_await boost::asio::this_coro::cancellation_state;
    if (state.cancelled() != boost::asio::cancellation_type::none)
      co_return base::fail(Code::cancelled, "the transfer was cancelled");
    const FileRange step{
        .file = from.file, .offset = from.offset + done, .length = std::min(from.length - done, kFileStep)};
    CO_TRY_VOID(co_await async::offload(
        threads_, [&] { return copy_file(process_, step, window_.address + offset + done); }));
    done += step.length;
  }
  co_return Result<void>{};
}

class ShmPlane final : public Plane {
 public:
  ShmPlane(const base::BufferPool& pool, const OfiOptions& options)
      : pool_(pool), clients_(options.peers_max), threads_("shm", options.threads) {}

  PlaneInfo info() const override {
    return {.form = "ofi1", .provider = "shm", .window_max = std::numeric_limits<std::uint64_t>::max()};
  }
  bool pushes_files() const override { return true; }
  Result<base::Window> parse(std::string_view token) const override { return parse_window(token, "shm"); }
  Result<void> admit(const base::Window& window, const base::HttpPeer& requester) const override;
  async::Task<std::unique_ptr<Transfer>> open(base::Window window, base::SteadyPoint deadline) override;
  async::Task<void> close() override {
    clients_.close();
    co_return Result<void>{};
  }

 private:
  const base::BufferPool& pool_;
  Clients clients_;
  async::BlockingPool threads_;
};

Result<void> ShmPlane::admit(const base::Window& window, const base::HttpPeer& requester) const {
  TRY(const ShmPeer peer, find_shm_peer(window.endpoint));
  if (peer.process == getpid())
    return base::fail(Code::access_denied, "shm: the window lies in the server itself", Scope::peer);
  if (peer.user != geteuid())
    return base::fail(Code::access_denied, "shm: the window lies in another user's process", Scope::peer);
  const auto user = find_local_requester(requester);
  if (!user || *user != peer.user) {
    return base::fail(Code::access_denied,
                      "shm: the request does not come from a local process of the window's user",
                      Scope::peer);
  }
  return {};
}

async::Task<std::unique_ptr<Transfer>> ShmPlane::open(base::Window window, base::SteadyPoint deadline) {
  CO_TRY(OtherProcess process, OtherProcess::open(window.endpoint));
  CO_TRY_VOID(process.check_permission(window));
  CO_TRY(const std::uint64_t id, clients_.hold(window));
  co_return std::unique_ptr<Transfer>(std::make_unique<ShmTransfer>(
      clients_, threads_, pool_, std::move(window), id, std::move(process), deadline));
}

}  // namespace

Result<std::unique_ptr<Plane>> open_shm_plane(const base::BufferPool& pool, const OfiOptions& options) {
  if (geteuid() == 0 && !options.shm_trust_local) {
    return base::fail(
        Code::unsupported,
        "shm checks no memory keys, and root may write into every process: a root server offers it only "
        "with --rdma-shm-trust-local",
        Scope::node);
  }
  TRY_VOID(check_cross_memory_attach());
  return std::unique_ptr<Plane>(std::make_unique<ShmPlane>(pool, options));
}

}  // namespace reelway::rdma::ofi
