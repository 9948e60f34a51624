// Two loops that bench/rdma_bench.py compares.
//   rdma_bench reference PROVIDER FILE THREADS SECONDS   a bare libfabric loop: read the file into registered
//   chunks, write them into a client process rdma_bench get HOST PORT BUCKET KEY MODE SECONDS     GETs of one
//   object, one after another, into registered memory; MODE is shm, tcp or http
// Each prints "GB/S CPU_SECONDS_PER_GB" (CPU of this process and, for `reference`, of its client).

#include <fcntl.h>
#include <fmt/format.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "async/spawn.h"
#include "base/rng.h"
#include "client/client.h"
#include "rdma/ofi/fabric.h"
#include "rdma/ofi/target.h"
#include "rdma/token.h"

namespace {

using namespace reelway;
using base::Result;
using rdma::ofi::Domain;
using rdma::ofi::Endpoint;
using rdma::ofi::Role;

constexpr std::size_t kChunk = 4 * base::kMiB;
constexpr std::size_t kChunksPerThread = 2;

[[noreturn]] void stop(std::string_view what) {
  fmt::print(stderr, "rdma_bench: {}\n", what);
  std::exit(1);
}

template <class T>
T value(Result<T> result) {
  if (!result) stop(to_string(result.error()));
  return std::move(*result);
}

double cpu_seconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void report(std::uint64_t bytes, double seconds, double cpu) {
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  fmt::print("{:.3f} {:.3f}\n", gigabytes / seconds, cpu / gigabytes);
}

/// The client of the reference: a window of `size` bytes; tells its token and lives until its input ends.
[[noreturn]] void be_target(const std::string& provider, std::size_t size, int tokens, int end) {
  base::SystemRng rng;
  {
    const auto domain =
        value(rdma::ofi::TargetDomain::open(provider, provider == "shm" ? "" : "127.0.0.1", rng));
    const auto memory = std::make_unique_for_overwrite<std::byte[]>(size);
    const auto target = value(domain->expose({memory.get(), size}));
    std::memset(memory.get(), 1, size);
    const rdma::ofi::Target::Expectation expectation(*target);
    const std::string token = value(target->token(0, size)) + "\n";
    if (write(tokens, token.data(), token.size()) < 0) stop("pipe");
    char ignored = 0;
    (void)!read(end, &ignored, 1);
  }
  std::exit(0);
}

/// Reads and writes every n-th chunk of the file, over and over.
void reference_thread(const Domain& domain, const rdma::OfiToken& window, int file, std::size_t index,
                      std::size_t count, const std::atomic<bool>& ended, std::atomic<std::uint64_t>& moved) {
  auto endpoint = value(domain.open_endpoint());
  fi_addr_t peer = 0;
  if (fi_av_insert(endpoint.addresses.get(), window.endpoint.data(), 1, &peer, 0, nullptr) != 1)
    stop("no peer");
  std::vector<std::byte> memory(kChunk * kChunksPerThread);
  const auto region = value(domain.register_memory(memory, FI_READ | FI_WRITE, 100 + index));
  std::size_t in_flight = 0;
  std::size_t turn = 0;
  const auto reap = [&] {
    fi_cq_entry entry;
    const ssize_t read = fi_cq_read(endpoint.completions.get(), &entry, 1);
    if (read > 0) --in_flight;
    if (read < 0 && read != -FI_EAGAIN) stop("a write failed");
  };
  while (!ended) {
    for (std::uint64_t offset = index * kChunk; offset < window.length; offset += count * kChunk) {
      while (in_flight == kChunksPerThread) reap();
      std::byte* const chunk = memory.data() + kChunk * (turn++ % kChunksPerThread);
      const std::size_t size = std::min<std::uint64_t>(kChunk, window.length - offset);
      if (pread(file, chunk, size, static_cast<off_t>(offset)) != static_cast<ssize_t>(size))
        stop("short read");
      const iovec local{chunk, size};
      const fi_rma_iov remote{window.address + offset, size, window.key};
      void* descriptor = region.descriptor();
      fi_msg_rma message{};
      message.msg_iov = &local;
      message.desc = &descriptor;
      message.iov_count = message.rma_iov_count = 1;
      message.addr = peer;
      message.rma_iov = &remote;
      ssize_t code = 0;
      while ((code = fi_writemsg(endpoint.handle.get(), &message, domain.write_flags())) == -FI_EAGAIN)
        reap();
      if (code != 0) stop("a write was refused");
      ++in_flight;
      moved += size;
    }
  }
  while (in_flight > 0) reap();
}

int run_reference(const std::string& provider, const char* path, std::size_t threads, double seconds) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (file < 0 || fstat(file, &status) != 0) stop("cannot open the file");
  std::array<int, 2> tokens{};
  std::array<int, 2> end{};
  if (pipe(tokens.data()) != 0 || pipe(end.data()) != 0) stop("pipe");
  const pid_t client = fork();
  if (client == 0) {
    close(end[1]);
    be_target(provider, static_cast<std::size_t>(status.st_size), tokens[1], end[0]);
  }
  std::array<char, 1024> text{};
  const ssize_t size = read(tokens[0], text.data(), text.size());
  if (size <= 1) stop("the client gave no token");
  const auto token = value(rdma::parse_token({text.data(), static_cast<std::size_t>(size - 1)}));
  const auto domain = value(Domain::open(provider, provider == "shm" ? "" : "127.0.0.1", Role::initiator));
  std::atomic<bool> ended = false;
  std::atomic<std::uint64_t> moved = 0;
  std::vector<std::thread> workers;
  const double start = now();
  const double cpu = cpu_seconds(RUSAGE_SELF);
  for (std::size_t i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      reference_thread(*domain, std::get<rdma::OfiToken>(token), file, i, threads, ended, moved);
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  ended = true;
  for (auto& worker : workers) worker.join();
  const double wall = now() - start;
  close(end[1]);
  waitpid(client, nullptr, 0);
  report(moved, wall, cpu_seconds(RUSAGE_SELF) - cpu + cpu_seconds(RUSAGE_CHILDREN));
  return 0;
}

struct GetPlan {
  std::string host;
  std::uint16_t port = 0;
  std::string bucket;
  std::string key;
  std::string mode;
  double seconds = 0;
};

async::Task<void> run_gets(const GetPlan& plan) {
  const auto executor = co_await async::net::this_coro::executor;
  base::SystemClock clock;
  base::SystemRng rng;
  s3client::Options options;
  options.http.host = plan.host;
  options.http.port = plan.port;
  options.credentials.access_key = std::getenv("REELWAY_ACCESS_KEY");
  options.credentials.secret_key = std::getenv("REELWAY_SECRET_KEY");
  CO_TRY(const auto control, s3client::Client::create(executor, options, clock, rng));
  client::Options wanted;
  wanted.rdma = plan.mode == "http" ? client::RdmaMode::off : client::RdmaMode::required;
  wanted.provider = plan.mode == "http" ? "" : plan.mode;
  wanted.server_host = plan.host;
  wanted.checksum = false;  // neither does the reference, nor HTTP
  CO_TRY(const auto client, co_await client::Client::create(*control, wanted, rng));
  CO_TRY(const auto head, co_await control->head(plan.bucket, plan.key));
  const auto bytes = std::make_unique_for_overwrite<std::byte[]>(head.size);
  CO_TRY(const auto memory, client->register_memory({bytes.get(), head.size}));
  const client::Slice all{.offset = 0, .length = head.size};
  // The first one opens connections and endpoints.
  CO_TRY(const auto first, co_await client->get(plan.bucket, plan.key, *memory, all, {}));
  std::uint64_t moved = 0;
  const double start = now();
  const double cpu = cpu_seconds(RUSAGE_SELF);
  while (now() - start < plan.seconds) {
    CO_TRY(const auto got, co_await client->get(plan.bucket, plan.key, *memory, all, {}));
    if (got.bytes != head.size) co_return base::fail(base::Code::data_loss, "a short GET");
    moved += got.bytes;
  }
  report(moved, now() - start, cpu_seconds(RUSAGE_SELF) - cpu);
  co_return Result<void>{};
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  if (words.size() == 5 && words[0] == "reference") {
    return run_reference(words[1], words[2].c_str(), std::stoul(words[3]), std::stod(words[4]));
  }
  if (words.size() == 7 && words[0] == "get") {
    const GetPlan plan{words[1], static_cast<std::uint16_t>(std::stoul(words[2])),
                       words[3], words[4],
                       words[5], std::stod(words[6])};
    const auto done = async::run_until_done(run_gets(plan));
    if (!done) stop(to_string(done.error()));
    return 0;
  }
  stop(
      "usage: rdma_bench reference PROVIDER FILE THREADS SECONDS | get HOST PORT BUCKET KEY shm|tcp|http "
      "SECONDS");
}
