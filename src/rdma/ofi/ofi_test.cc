#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "async/spawn.h"
#include "async/timer.h"
#include "base/buffer_pool.h"
#include "rdma/ofi/ofi_plane.h"
#include "rdma/ofi/target.h"
#include "rdma/token.h"

extern char** environ;  // NOLINT

/// libfabric 1.17 forgets the description of a connection that ended before it was accepted.
extern "C" const char* __lsan_default_suppressions();  // NOLINT
extern "C" const char* __lsan_default_suppressions() { return "leak:libfabric.so"; }

namespace reelway::rdma::ofi {
namespace {

using namespace boost::asio::experimental::awaitable_operators;
using namespace std::chrono_literals;
using base::Code;
using base::Result;

constexpr std::size_t kChunk = 64 * base::kKiB;
constexpr std::size_t kBand = 4096;  ///< guard bytes before and after a window
constexpr std::byte kGuard{0xee};

base::SteadyPoint in(base::Duration time) { return std::chrono::steady_clock::now() + time; }

std::byte pattern(std::size_t i) { return static_cast<std::byte>((i * 131 + i / 251) & 0xff); }

std::string text_of(const base::Error& error) { return to_string(error); }

/// A window between guard bands.
class Memory {
 public:
  explicit Memory(std::size_t size) : bytes_(size + 2 * kBand, kGuard) {}
  base::MutableBytes window() { return base::MutableBytes(bytes_).subspan(kBand, bytes_.size() - 2 * kBand); }
  base::MutableBytes all() { return bytes_; }
  void fill_pattern() {
    for (std::size_t i = 0; i < window().size(); ++i) window()[i] = pattern(i);
  }
  bool has_pattern() {
    for (std::size_t i = 0; i < window().size(); ++i) {
      if (window()[i] != pattern(i)) return false;
    }
    return true;
  }
  bool is_untouched() {
    return std::ranges::all_of(window(), [](std::byte b) { return b == kGuard; });
  }
  bool guards_hold() {
    const auto is_guard = [](std::byte b) { return b == kGuard; };
    return std::ranges::all_of(all().first(kBand), is_guard) &&
           std::ranges::all_of(all().last(kBand), is_guard);
  }

 private:
  std::vector<std::byte> bytes_;
};

std::unique_ptr<base::BufferPool> make_pool() {
  base::BufferPoolOptions options;
  options.chunk_bytes = kChunk;
  options.drives_bytes = options.planes_bytes = options.http_bytes = 16 * kChunk;
  auto pool = base::BufferPool::create(options);
  EXPECT_TRUE(pool) << text_of(pool.error());
  return std::move(*pool);
}

OfiOptions options_for(const std::string& provider) {
  OfiOptions options;
  options.provider = provider;
  options.shm_trust_local = true;
  if (provider != "shm") options.address = "127.0.0.1";
  return options;
}

std::unique_ptr<Plane> make_plane(const base::BufferPool& pool, OfiOptions options) {
  auto plane = open_plane(pool, std::move(options), base::null_log());
  EXPECT_TRUE(plane) << text_of(plane.error());
  return std::move(*plane);
}

/// A server's plane and a client's target, in one process.
class OfiTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    pool_ = make_pool();
    plane_ = make_plane(*pool_, options_for(GetParam()));
    auto domain = TargetDomain::open(GetParam(), GetParam() == "shm" ? "" : "127.0.0.1", rng_);
    ASSERT_TRUE(domain) << text_of(domain.error());
    domain_ = std::move(*domain);
  }

  std::unique_ptr<Target> expose(base::MutableBytes bytes) {
    auto target = domain_->expose(bytes);
    EXPECT_TRUE(target) << text_of(target.error());
    return std::move(*target);
  }
  base::Window window_of(const Target& target, std::uint64_t offset, std::uint64_t length) {
    const auto token = target.token(offset, length);
    EXPECT_TRUE(token) << text_of(token.error());
    auto window = plane_->parse(*token);
    EXPECT_TRUE(window) << text_of(window.error());
    return *window;
  }
  std::vector<base::Chunk> take(std::size_t count) {
    return *pool_->try_take(base::PoolShare::planes, count);
  }

  base::SystemRng rng_;
  std::unique_ptr<base::BufferPool> pool_;
  std::unique_ptr<Plane> plane_;
  std::unique_ptr<TargetDomain> domain_;
};

async::Task<void> push_pattern(Transfer& transfer, base::MutableBytes chunk, std::uint64_t offset,
                               std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) chunk[i] = pattern(static_cast<std::size_t>(offset) + i);
  return transfer.push(offset, chunk.first(size));
}

/// Pushes the pattern over [0, length), two chunks in flight.
async::Task<void> push_all(Plane& plane, base::Window window, std::span<base::Chunk> chunks) {
  const std::uint64_t length = window.length;
  CO_TRY(const auto transfer, co_await plane.open(window, in(20s)));
  for (std::uint64_t offset = 0; offset < length; offset += 2 * kChunk) {
    const auto first = std::min<std::uint64_t>(kChunk, length - offset);
    const auto second = std::min<std::uint64_t>(kChunk, length - offset - first);
    auto push_first = push_pattern(*transfer, chunks[0].bytes(), offset, first);
    auto push_second = push_pattern(*transfer, chunks[1].bytes(), offset + first, second);
    const auto [a, b] = co_await (std::move(push_first) && std::move(push_second));
    if (!a) co_return a.error();
    if (!b) co_return b.error();
  }
  co_return co_await transfer->fence();
}

async::Task<void> open_and_drop(Plane& plane, base::Window window) {
  CO_TRY(const auto transfer, co_await plane.open(std::move(window), in(20s)));
  co_return Result<void>{};
}

async::Task<void> push_once(Plane& plane, base::Window window, base::ByteView bytes, base::Duration limit) {
  CO_TRY(const auto transfer, co_await plane.open(std::move(window), in(limit)));
  co_return co_await transfer->push(0, bytes);
}

TEST_P(OfiTest, PushFillsTheWindowAndNothingElse) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{4095}, kChunk, 5 * kChunk + 17}) {
    Memory memory(size);
    const auto target = expose(memory.all());
    const Target::Expectation expectation(*target);
    auto chunks = take(2);
    const auto pushed = async::run_until_done(push_all(*plane_, window_of(*target, kBand, size), chunks));
    ASSERT_TRUE(pushed) << text_of(pushed.error());
    EXPECT_TRUE(memory.has_pattern()) << size;
    EXPECT_TRUE(memory.guards_hold()) << size;
  }
}

async::Task<void> pull_all(Plane& plane, base::Window window, base::MutableBytes chunk,
                           std::vector<std::byte>& out) {
  const std::uint64_t length = window.length;
  CO_TRY(const auto transfer, co_await plane.open(std::move(window), in(20s)));
  while (out.size() < length) {
    const auto part = chunk.first(std::min<std::size_t>(chunk.size(), length - out.size()));
    CO_TRY_VOID(co_await transfer->pull(out.size(), part));
    out.insert(out.end(), part.begin(), part.end());
  }
  co_return co_await transfer->fence();
}

TEST_P(OfiTest, PullReadsTheWindow) {
  Memory memory(3 * kChunk + 5);
  memory.fill_pattern();
  const auto target = expose(memory.all());
  const Target::Expectation expectation(*target);
  auto chunks = take(1);
  std::vector<std::byte> out;
  const auto window = window_of(*target, kBand, memory.window().size());
  const auto pulled = async::run_until_done(pull_all(*plane_, window, chunks[0].bytes(), out));
  ASSERT_TRUE(pulled) << text_of(pulled.error());
  EXPECT_TRUE(std::ranges::equal(out, memory.window()));
}

async::Task<void> leave_window(Plane& plane, base::Window window, base::MutableBytes chunk,
                               std::vector<Code>& codes) {
  CO_TRY(const auto transfer, co_await plane.open(std::move(window), in(20s)));
  const auto past_end = co_await transfer->push(1, chunk.first(100));
  const auto overflow = co_await transfer->push(~0ULL, chunk.first(2));
  const auto pulled = co_await transfer->pull(101, chunk.first(1));
  std::array<std::byte, 4> foreign{};
  const auto unregistered = co_await transfer->push(0, foreign);
  for (const auto* result : {&past_end, &overflow, &pulled, &unregistered}) {
    codes.push_back(*result ? Code::internal : result->error().code);
  }
  co_return Result<void>{};
}

TEST_P(OfiTest, NothingLeavesTheWindowOrThePool) {
  Memory memory(100);
  const auto target = expose(memory.all());
  const Target::Expectation expectation(*target);
  auto chunks = take(1);
  std::vector<Code> codes;
  const auto done =
      async::run_until_done(leave_window(*plane_, window_of(*target, kBand, 100), chunks[0].bytes(), codes));
  ASSERT_TRUE(done) << text_of(done.error());
  EXPECT_THAT(codes, testing::ElementsAre(Code::out_of_range, Code::out_of_range, Code::out_of_range,
                                          Code::invalid_argument));
  EXPECT_TRUE(memory.is_untouched());
  EXPECT_TRUE(memory.guards_hold());
}

async::Task<void> overlap(Plane& plane, base::Window whole, base::Window part, base::Window beside) {
  {
    CO_TRY(const auto first, co_await plane.open(whole, in(20s)));
    const auto second = co_await plane.open(part, in(20s));
    EXPECT_FALSE(second);
    if (!second) EXPECT_EQ(second.error().code, Code::busy);
    const auto third = co_await plane.open(beside, in(20s));
    EXPECT_TRUE(third) << (third ? "" : text_of(third.error()));
  }
  const auto again = co_await plane.open(part, in(20s));
  EXPECT_TRUE(again) << (again ? "" : text_of(again.error()));
  co_return Result<void>{};
}

TEST_P(OfiTest, OverlappingWindowsAreRefusedUntilTheFirstIsClosed) {
  Memory memory(3 * kBand);
  const auto target = expose(memory.all());
  const Target::Expectation expectation(*target);
  const auto done = async::run_until_done(overlap(*plane_, window_of(*target, kBand, 100),
                                                  window_of(*target, kBand + 99, 100),
                                                  window_of(*target, kBand + 100, 100)));
  EXPECT_TRUE(done) << text_of(done.error());
}

TEST_P(OfiTest, ADeadPeerIsUnavailableAndOthersGoOn) {
  Memory gone(kChunk);
  auto target = expose(gone.all());
  const base::Window stale = window_of(*target, kBand, kChunk);
  target.reset();
  auto chunks = take(2);
  const auto opened = async::run_until_done(open_and_drop(*plane_, stale));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::unavailable) << text_of(opened.error());

  Memory memory(kChunk);
  const auto living = expose(memory.all());
  const Target::Expectation expectation(*living);
  const auto pushed = async::run_until_done(push_all(*plane_, window_of(*living, kBand, kChunk), chunks));
  EXPECT_TRUE(pushed) << text_of(pushed.error());
  EXPECT_TRUE(memory.has_pattern());
}

TEST_P(OfiTest, AClosedPlaneRefuses) {
  Memory memory(kChunk);
  const auto target = expose(memory.all());
  const auto window = window_of(*target, kBand, kChunk);
  ASSERT_TRUE(async::run_until_done(plane_->close()));
  const auto opened = async::run_until_done(open_and_drop(*plane_, window));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::closed);
}

async::Task<void> hold_two(Plane& plane, base::Window first, base::Window second, base::Window third) {
  {
    CO_TRY(const auto a, co_await plane.open(first, in(20s)));
    CO_TRY(const auto b, co_await plane.open(second, in(20s)));
    const auto c = co_await plane.open(third, in(20s));
    EXPECT_FALSE(c);
    if (!c) EXPECT_EQ(c.error().code, Code::busy);
  }
  const auto d = co_await plane.open(third, in(20s));
  EXPECT_TRUE(d) << (d ? "" : text_of(d.error()));
  co_return Result<void>{};
}

TEST_P(OfiTest, ClientAddressesAreBoundedAndIdleOnesMakeRoom) {
  OfiOptions options = options_for(GetParam());
  options.peers_max = 2;
  plane_ = make_plane(*pool_, options);
  Memory memory(100);
  const auto first = expose(memory.all());
  const auto second = expose(memory.all());
  const auto third = expose(memory.all());
  const Target::Expectation one(*first);
  const Target::Expectation two(*second);
  const Target::Expectation three(*third);
  const auto done = async::run_until_done(hold_two(
      *plane_, window_of(*first, kBand, 1), window_of(*second, kBand, 1), window_of(*third, kBand, 1)));
  EXPECT_TRUE(done) << text_of(done.error());
}

async::Task<void> push_late(Plane& plane, base::Window window, base::ByteView bytes, Code& code) {
  CO_TRY(const auto transfer, co_await plane.open(std::move(window), in(200ms)));
  std::this_thread::sleep_for(300ms);
  const auto pushed = co_await transfer->push(0, bytes);
  code = pushed ? Code::internal : pushed.error().code;
  co_return Result<void>{};
}

TEST_P(OfiTest, NothingMovesAfterTheDeadline) {
  Memory memory(kChunk);
  const auto target = expose(memory.all());
  const Target::Expectation expectation(*target);
  auto chunks = take(1);
  Code code = Code::internal;
  const auto done =
      async::run_until_done(push_late(*plane_, window_of(*target, kBand, kChunk), chunks[0].bytes(), code));
  ASSERT_TRUE(done) << text_of(done.error());
  EXPECT_EQ(code, Code::deadline_exceeded);
  EXPECT_TRUE(memory.is_untouched());
}

INSTANTIATE_TEST_SUITE_P(Providers, OfiTest, testing::Values("shm", "tcp"),
                         [](const auto& info) { return info.param; });

// ---- what only a provider that checks keys, and needs the target to take part, can do ----

class OfiKeyTest : public OfiTest {};

/// A target that makes no progress stalls the transfer.
async::Task<void> push_until_stalled(Plane& plane, base::Window window, base::MutableBytes chunk,
                                     base::Duration limit) {
  CO_TRY(const auto transfer, co_await plane.open(std::move(window), in(limit)));
  for (int i = 0; i < 100'000; ++i) CO_TRY_VOID(co_await transfer->push(0, chunk));
  co_return Result<void>{};
}

TEST_P(OfiKeyTest, TheDeadlineEndsATransferThatStalls) {
  Memory memory(kChunk);
  const auto target = expose(memory.all());
  const auto window = window_of(*target, kBand, kChunk);
  {
    const Target::Expectation expectation(*target);
    ASSERT_TRUE(async::run_until_done(open_and_drop(*plane_, window)));
  }
  auto chunks = take(1);
  const auto pushed =
      async::run_until_done(push_until_stalled(*plane_, window, chunks[0].bytes().first(8), 500ms));
  ASSERT_FALSE(pushed);
  EXPECT_THAT(pushed.error().code, testing::AnyOf(Code::deadline_exceeded, Code::unavailable))
      << text_of(pushed.error());
  EXPECT_TRUE(memory.guards_hold());
}

TEST_P(OfiKeyTest, ACancelledTransferIsFencedFirst) {
  Memory memory(kChunk);
  const auto target = expose(memory.all());
  const auto window = window_of(*target, kBand, kChunk);
  {
    const Target::Expectation expectation(*target);
    ASSERT_TRUE(async::run_until_done(open_and_drop(*plane_, window)));
  }
  auto chunks = take(1);
  // Without progress of the target it stalls; the cancellation comes long before the transfer's own deadline.
  const auto part = chunks[0].bytes().first(8);
  const auto pushed =
      async::run_until_done(async::with_deadline(push_until_stalled(*plane_, window, part, 1h), 300ms));
  ASSERT_FALSE(pushed);
  std::ranges::fill(memory.window(), kGuard);
  const Target::Expectation expectation(*target);
  ASSERT_TRUE(async::run_until_done(open_and_drop(*plane_, window)));
  EXPECT_TRUE(memory.is_untouched());
}

TEST_P(OfiKeyTest, AWrongKeyWritesNothing) {
  Memory memory(kChunk);
  const auto target = expose(memory.all());
  const Target::Expectation expectation(*target);
  auto chunks = take(2);
  base::Window window = window_of(*target, kBand, kChunk);
  window.key ^= 1;
  const auto wrong = async::run_until_done(push_once(*plane_, window, chunks[0].bytes(), 5s));
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(memory.is_untouched());
  window.key ^= 1;
  const auto right = async::run_until_done(push_all(*plane_, window, chunks));
  EXPECT_TRUE(right) << text_of(right.error());
  EXPECT_TRUE(memory.has_pattern());
}

TEST_P(OfiKeyTest, ARenewedTargetRefusesItsOldToken) {
  Memory memory(kChunk);
  const auto target = expose(memory.all());
  auto chunks = take(2);
  const base::Window old = window_of(*target, kBand, kChunk);
  ASSERT_TRUE(target->renew());
  const Target::Expectation expectation(*target);
  EXPECT_FALSE(async::run_until_done(push_once(*plane_, old, chunks[0].bytes(), 2s)));
  base::Window new_address = window_of(*target, kBand, kChunk);
  new_address.key = old.key;
  EXPECT_FALSE(async::run_until_done(push_once(*plane_, new_address, chunks[0].bytes(), 2s)));
  EXPECT_TRUE(memory.is_untouched());
  const auto renewed = async::run_until_done(push_all(*plane_, window_of(*target, kBand, kChunk), chunks));
  EXPECT_TRUE(renewed) << text_of(renewed.error());
  EXPECT_TRUE(memory.has_pattern());
}

INSTANTIATE_TEST_SUITE_P(Providers, OfiKeyTest, testing::Values("tcp"),
                         [](const auto& info) { return info.param; });

// ---- opening ----

TEST(OfiOpen, AnAbsentProviderIsNamed) {
  const auto pool = make_pool();
  const auto plane = open_plane(*pool, options_for("no-such-fabric"), base::null_log());
  ASSERT_FALSE(plane);
  EXPECT_EQ(plane.error().code, Code::unsupported);
  EXPECT_THAT(plane.error().detail, testing::HasSubstr("'no-such-fabric'"));
}

TEST(OfiOpen, ARootServerOffersShmOnlyWithTrust) {
  if (geteuid() != 0) GTEST_SKIP() << "not root";
  const auto pool = make_pool();
  OfiOptions options = options_for("shm");
  options.shm_trust_local = false;
  const auto plane = open_plane(*pool, options, base::null_log());
  ASSERT_FALSE(plane);
  EXPECT_EQ(plane.error().code, Code::unsupported);
  EXPECT_THAT(plane.error().detail, testing::HasSubstr("--rdma-shm-trust-local"));
}

TEST(OfiOpen, HandlersOfTheProcessStayInPlace) {
  struct sigaction own{};
  own.sa_handler = [](int) {};
  struct sigaction before{};
  ASSERT_EQ(sigaction(SIGTERM, &own, &before), 0);
  const auto pool = make_pool();
  {
    const auto plane = make_plane(*pool, options_for("tcp"));
  }
  struct sigaction after{};
  ASSERT_EQ(sigaction(SIGTERM, &before, &after), 0);
  EXPECT_EQ(after.sa_handler, own.sa_handler);
}

TEST(OfiAdmit, ShmServesNoWindowInTheServerItself) {
  const auto pool = make_pool();
  const auto plane = make_plane(*pool, options_for("shm"));
  base::SystemRng rng;
  const auto domain = TargetDomain::open("shm", "", rng);
  ASSERT_TRUE(domain);
  Memory memory(100);
  const auto target = (*domain)->expose(memory.all());
  const auto window = plane->parse(*(*target)->token(0, 100));
  ASSERT_TRUE(window);
  const auto admitted = plane->admit(*window, {});
  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().code, Code::access_denied);
  EXPECT_THAT(admitted.error().detail, testing::HasSubstr("the server itself"));
}

TEST(OfiAdmit, TcpConnectsToTheRequesterOrWhomTheOperatorLists) {
  const auto pool = make_pool();
  base::SystemRng rng;
  const auto domain = TargetDomain::open("tcp", "127.0.0.1", rng);
  ASSERT_TRUE(domain);
  Memory memory(100);
  const auto target = (*domain)->expose(memory.all());
  OfiOptions options = options_for("tcp");
  const auto plane = make_plane(*pool, options);
  const auto window = plane->parse(*(*target)->token(0, 100));
  ASSERT_TRUE(window);
  base::HttpPeer requester;
  requester.address = "127.0.0.1";
  EXPECT_TRUE(plane->admit(*window, requester));
  requester.address = "192.0.2.77";
  const auto admitted = plane->admit(*window, requester);
  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().code, Code::access_denied);
  options.peers = {"127.0.0.0/8"};
  EXPECT_TRUE(make_plane(*pool, options)->admit(*window, requester));
  options.peers = {"127.0.0.0/8/8"};
  EXPECT_FALSE(open_plane(*pool, options, base::null_log()));
}

// ---- another process ----

/// This very program as a client in a process of its own: exposes a window, prints its token, and looks at
/// the window when told to.
class ClientProcess {
 public:
  ClientProcess(const std::string& provider, std::size_t size, bool progress) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0) std::abort();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    setenv("CLIENT_PROVIDER", provider.c_str(), 1);
    setenv("CLIENT_SIZE", std::to_string(size).c_str(), 1);
    setenv("CLIENT_PROGRESS", progress ? "1" : "0", 1);
    std::string filter = "--gtest_filter=ClientProcess.DISABLED_Body";
    std::string disabled = "--gtest_also_run_disabled_tests";
    std::string program = "ofi_test";
    std::array<char*, 4> arguments = {program.data(), filter.data(), disabled.data(), nullptr};
    if (posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, arguments.data(), environ) != 0)
      std::abort();
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    to_ = fdopen(in[1], "w");
    from_ = fdopen(out[0], "r");
  }
  ~ClientProcess() {
    fclose(to_);
    fclose(from_);
    if (process_ > 0) waitpid(process_, nullptr, 0);
  }
  /// The rest of the next line that begins with `word`.
  std::string answer(const std::string& word) {
    std::array<char, 2048> line{};
    while (fgets(line.data(), line.size(), from_) != nullptr) {
      std::string text(line.data());
      if (!text.starts_with(word + " ")) continue;
      text.pop_back();
      return text.substr(word.size() + 1);
    }
    return "";
  }
  /// The answer to a command.
  std::string send(const std::string& command) {
    fputs((command + "\n").c_str(), to_);
    fflush(to_);
    return answer("window");
  }
  std::string check() { return send("check"); }
  void send_signal(int number) const { ::kill(process_, number); }
  void kill_and_reap() {
    send_signal(SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
};

TEST(ClientProcess, DISABLED_Body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string provider = getenv("CLIENT_PROVIDER");
  Memory memory(std::stoul(getenv("CLIENT_SIZE")));
  base::SystemRng rng;
  const auto domain = TargetDomain::open(provider, provider == "shm" ? "" : "127.0.0.1", rng);
  ASSERT_TRUE(domain);
  const auto target = (*domain)->expose(memory.all());
  ASSERT_TRUE(target);
  std::optional<Target::Expectation> expectation;
  if (std::string(getenv("CLIENT_PROGRESS")) == "1") expectation.emplace(**target);
  std::cout << "token " << *(*target)->token(kBand, memory.window().size()) << std::endl;
  for (std::string command; std::getline(std::cin, command);) {
    if (command == "untraceable") {
      prctl(PR_SET_DUMPABLE, 0);
      std::cout << "window done" << std::endl;
      continue;
    }
    std::cout << "window "
              << (memory.has_pattern()    ? "pattern"
                  : memory.is_untouched() ? "untouched"
                                          : "mixed")
              << (memory.guards_hold() ? "" : " guards broken") << std::endl;
  }
}

class OfiProcessTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    pool_ = make_pool();
    plane_ = make_plane(*pool_, options_for(GetParam()));
    chunks_ = *pool_->try_take(base::PoolShare::planes, 2);
  }
  base::Window window_from(ClientProcess& client) {
    const auto window = plane_->parse(client.answer("token"));
    EXPECT_TRUE(window);
    return window.value_or(base::Window{});
  }
  std::unique_ptr<base::BufferPool> pool_;
  std::unique_ptr<Plane> plane_;
  std::vector<base::Chunk> chunks_;
};

TEST(OfiAdmit, ShmIsForLocalRequestersOnly) {
  const auto pool = make_pool();
  const auto plane = make_plane(*pool, options_for("shm"));
  ClientProcess client("shm", 100, false);
  const auto window = plane->parse(client.answer("token"));
  ASSERT_TRUE(window);
  base::HttpPeer stranger;
  stranger.address = "192.0.2.77";
  stranger.port = 40'000;
  const auto admitted = plane->admit(*window, stranger);
  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().code, Code::access_denied);
  EXPECT_THAT(admitted.error().detail, testing::HasSubstr("does not come from a local process"));
}

/// Takes from this thread what root may do to processes that are not to be traced.
void drop_trace_capability() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  ASSERT_EQ(syscall(SYS_capget, &header, data.data()), 0);
  data[0].effective &= ~(1U << CAP_SYS_PTRACE);
  ASSERT_EQ(syscall(SYS_capset, &header, data.data()), 0);
}

TEST(OfiAdmit, ShmWithoutPermissionToCopyIsRefusedBeforeTheTransfer) {
  const auto pool = make_pool();
  const auto plane = make_plane(*pool, options_for("shm"));
  ClientProcess client("shm", 100, false);
  const auto window = plane->parse(client.answer("token"));
  ASSERT_TRUE(window);
  ASSERT_EQ(client.send("untraceable"), "done");
  std::jthread([&] {
    drop_trace_capability();
    const auto opened = async::run_until_done(plane->open(*window, in(20s)));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Code::access_denied) << text_of(opened.error());
  }).join();
}

TEST_P(OfiProcessTest, PushReachesAnotherProcess) {
  ClientProcess client(GetParam(), 9 * kChunk + 3, true);
  const auto window = window_from(client);
  EXPECT_EQ(client.check(), "untouched");
  const auto pushed = async::run_until_done(push_all(*plane_, window, chunks_));
  ASSERT_TRUE(pushed) << text_of(pushed.error());
  EXPECT_EQ(client.check(), "pattern");
}

async::Task<void> push_until_killed(Plane& plane, base::Window window, base::ByteView chunk,
                                    ClientProcess& client) {
  CO_TRY(const auto transfer, co_await plane.open(std::move(window), in(20s)));
  CO_TRY_VOID(co_await transfer->push(0, chunk));
  client.kill_and_reap();
  for (int i = 0; i < 10'000; ++i) CO_TRY_VOID(co_await transfer->push(0, chunk));
  co_return Result<void>{};
}

TEST_P(OfiProcessTest, AKilledClientFailsItsTransferAndNoOther) {
  {
    ClientProcess killed(GetParam(), kChunk, true);
    const auto window = window_from(killed);
    const auto pushed = async::run_until_done(push_until_killed(*plane_, window, chunks_[0].bytes(), killed));
    ASSERT_FALSE(pushed);
    EXPECT_EQ(pushed.error().code, Code::unavailable) << text_of(pushed.error());
  }
  ClientProcess living(GetParam(), kChunk, true);
  const auto pushed = async::run_until_done(push_all(*plane_, window_from(living), chunks_));
  EXPECT_TRUE(pushed) << text_of(pushed.error());
  EXPECT_EQ(living.check(), "pattern");
}

// ---- files, into another process ----

class PatternFile {
 public:
  explicit PatternFile(std::size_t size) : descriptor_(memfd_create("pattern", MFD_CLOEXEC)) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = pattern(i);
    EXPECT_EQ(write(descriptor_, bytes.data(), size), static_cast<ssize_t>(size));
  }
  ~PatternFile() { close(descriptor_); }
  PatternFile(const PatternFile&) = delete;
  PatternFile& operator=(const PatternFile&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

async::Task<void> push_file(Plane& plane, base::Window window, FileRange from, std::uint64_t offset) {
  CO_TRY(const auto transfer, co_await plane.open(std::move(window), in(20s)));
  CO_TRY_VOID(co_await transfer->push_file(offset, from));
  co_return co_await transfer->fence();
}

class ShmFileTest : public OfiProcessTest {};

TEST_P(ShmFileTest, AFilesBytesReachTheClient) {
  constexpr std::size_t kSize = 9 * kChunk + 3;
  ClientProcess client("shm", kSize, true);
  const auto window = window_from(client);
  const PatternFile file(kSize);
  // In two parts, the second from the middle of a page.
  const FileRange head{.file = file.get(), .offset = 0, .length = 5001};
  const FileRange tail{.file = file.get(), .offset = 5001, .length = kSize - 5001};
  ASSERT_TRUE(async::run_until_done(push_file(*plane_, window, head, 0)));
  EXPECT_EQ(client.check(), "mixed");
  const auto pushed = async::run_until_done(push_file(*plane_, window, tail, 5001));
  ASSERT_TRUE(pushed) << text_of(pushed.error());
  EXPECT_EQ(client.check(), "pattern");
}

TEST_P(ShmFileTest, AFileThatIsShorterFailsTheTransferAndNothingElse) {
  constexpr std::size_t kSize = 9 * kChunk;
  ClientProcess client("shm", kSize, true);
  const auto window = window_from(client);
  const PatternFile file(kSize);
  ASSERT_EQ(ftruncate(file.get(), 100), 0);
  const FileRange all{.file = file.get(), .offset = 0, .length = kSize};
  const auto pushed = async::run_until_done(push_file(*plane_, window, all, 0));
  ASSERT_FALSE(pushed);
  EXPECT_EQ(pushed.error().code, Code::unavailable) << text_of(pushed.error());
  EXPECT_TRUE(async::run_until_done(push_all(*plane_, window, chunks_)));
  EXPECT_EQ(client.check(), "pattern");
}

TEST_P(ShmFileTest, AFileLeavesNoWindow) {
  ClientProcess client("shm", kChunk, true);
  const auto window = window_from(client);
  const PatternFile file(2 * kChunk);
  const FileRange longer{.file = file.get(), .offset = 0, .length = kChunk + 1};
  const auto pushed = async::run_until_done(push_file(*plane_, window, longer, 0));
  ASSERT_FALSE(pushed);
  EXPECT_EQ(pushed.error().code, Code::out_of_range);
  EXPECT_EQ(client.check(), "untouched");
}

INSTANTIATE_TEST_SUITE_P(Providers, ShmFileTest, testing::Values("shm"),
                         [](const auto& info) { return info.param; });

async::Task<void> push_after_stop(Plane& plane, base::Window window, base::ByteView chunk,
                                  ClientProcess& client) {
  CO_TRY(const auto transfer, co_await plane.open(std::move(window), in(700ms)));
  client.send_signal(SIGSTOP);
  for (int i = 0; i < 100'000; ++i) CO_TRY_VOID(co_await transfer->push(0, chunk));
  co_return Result<void>{};
}

TEST_P(OfiProcessTest, AStoppedClientIsGivenUpAtTheDeadline) {
  if (GetParam() == "shm") GTEST_SKIP() << "a copy into its memory needs no turn of the client's";
  ClientProcess client(GetParam(), kChunk, true);
  const auto window = window_from(client);
  const auto pushed = async::run_until_done(push_after_stop(*plane_, window, chunks_[0].bytes(), client));
  client.send_signal(SIGCONT);
  ASSERT_FALSE(pushed);
  EXPECT_EQ(pushed.error().code, Code::deadline_exceeded) << text_of(pushed.error());
}

TEST_P(OfiProcessTest, ManyClientsAtOnce) {
  constexpr std::size_t kClients = 6;
  std::vector<std::unique_ptr<ClientProcess>> clients;
  std::vector<base::Window> windows;
  for (std::size_t i = 0; i < kClients; ++i)
    clients.push_back(std::make_unique<ClientProcess>(GetParam(), 7 * kChunk + i, true));
  for (const auto& client : clients) windows.push_back(window_from(*client));
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kClients; ++i) {
      threads.emplace_back([this, window = windows[i]] {
        auto chunks = pool_->try_take(base::PoolShare::planes, 2);
        ASSERT_TRUE(chunks);
        const auto pushed = async::run_until_done(push_all(*plane_, window, *chunks));
        EXPECT_TRUE(pushed) << text_of(pushed.error());
      });
    }
    for (auto& thread : threads) thread.join();
  }
  for (const auto& client : clients) EXPECT_EQ(client->check(), "pattern");
}

INSTANTIATE_TEST_SUITE_P(Providers, OfiProcessTest, testing::Values("shm", "tcp"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace reelway::rdma::ofi
